/* Faults that a test asks for: TENSORLUA_FAULT=mm:2,alloc:5 makes the second mm that is enqueued
 * fail when it runs, and the fifth buffer that is needed not to be had.  Counting as commands are
 * enqueued makes them the same on any number of threads. */
#ifndef TL_ENGINE_FAULT_H
#define TL_ENGINE_FAULT_H

#include "engine/command.h"

enum { TL_MAX_FAULTS = 16 };

typedef struct tl_fault {
  tl_op op; /* TL_OP_none: an allocation */
  unsigned long remaining;
} tl_fault;

typedef struct tl_faults {
  int count;
  tl_fault faults[TL_MAX_FAULTS];
} tl_faults;

/* `text` may be NULL: no faults. */
tl_status tl_faults_parse(tl_faults *faults, const char *text, tl_error *error);

/* Counts a command, and an allocation for each storage that it writes first; true when it is to
 * fail. */
bool tl_faults_hit(tl_faults *faults, const tl_command *command);

#endif
