#include "backend/cpu/cpu.h"

#include <cblas.h>
#include <stdlib.h>

#include "backend/cpu/families.h"
#include "backend/cpu/system.h"

static void plan(tl_backend *self, const tl_command *command, tl_plan *out) {
  (void)self;
  *out = (tl_plan){.chunks = 1};
  switch (tl_ops[command->op].family) {
    case TL_ELEMENTWISE:
    case TL_FILL:
    case TL_COPY: tl_elementwise_plan(command, out); break;
    case TL_GENERATE: tl_generate_plan(command, out); break;
    case TL_MATMUL: tl_matmul_plan(command, out); break;
    case TL_REDUCE: tl_reduce_plan(command, out); break;
    case TL_COMPARE: tl_compare_plan(command, out); break;
    case TL_ALONG: tl_along_plan(command, out); break;
    case TL_LINALG: tl_linalg_plan(command, out); break;
    case TL_INDEX: tl_index_plan(command, out); break;
    case TL_ALLOCATE:
    case TL_READING:
    case TL_RELEASE: break;
  }
}

static tl_status run(tl_backend *self, const tl_command *command, uint32_t chunk,
                     tl_error *error) {
  const tl_cpu *cpu = (const tl_cpu *)self;
  switch (tl_ops[command->op].family) {
    case TL_ELEMENTWISE:
    case TL_FILL:
    case TL_COPY: return tl_elementwise_run(cpu, command, chunk, error);
    case TL_GENERATE: tl_generate_run(cpu, command, chunk); break;
    case TL_MATMUL: tl_matmul_run(cpu, command, chunk); break;
    case TL_REDUCE: tl_reduce_run(cpu, command, chunk); break;
    case TL_COMPARE: tl_compare_run(cpu, command, chunk); break;
    case TL_ALONG: return tl_along_run(cpu, command, chunk, error);
    case TL_LINALG: return tl_linalg_run(cpu, command, chunk, error);
    case TL_INDEX: return tl_index_run(cpu, command, chunk, error);
    case TL_ALLOCATE:
    case TL_READING:
    case TL_RELEASE: break;
  }
  return TL_OK;
}

static tl_status finish(tl_backend *self, const tl_command *command, tl_error *error) {
  const tl_cpu *cpu = (const tl_cpu *)self;
  if (tl_ops[command->op].family == TL_LINALG) return tl_linalg_finish(command, error);
  if (tl_ops[command->op].family == TL_REDUCE) tl_reduce_finish(cpu, command);
  if (tl_ops[command->op].family == TL_COMPARE) tl_compare_finish(command);
  if (tl_ops[command->op].family == TL_INDEX) tl_index_finish(command);
  return TL_OK;
}

static void *allocate(tl_backend *self, size_t bytes) {
  (void)self;
  return tl_cpu_allocate(bytes);
}

static void release(tl_backend *self, void *buffer, size_t bytes) {
  (void)self, (void)bytes;
  free(buffer);
}

tl_status tl_cpu_open(tl_backend **backend, const char *isa, tl_error *error) {
  static tl_cpu cpu;
  const tl_kernels *kernels = tl_kernels_choose(isa);
  if (!kernels) {
    return tl_error_set(error, TL_INVALID,
                        "TENSORLUA_ISA: this machine does not run '%s' (baseline, avx2, avx512)",
                        isa);
  }
  openblas_set_num_threads(1);
  cpu = (tl_cpu){.backend = {"cpu", plan, run, finish, allocate, release}, .kernels = kernels};
  *backend = &cpu.backend;
  return TL_OK;
}
