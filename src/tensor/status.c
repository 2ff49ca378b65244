#include "tensor/status.h"

#include <stdarg.h>
#include <stdio.h>

tl_status tl_error_set(tl_error *error, tl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  error->status = status;
  return status;
}
