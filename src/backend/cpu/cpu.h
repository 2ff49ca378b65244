/* The CPU backend: OpenBLAS for matrix products, vector kernels for the rest, on the engine's
 * threads.  This folder is the only one that includes cblas.h. */
#ifndef TL_CPU_H
#define TL_CPU_H

#include "engine/backend.h"

/* `isa` names the instruction set of the kernels ("baseline", "avx2", "avx512"), or is NULL for the
 * best that this machine runs.  Sets OpenBLAS to one thread a call, so call it before any thread is
 * started.  There is one CPU backend; it needs no closing. */
tl_status tl_cpu_open(tl_backend **backend, const char *isa, tl_error *error);

int tl_cpu_cores(void);           /* that this process may run on, at least 1 */
size_t tl_cpu_memory(void);       /* bytes of the machine, or of the limit this process is under */

#endif
