/* Status and error: how every room below the frontend reports what went wrong.
 *
 * A function that can fail returns a tl_status and, unless it is TL_OK, leaves one sentence in the
 * tl_error that it was given.  Nothing below main aborts or exits. */
#ifndef TL_TENSOR_STATUS_H
#define TL_TENSOR_STATUS_H

typedef enum tl_status {
  TL_OK,
  TL_INVALID,     /* an argument is wrong */
  TL_NO_MEMORY,   /* memory or its budget is exhausted */
  TL_FAILED,      /* a queued operation failed when it ran */
  TL_INTERRUPTED, /* the user asked to stop waiting */
} tl_status;

enum { TL_ERROR_TEXT = 512 };

typedef struct tl_error {
  tl_status status;
  char text[TL_ERROR_TEXT];
} tl_error;

#if defined(__GNUC__)
#define TL_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TL_PRINTF(text, first)
#endif

/* Fills `error` (cut to its size) and returns `status`, so that a failure is one statement. */
tl_status tl_error_set(tl_error *error, tl_status status, const char *format, ...) TL_PRINTF(3, 4);

#endif
