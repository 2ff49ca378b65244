#include "frontend/enqueue.h"

#include <stdalign.h>
#include <string.h>

#include "frontend/arguments.h"
#include "frontend/interrupt.h"
#include "frontend/trace.h"

/* Between the check of the arguments and here a result was made, which may have run a finalizer,
 * which may have closed an operand. */
static void check_open(lua_State *L, tl_op op, const tl_storage *storage) {
  if (!storage) tl_fail(L, "%s: a finalizer has closed an operand", tl_ops[op].name);
}

void tl_check_unfolded(lua_State *L, tl_op op, const tl_view *view) {
  if (!tl_view_may_fold(view)) return;
  bool in_place = tl_ops[op].family == TL_ELEMENTWISE;
  tl_fail(L, "%s%s: several elements of the tensor written are one in memory: clone it first",
          tl_ops[op].name, in_place ? "_" : "");
}

/* An operand that is read as well is written here and there: then it is the caller's to check. */
static void check_written(lua_State *L, tl_op op, const tl_operand *out) {
  if (!(out->access & TL_WRITE) || (out->access & (TL_FRESH | TL_READ))) return;
  tl_view view = {.ndim = out->ndim};
  for (int d = 0; d < out->ndim; d++) {
    view.shape[d] = out->shape[d];
    view.stride[d] = out->stride[d];
  }
  tl_check_unfolded(L, op, &view);
}

void tl_enqueue(lua_State *L, tl_op op, int noperands, const tl_operand *operands,
                const void *parameters, size_t parameters_size) {
  tl_context *context = tl_context_of(L);
  tl_error error;
  tl_draft draft = {
      .op = op,
      .noperands = noperands,
      .operands = operands,
      .parameters = parameters,
      .parameters_size = parameters_size,
  };
  if (tl_interrupt_pending()) tl_interrupt_raise(L); /* a coroutine has no hook of its own */
  for (int i = 0; i < noperands; i++) check_open(L, op, operands[i].storage);
  check_written(L, op, &operands[0]);
  tl_context_source(L, context, &draft.source, &draft.line);
  if (context->trace && tl_trace_is_active(context)) {
    tl_trace_enqueue(L, context, &draft);
    return;
  }
  if (tl_engine_submit(context->engine, &draft, &error) != TL_OK) tl_raise(L, &error);
}

tl_operand tl_operand_of(const tl_tensor *tensor, const tl_view *view, int access) {
  return (tl_operand){
      .storage = tensor->storage,
      .offset = view->offset,
      .shape = view->shape,
      .stride = view->stride,
      .dtype = view->dtype,
      .ndim = view->ndim,
      .access = (uint8_t)access,
  };
}

/* Whether writing out element by element changes elements of `input` that are still to be read. */
static bool conflicts(const tl_tensor *out, const tl_tensor *input) {
  return input->storage == out->storage && !tl_view_is_same(&input->view, &out->view) &&
         tl_view_may_overlap(&input->view, &out->view);
}

/* All views are one run of as many elements. */
static bool make_flat_loop(tl_loop *loop, int nviews, const tl_view *const *views) {
  for (int v = 0; v < nviews; v++) {
    if (!tl_view_same_shape(views[v], views[0]) || !tl_view_is_contiguous(views[v])) return false;
    loop->stride[v][0] = 1;
  }
  loop->ndim = 1;
  loop->shape[0] = tl_view_numel(views[0]);
  return true;
}

void tl_enqueue_step(lua_State *L, tl_op op, tl_tensor *out, bool fresh, tl_dtype dtype,
                     const tl_step *step, int ninputs, const tl_tensor *const *inputs) {
  const tl_tensor *tensors[TL_MAX_LOOP_VIEWS] = {out};
  const tl_view *views[TL_MAX_LOOP_VIEWS] = {&out->view};
  for (int i = 0; i < ninputs; i++) {
    tl_dtype own = (tl_dtype)inputs[i]->view.dtype;
    tensors[i + 1] = conflicts(out, inputs[i]) ? tl_enqueue_copy(L, TL_OP_clone, inputs[i], own)
                                               : inputs[i];
    views[i + 1] = &tensors[i + 1]->view;
  }
  int nviews = ninputs + 1;
  tl_loop loop;
  if (!make_flat_loop(&loop, nviews, views)) {
    tl_view expanded[TL_MAX_LOOP_VIEWS];
    for (int v = 1; v < nviews; v++) {
      tl_view_expand(&expanded[v], views[v], out->view.ndim, out->view.shape);
      views[v] = &expanded[v];
    }
    tl_loop_make(&loop, nviews, views);
  }

  tl_operand operands[TL_MAX_LOOP_VIEWS];
  for (int v = 0; v < nviews; v++) {
    operands[v] = (tl_operand){
        .storage = tensors[v]->storage,
        .offset = tensors[v]->view.offset,
        .shape = loop.shape,
        .stride = loop.stride[v],
        .dtype = tensors[v]->view.dtype,
        .ndim = (uint8_t)loop.ndim,
        .access = TL_READ,
    };
  }
  check_open(L, op, out->storage);
  size_t written = (size_t)tl_view_numel(&out->view) * tl_dtype_size((tl_dtype)out->view.dtype);
  bool whole = fresh || written == out->storage->bytes; /* what is read is an operand of its own */
  operands[0].access = (uint8_t)(TL_WRITE | (whole ? TL_WHOLE : 0) | (fresh ? TL_FRESH : 0));

  alignas(tl_program) char buffer[sizeof(tl_program) + sizeof(tl_step)];
  tl_program *program = (tl_program *)(void *)buffer;
  program->dtype = (uint8_t)dtype;
  program->nsteps = step ? 1 : 0;
  program->noutputs = 1;
  program->outputs[0] = step ? step->out : 0;
  if (step) memcpy(buffer + sizeof *program, step, sizeof *step);
  size_t size = sizeof *program + (step ? sizeof *step : 0);
  tl_enqueue(L, op, nviews, operands, program, size);
}

tl_dtype tl_copy_dtype(tl_dtype from, tl_dtype to) {
  return from == to ? from : tl_dtype_compute(from);
}

tl_tensor *tl_enqueue_copy(lua_State *L, tl_op op, const tl_tensor *tensor, tl_dtype dtype) {
  tl_view view;
  tl_view_make_like(&view, dtype, &tensor->view);
  tl_tensor *copy = tl_tensor_new(L, &view, tl_ops[op].name);
  tl_dtype moved = tl_copy_dtype((tl_dtype)tensor->view.dtype, dtype);
  tl_enqueue_step(L, op, copy, true, moved, NULL, 1, &tensor);
  return copy;
}

void tl_enqueue_fill(lua_State *L, tl_op op, tl_tensor *out, bool fresh, tl_scalar value) {
  tl_step step = {.op = (uint16_t)op,
                  .a = TL_IMMEDIATE,
                  .b = TL_IMMEDIATE,
                  .c = TL_IMMEDIATE,
                  .immediate = value};
  tl_enqueue_step(L, op, out, fresh, tl_dtype_compute((tl_dtype)out->view.dtype), &step, 0, NULL);
}

tl_tensor *tl_enqueue_truth(lua_State *L, tl_op op, const tl_tensor *tensor) {
  tl_view view;
  tl_view_make_like(&view, TL_bool, &tensor->view);
  tl_tensor *out = tl_tensor_new(L, &view, tl_ops[op].name);
  tl_step step = {
      .op = TL_OP_ne, .out = 1, .a = 0, .b = TL_IMMEDIATE, .c = TL_IMMEDIATE, .immediate = {0}};
  tl_dtype compute = tl_dtype_compute((tl_dtype)tensor->view.dtype);
  tl_enqueue_step(L, TL_OP_ne, out, true, compute, &step, 1, &tensor);
  return out;
}

tl_tensor *tl_enqueue_number(lua_State *L, int index, const char *name, tl_dtype dtype) {
  tl_view view;
  tl_scalar number = tl_check_scalar(L, index, name, dtype);
  tl_view_make(&view, dtype, 0, NULL, NULL);
  tl_tensor *tensor = tl_tensor_new(L, &view, name);
  tl_enqueue_fill(L, TL_OP_full, tensor, true, number);
  return tensor;
}
