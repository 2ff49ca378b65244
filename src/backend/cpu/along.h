/* Commands along the last dimension of their operands, line by line: what scans, sorting, searching
 * and counting share. */
#ifndef TL_CPU_ALONG_H
#define TL_CPU_ALONG_H

#include "backend/cpu/families.h"
#include "tensor/parameters.h"

static inline int64_t tl_line_size(const tl_operand *operand) {
  return operand->shape[operand->ndim - 1];
}

int64_t tl_line_count(const tl_operand *operand);

/* Whether neighbouring lines are nearer in memory than the neighbours in a line, so that it is
 * better to take a step in all of them than all of one. */
bool tl_lines_are_across(const tl_operand *operand);

/* The first element of a line in memory, and the steps to its next one and to the next line. */
typedef struct tl_column {
  char *base;
  int64_t step;   /* bytes */
  int64_t stride; /* elements */
} tl_column;

tl_column tl_column_of(const tl_operand *operand, int64_t line);

/* Elements first .. first+count-1 of an operand, in row-major order: in its own memory where they
 * lie so, else loaded into a buffer. */
const void *tl_elements(const tl_cpu *cpu, const tl_operand *operand, tl_dtype dtype, int64_t first,
                        int64_t count, void *buffer);

/* Where to write such elements: the operand's own memory or the buffer; the latter's are then to be
 * stored by tl_elements_store. */
void *tl_elements_target(const tl_operand *operand, tl_dtype dtype, int64_t first, void *buffer);
void tl_elements_store(const tl_cpu *cpu, const tl_operand *operand, tl_dtype dtype, int64_t first,
                       int64_t count, const void *target);

/* Memory for a chunk while it runs: of a command with one chunk the scratch that it asked for,
 * otherwise memory of its own.  NULL: the error is set. */
void tl_work_plan(tl_plan *plan, size_t bytes);
void *tl_work_take(const tl_command *command, size_t bytes, tl_error *error);
void tl_work_give(const tl_command *command, void *work);

void tl_scan_plan(const tl_command *command, tl_plan *plan);
void tl_scan_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);

void tl_sort_plan(const tl_command *command, tl_plan *plan);
tl_status tl_sort_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                      tl_error *error);

void tl_search_plan(const tl_command *command, tl_plan *plan);
void tl_search_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk);

void tl_count_plan(const tl_command *command, tl_plan *plan);
tl_status tl_count_run(const tl_cpu *cpu, const tl_command *command, uint32_t chunk,
                       tl_error *error);

#endif
