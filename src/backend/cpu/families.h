/* The families of operators: for each, its plan and how a chunk of it runs.  The functions are
 * those of backend.h. */
#ifndef TL_CPU_FAMILIES_H
#define TL_CPU_FAMILIES_H

#include <stdalign.h>

#include "backend/cpu/kernels/kernels.h"
#include "engine/backend.h"
#include "tensor/program.h"

enum {
  TL_BLOCK = 1024,           /* elements of a register: a few of them fit in L1 */
  TL_CHUNK_ELEMENTS = 65536, /* elements that a lane takes at once: tens of microseconds */
  TL_MAX_CHUNKS = 1 << 16,   /* then they are larger; so that scratch for each stays small */
};

typedef struct tl_cpu {
  tl_backend backend; /* first: a tl_backend pointer is a tl_cpu pointer */
  const tl_kernels *kernels;
} tl_cpu;

static inline uint32_t tl_chunks_of(int64_t numel) {
  int64_t chunks = (numel + TL_CHUNK_ELEMENTS - 1) / TL_CHUNK_ELEMENTS;
  return chunks < 1 ? 1 : chunks > TL_MAX_CHUNKS ? TL_MAX_CHUNKS : (uint32_t)chunks;
}

/* The elements first .. first+count-1 of a chunk among `numel`. */
static inline void tl_chunk_range(int64_t numel, uint32_t chunks, uint32_t chunk, int64_t *first,
                                  int64_t *count) {
  int64_t size = (numel + chunks - 1) / chunks;
  size = (size + TL_BLOCK - 1) / TL_BLOCK * TL_BLOCK;
  *first = size * chunk < numel ? size * chunk : numel;
  *count = numel - *first < size ? numel - *first : size;
}

/* Whether an operand is one run of elements in row-major order. */
bool tl_operand_is_contiguous(const tl_operand *operand);

/* Elements first .. first+count-1 of an operand, in row-major order, to or from contiguous memory
 * of another dtype.  `streams`: past the caches, into a contiguous operand of the same dtype or a
 * tile of one. */
void tl_load_block(const tl_cpu *cpu, void *to, tl_dtype dtype, const tl_operand *from,
                   int64_t first, int64_t count);
void tl_store_block(const tl_cpu *cpu, const tl_operand *to, int64_t first, int64_t count,
                    const void *from, tl_dtype dtype, bool streams);

/* The operands of an element-wise command, tile by tile: see tiles.c. */
typedef struct tl_tiles {
  int64_t count; /* of tiles */
  int ndim, noperands;
  const int64_t *shape;
  const tl_operand *whole;
  int64_t extent[TL_MAX_DIMS];                     /* of a tile; less at the far ends */
  bool is_packed[TL_MAX_OUTPUTS + TL_MAX_INPUTS];  /* copied tile by tile, into rows */
  bool in_runs;                                    /* what is contiguous is so in a tile */

  /* The tile at hand, in the dimensions where it has more than one element. */
  tl_operand tile[TL_MAX_OUTPUTS + TL_MAX_INPUTS];
  int tile_ndim, tile_dim[TL_MAX_DIMS];
  int64_t tile_shape[TL_MAX_DIMS];
  int64_t tile_stride[TL_MAX_OUTPUTS + TL_MAX_INPUTS][TL_MAX_DIMS];
  int64_t packed_stride[TL_MAX_DIMS];
  tl_storage panels; /* of the packed operands */
} tl_tiles;

/* False when no operand is out of order: row by row is as good then. */
bool tl_tiles_make(tl_tiles *tiles, const tl_command *command);

tl_status tl_tiles_run(const tl_cpu *cpu, tl_tiles *tiles, const tl_command *command,
                       uint32_t chunk, tl_error *error);

/* Where a register's values are while a block is computed. */
typedef struct tl_place {
  int block;                /* in the scratch, or -1: */
  const tl_operand *direct; /* in the operand's own memory */
} tl_place;

typedef struct tl_layout {
  tl_place place[TL_MAX_REGISTERS];
  bool streams[TL_MAX_OUTPUTS];
} tl_layout;

/* Runs a program block by block; its operands are the outputs, then the inputs.  The values of
 * register `kept` (TL_IMMEDIATE: of none) stay where they are until the next block.  `tiles`, or
 * NULL, says that blocks are tiles of the operands. */
typedef struct tl_evaluator {
  alignas(64) char scratch[TL_MAX_REGISTERS * TL_BLOCK * sizeof(double)];
  const tl_cpu *cpu;
  const tl_program *program;
  const tl_operand *outputs, *inputs;
  int ninputs;
  uint8_t kept;
  tl_layout layout;
} tl_evaluator;

void tl_evaluator_init(tl_evaluator *evaluator, const tl_cpu *cpu, const tl_program *program,
                       const tl_operand *operands, int noperands, uint8_t kept,
                       const tl_tiles *tiles);

/* Elements at .. at+n-1 (n at most TL_BLOCK): stores the outputs, and says where registers are.
 * Only operators for which tl_op_can_fail does not hold never fail. */
tl_status tl_evaluate(tl_evaluator *evaluator, int64_t at, size_t n, void **registers,
                      tl_error *error);

/* Nanoseconds an element, roughly. */
float tl_program_cost(const tl_program *program, const tl_operand *operands, int noperands);

void tl_elementwise_plan(const tl_command *command, tl_plan *plan);
tl_status tl_elementwise_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                             tl_error *error);

void tl_generate_plan(const tl_command *command, tl_plan *plan);
void tl_generate_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);

void tl_matmul_plan(const tl_command *command, tl_plan *plan);
void tl_matmul_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);

void tl_reduce_plan(const tl_command *command, tl_plan *plan);
void tl_reduce_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);
void tl_reduce_finish(const tl_cpu *cpu, const tl_command *command);

/* Reductions that say where, see parameters.h. */
void tl_arg_plan(const tl_command *command, tl_plan *plan);
void tl_arg_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);
void tl_arg_finish(const tl_command *command);

void tl_compare_plan(const tl_command *command, tl_plan *plan);
void tl_compare_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);
void tl_compare_finish(const tl_command *command);

void tl_linalg_plan(const tl_command *command, tl_plan *plan);
tl_status tl_linalg_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                        tl_error *error);
tl_status tl_linalg_finish(const tl_command *command, tl_error *error);

void tl_index_plan(const tl_command *command, tl_plan *plan);
tl_status tl_index_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                       tl_error *error);
void tl_index_finish(const tl_command *command);

void tl_along_plan(const tl_command *command, tl_plan *plan);
tl_status tl_along_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                       tl_error *error);

#endif
