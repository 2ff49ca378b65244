#include "engine/fusion.h"

#include <stdlib.h>
#include <string.h>

#include "engine/execute.h"

/* ---- what commands look like ---- */

static const tl_program *program_of(const tl_command *command) { return command->parameters; }

static int64_t numel_of(int ndim, const int64_t *shape) {
  int64_t count = 1;
  for (int d = 0; d < ndim; d++) count *= shape[d];
  return count;
}

/* Row-major in the given shape. */
static bool is_contiguous(int ndim, const int64_t *shape, const int64_t *stride) {
  int64_t step = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    if (shape[d] != 1 && stride[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

/* Whether the register that an output is stored from holds what loading it again would give. */
static bool is_stored_exactly(const tl_program *program, const tl_operand *out) {
  if (out->dtype == program->dtype) return true;
  return out->dtype == TL_bool && program->nsteps == 1 &&
         tl_ops[program->steps[0].op].family == TL_ELEMENTWISE &&
         tl_ops[program->steps[0].op].kind == TL_TEST;
}

static bool can_fail(const tl_program *program) {
  for (int s = 0; s < program->nsteps; s++) {
    if (program->dtype == TL_int64 && tl_op_can_fail((tl_op)program->steps[s].op)) return true;
  }
  return false;
}

bool tl_fusion_applies(const tl_fusion *fusion, const tl_command *command) {
  if (!fusion->enabled || command->inject_fault) return false;
  tl_family family = tl_ops[command->op].family;
  if (family != TL_ELEMENTWISE && family != TL_FILL && family != TL_COPY) return false;
  const tl_operand *out = &command->operands[0];
  const tl_program *program = program_of(command);
  return is_stored_exactly(program, out) && !can_fail(program) &&
         is_contiguous(out->ndim, out->shape, out->stride) &&
         tl_operand_numel(out) >= TL_FUSE_ELEMENTS;
}

/* ---- the predictor ---- */

static uint8_t *counter_of(const tl_fusion *fusion, const tl_command *command) {
  uintptr_t key = (uintptr_t)command->source / 16 * 31 + (uintptr_t)command->line;
  return (uint8_t *)&fusion->read_back[key % TL_PREDICTOR_LINES];
}

static bool is_read_back(const tl_fusion *fusion, const tl_command *command) {
  return *counter_of(fusion, command) >= 2;
}

/* ---- groups ---- */

void tl_group_begin(tl_group *group) { memset(group, 0, sizeof *group); }

/* A run of elements `stride` apart, seen in another shape with as many elements. */
static void unfold(int ndim, const int64_t *shape, int64_t stride, int64_t *strides) {
  for (int d = ndim - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d];
  }
}

static bool adopt_shape(tl_group *group, const tl_operand *out) {
  if (group->nresults == 0) {
    group->ndim = out->ndim;
    memcpy(group->shape, out->shape, out->ndim * sizeof *out->shape);
    return true;
  }
  if (numel_of(group->ndim, group->shape) != tl_operand_numel(out)) return false;
  if (out->ndim == 1) return true;
  if (group->ndim == 1) {
    group->ndim = out->ndim;
    memcpy(group->shape, out->shape, out->ndim * sizeof *out->shape);
    for (int i = 0; i < group->ninputs; i++) {
      unfold(group->ndim, group->shape, group->stride[i][0], group->stride[i]);
    }
    return true;
  }
  return group->ndim == out->ndim &&
         memcmp(group->shape, out->shape, out->ndim * sizeof *out->shape) == 0;
}

static void strides_in(const tl_group *group, const tl_operand *operand, int64_t *strides) {
  if (operand->ndim == group->ndim) {
    memcpy(strides, operand->stride, operand->ndim * sizeof *strides);
  } else {
    unfold(group->ndim, group->shape, operand->stride[0], strides);
  }
}

static tl_result *find_result(tl_group *group, const tl_storage *storage) {
  for (int i = 0; i < group->nresults; i++) {
    tl_result *result = &group->results[i];
    if (!result->replaced && result->command->operands[0].storage == storage) return result;
  }
  return NULL;
}

enum { NO_REGISTER = 255 };

/* The register that holds an operand: a result of the group, or an input. */
static uint8_t input_register(tl_group *group, const tl_operand *operand) {
  int64_t strides[TL_MAX_DIMS];
  strides_in(group, operand, strides);
  tl_result *result = find_result(group, operand->storage);
  if (result) {
    const tl_operand *out = &result->command->operands[0];
    if (operand->offset != out->offset || operand->dtype != out->dtype ||
        !is_contiguous(group->ndim, group->shape, strides)) {
      return NO_REGISTER;
    }
    result->read = true;
    return result->reg;
  }
  for (int i = 0; i < group->ninputs; i++) {
    const tl_operand *input = &group->inputs[i];
    if (input->storage == operand->storage && input->offset == operand->offset &&
        input->dtype == operand->dtype &&
        memcmp(group->stride[i], strides, (size_t)group->ndim * sizeof *strides) == 0) {
      return (uint8_t)i;
    }
  }
  if (group->ninputs == TL_MAX_INPUTS) return NO_REGISTER;
  group->inputs[group->ninputs] = *operand;
  memcpy(group->stride[group->ninputs], strides, (size_t)group->ndim * sizeof *strides);
  return (uint8_t)group->ninputs++;
}

/* Whether a copy stands for the input's register: it is stored when all steps have run. */
static bool is_copied(const tl_group *group, int input) {
  for (int r = 0; r < group->nresults; r++) {
    if (group->results[r].reg == input) return true;
  }
  return false;
}

/* What is written must not be read by the group except element by element, and before. */
static bool may_write(tl_group *group, const tl_operand *out) {
  tl_result *before = find_result(group, out->storage);
  if (before) {
    const tl_operand *old = &before->command->operands[0];
    if (old->offset != out->offset || old->dtype != out->dtype) return false;
    before->replaced = true;
  }
  for (int i = 0; i < group->ninputs; i++) {
    const tl_operand *input = &group->inputs[i];
    if (input->storage != out->storage) continue;
    if (is_copied(group, i) || input->offset != out->offset || input->dtype != out->dtype ||
        !is_contiguous(group->ndim, group->shape, group->stride[i])) {
      return false;
    }
  }
  return true;
}

/* Which steps and inputs a register is computed from. */
typedef struct tl_slice {
  bool step[TL_MAX_STEPS], input[TL_MAX_INPUTS];
} tl_slice;

static void add_to_slice(tl_slice *slice, uint8_t reg) {
  if (reg == TL_IMMEDIATE) return;
  if (reg < TL_MAX_INPUTS) {
    slice->input[reg] = true;
  } else {
    slice->step[reg - TL_MAX_INPUTS] = true;
  }
}

static tl_slice slice_of(const tl_group *group, uint8_t reg) {
  tl_slice slice = {{false}, {false}};
  add_to_slice(&slice, reg);
  for (int s = group->nsteps - 1; s >= 0; s--) {
    if (!slice.step[s] || tl_ops[group->steps[s].op].family == TL_FILL) continue;
    add_to_slice(&slice, group->steps[s].a);
    add_to_slice(&slice, group->steps[s].b);
    add_to_slice(&slice, group->steps[s].c);
  }
  return slice;
}

/* Whether the group overwrites what a recipe for the result would read. */
static bool loses_inputs(const tl_group *group, const tl_result *result) {
  tl_slice slice = slice_of(group, result->reg);
  for (int r = 0; r < group->nresults; r++) {
    const tl_storage *written = group->results[r].command->operands[0].storage;
    for (int i = 0; i < group->ninputs; i++) {
      if (slice.input[i] && group->inputs[i].storage == written) return true;
    }
  }
  return false;
}

/* Left virtual, unless it is stored or replaced. */
static bool is_virtual(const tl_fusion *fusion, const tl_group *group, const tl_result *result) {
  return result->command->operands[0].access & TL_FRESH && result->read && !result->replaced &&
         (result->released ||
          (!is_read_back(fusion, result->command) && !loses_inputs(group, result)));
}

static bool is_stored(const tl_fusion *fusion, const tl_group *group, const tl_result *result) {
  return !result->replaced && !is_virtual(fusion, group, result);
}

static int count_stored(const tl_fusion *fusion, const tl_group *group) {
  int count = 0;
  for (int r = 0; r < group->nresults; r++) count += is_stored(fusion, group, &group->results[r]);
  return count;
}

static bool add(tl_group *group, const tl_command *command) {
  const tl_program *program = program_of(command);
  const tl_operand *out = &command->operands[0];
  if (group->nresults == TL_MAX_STEPS) return false;
  if (group->nsteps + program->nsteps > TL_MAX_STEPS) return false;
  if (group->nresults > 0 && program->dtype != group->dtype) return false;
  group->dtype = (tl_dtype)program->dtype;
  if (!adopt_shape(group, out)) return false;
  uint8_t registers[TL_MAX_INPUTS];
  for (int i = 1; i < command->noperands; i++) {
    registers[i - 1] = input_register(group, &command->operands[i]);
    if (registers[i - 1] == NO_REGISTER) return false;
  }
  if (!may_write(group, out)) return false;
  tl_result *result = &group->results[group->nresults++];
  *result = (tl_result){.command = command, .reg = registers[0]};
  for (int s = 0; s < program->nsteps; s++) {
    tl_step *step = &group->steps[group->nsteps];
    *step = program->steps[s];
    if (tl_ops[step->op].family != TL_FILL) {
      if (step->a != TL_IMMEDIATE) step->a = registers[step->a];
      if (step->b != TL_IMMEDIATE) step->b = registers[step->b];
      if (step->c != TL_IMMEDIATE) step->c = registers[step->c];
    }
    step->out = result->reg = (uint8_t)(TL_MAX_INPUTS + group->nsteps++);
  }
  return true;
}

bool tl_group_add(const tl_fusion *fusion, tl_group *group, const tl_command *command) {
  tl_group longer = *group;
  if (!add(&longer, command) || count_stored(fusion, &longer) > TL_MAX_OUTPUTS) return false;
  *group = longer;
  return true;
}

/* Whether an input lies the other way round in memory.  A reduction takes its elements row by row,
 * and long rows would read a cache line for each; a program alone takes them tile by tile. */
static bool has_turned_input(const tl_group *group) {
  int last = group->ndim - 1;
  if (group->shape[last] < TL_LONG_ROW) return false;
  for (int i = 0; i < group->ninputs; i++) {
    const int64_t *stride = group->stride[i];
    if (stride[last] == 0 || stride[last] == 1) continue;
    for (int d = 0; d < last; d++) {
      if (stride[d] == 1 && group->shape[d] > 1) return true;
    }
  }
  return false;
}

bool tl_group_reduce(const tl_fusion *fusion, tl_group *group, const tl_command *command) {
  if (tl_ops[command->op].family != TL_REDUCE || command->inject_fault) return false;
  const tl_reduce *parameters = command->parameters;
  const tl_operand *out = &command->operands[0], *in = &command->operands[1];
  if (parameters->located || parameters->count < TL_FUSE_REDUCED ||
      !is_contiguous(in->ndim, in->shape, in->stride) ||
      tl_dtype_compute(group->dtype) != group->dtype ||
      tl_operand_numel(in) != numel_of(group->ndim, group->shape) || has_turned_input(group)) {
    return false;
  }
  tl_group longer = *group;
  tl_result *result = find_result(&longer, in->storage);
  if (!result || find_result(&longer, out->storage)) return false;
  const tl_operand *made = &result->command->operands[0];
  if (made->offset != in->offset || made->dtype != in->dtype) return false;
  for (int i = 0; i < group->ninputs; i++) {
    if (group->inputs[i].storage == out->storage) return false;
  }
  result->read = true;
  longer.reduction = command;
  longer.reduced = result->reg;
  if (count_stored(fusion, &longer) > TL_MAX_OUTPUTS) return false;
  *group = longer;
  return true;
}

void tl_group_release(tl_group *group, const tl_command *release) {
  for (int i = 0; i < release->noperands; i++) {
    tl_result *result = find_result(group, release->operands[i].storage);
    if (result) result->released = true;
  }
}

/* ---- from a group to commands ---- */

static void add_operand(tl_fused *fused, const tl_operand *operand, const int64_t *strides,
                        int ndim, int access) {
  tl_command *command = tl_fused_command(fused);
  int i = command->noperands++;
  memcpy(fused->stride[i], strides, (size_t)ndim * sizeof *strides);
  command->operands[i] = *operand;
  command->operands[i].shape = fused->shape;
  command->operands[i].stride = fused->stride[i];
  command->operands[i].ndim = (uint8_t)ndim;
  command->operands[i].access = (uint8_t)access;
}

/* The command that computes some results of the group, `of` standing for it in errors.  When `of`
 * is the group's reduction, that too. */
static void emit(const tl_group *group, const tl_slice *slice, int noutputs,
                 const tl_result *const *outputs, const tl_command *of, tl_fused *fused) {
  tl_command *command = tl_fused_command(fused);
  tl_program *program = (tl_program *)(void *)fused->program;
  memset(command, 0, sizeof *command);
  command->op = of->op;
  command->ticket = of->ticket;
  command->source = of->source;
  command->line = of->line;
  command->parameters = program;
  program->dtype = (uint8_t)group->dtype;
  program->nsteps = 0;
  program->noutputs = (uint8_t)noutputs;
  memcpy(fused->shape, group->shape, sizeof fused->shape);

  if (of == group->reduction) {
    fused->reduce = *(const tl_reduce *)of->parameters;
    fused->reduce.program = program;
    command->parameters = &fused->reduce;
    command->operands[command->noperands++] = of->operands[0];
  }

  int64_t contiguous[TL_MAX_DIMS];
  unfold(group->ndim, group->shape, 1, contiguous);
  for (int o = 0; o < noutputs; o++) {
    const tl_operand *out = &outputs[o]->command->operands[0];
    add_operand(fused, out, contiguous, group->ndim, out->access);
  }
  uint8_t renamed[TL_MAX_REGISTERS] = {0}, count = 0;
  for (int i = 0; i < group->ninputs; i++) {
    if (!slice->input[i]) continue;
    add_operand(fused, &group->inputs[i], group->stride[i], group->ndim, TL_READ);
    renamed[i] = count++;
  }
  for (int s = 0; s < group->nsteps; s++) {
    if (!slice->step[s]) continue;
    tl_step *step = &program->steps[program->nsteps++];
    *step = group->steps[s];
    if (tl_ops[step->op].family != TL_FILL) {
      if (step->a != TL_IMMEDIATE) step->a = renamed[step->a];
      if (step->b != TL_IMMEDIATE) step->b = renamed[step->b];
      if (step->c != TL_IMMEDIATE) step->c = renamed[step->c];
    }
    step->out = renamed[TL_MAX_INPUTS + s] = count++;
  }
  for (int o = 0; o < noutputs; o++) program->outputs[o] = renamed[outputs[o]->reg];
  if (of == group->reduction) fused->reduce.reg = renamed[group->reduced];
}

/* Fills in a recipe and links it to what it reads. */
static void link_recipe(tl_fusion *fusion, const tl_group *group, const tl_result *result,
                        tl_recipe *recipe) {
  tl_slice slice = slice_of(group, result->reg);
  emit(group, &slice, 1, &result, result->command, &recipe->fused);
  tl_command *command = tl_fused_command(&recipe->fused);
  recipe->storage = command->operands[0].storage;
  recipe->storage->recipe = recipe;
  recipe->computing = false;
  recipe->nholds = command->noperands - 1;
  for (int i = 0; i < recipe->nholds; i++) {
    tl_storage *storage = command->operands[i + 1].storage;
    tl_hold *hold = &recipe->holds[i];
    *hold = (tl_hold){recipe, storage, storage->holds, &storage->holds};
    if (hold->next) hold->next->link = &hold->next;
    storage->holds = hold;
  }
  recipe->next = fusion->recipes;
  recipe->link = &fusion->recipes;
  if (recipe->next) recipe->next->link = &recipe->next;
  fusion->recipes = recipe;
  fusion->virtual_bytes += recipe->storage->bytes;
}

bool tl_group_finish(tl_fusion *fusion, const tl_group *group, tl_fused *fused) {
  const tl_result *outputs[TL_MAX_STEPS] = {NULL}, *virtuals[TL_MAX_STEPS];
  tl_recipe *recipes[TL_MAX_STEPS];
  int noutputs = 0, nvirtuals = 0;
  for (int r = 0; r < group->nresults; r++) {
    const tl_result *result = &group->results[r];
    if (is_stored(fusion, group, result)) {
      outputs[noutputs++] = result;
    } else if (!result->replaced && !result->released) {
      recipes[nvirtuals] = aligned_alloc(alignof(tl_recipe), sizeof(tl_recipe));
      if (!recipes[nvirtuals]) {
        while (nvirtuals > 0) free(recipes[--nvirtuals]);
        return false;
      }
      virtuals[nvirtuals++] = result;
    }
  }
  tl_slice all;
  memset(&all, true, sizeof all);
  const tl_command *last = group->results[group->nresults - 1].command;
  emit(group, &all, noutputs, outputs, group->reduction ? group->reduction : last, fused);
  for (int v = 0; v < nvirtuals; v++) link_recipe(fusion, group, virtuals[v], recipes[v]);
  return true;
}

/* ---- virtual values later on ---- */

tl_recipe *tl_fusion_in_the_way(const tl_fusion *fusion, const tl_command *command) {
  if (!fusion->recipes || command->op == TL_OP_release) return NULL;
  for (int i = 0; i < command->noperands; i++) {
    const tl_operand *operand = &command->operands[i];
    tl_recipe *recipe = operand->storage->recipe;
    if (recipe && !recipe->computing && !(operand->access & TL_WHOLE)) return recipe;
    if (!(operand->access & TL_WRITE)) continue;
    for (tl_hold *hold = operand->storage->holds; hold; hold = hold->next) {
      if (!hold->recipe->computing) return hold->recipe;
    }
  }
  return NULL;
}

void tl_recipe_start(tl_fusion *fusion, tl_recipe *recipe, tl_fused *fused) {
  recipe->computing = true;
  uint8_t *counter = counter_of(fusion, tl_fused_command(&recipe->fused));
  if (*counter < 3) ++*counter;
  *fused = recipe->fused;
  tl_command *command = tl_fused_command(fused);
  command->parameters = fused->program;
  for (int i = 0; i < command->noperands; i++) {
    command->operands[i].shape = fused->shape;
    command->operands[i].stride = fused->stride[i];
  }
}

void tl_storage_settle(tl_fusion *fusion, tl_storage *storage) {
  if (!storage->kept || storage->holds || storage->readers || storage->writer) return;
  storage->kept = false;
  tl_storage_empty(storage, fusion->pool);
  storage->next = fusion->freed;
  fusion->freed = storage;
  fusion->has_freed = true;
}

void tl_recipe_drop(tl_fusion *fusion, tl_recipe *recipe) {
  if (!recipe->computing) {
    uint8_t *counter = counter_of(fusion, tl_fused_command(&recipe->fused));
    if (*counter > 0) --*counter;
  }
  fusion->virtual_bytes -= recipe->storage->bytes;
  recipe->storage->recipe = NULL;
  for (int i = 0; i < recipe->nholds; i++) {
    tl_hold *hold = &recipe->holds[i];
    *hold->link = hold->next;
    if (hold->next) hold->next->link = hold->link;
  }
  for (int i = 0; i < recipe->nholds; i++) tl_storage_settle(fusion, recipe->holds[i].storage);
  *recipe->link = recipe->next;
  if (recipe->next) recipe->next->link = recipe->link;
  free(recipe);
}

void tl_fusion_issue(tl_fusion *fusion, tl_command *command) {
  if (!fusion->recipes) return;
  for (int i = 0; i < command->noperands; i++) {
    tl_storage *storage = command->operands[i].storage;
    bool ends = command->op == TL_OP_release || command->operands[i].access & TL_WHOLE;
    if (!storage || !ends) continue;
    if (storage->recipe && !storage->recipe->computing) tl_recipe_drop(fusion, storage->recipe);
    if (command->op == TL_OP_release && storage->holds) {
      storage->kept = true;
      command->operands[i].storage = NULL;
    }
  }
}
