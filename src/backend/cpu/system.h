/* Memory of the CPU backend: see system.c. */
#ifndef TL_CPU_SYSTEM_H
#define TL_CPU_SYSTEM_H

#include <stddef.h>

/* At least `bytes`, aligned to 64, on huge pages when it is large; free() gives it back. */
void *tl_cpu_allocate(size_t bytes);

#endif
