#include "frontend/trace.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/interrupt.h"
#include "frontend/tensor.h"
#include "tensor/parameters.h"

typedef enum tl_slot_kind { ARGUMENT, CAPTURED, CONSTANT, FRESH } tl_slot_kind;

typedef struct tl_slot {
  tl_slot_kind kind;
  tl_storage *storage; /* that the traced function sees; later only a captured one's handle */
  bool used;           /* in a command or as a result */
  bool kept;           /* a result has it */
  size_t last;         /* the record that uses it last */
  size_t bytes;        /* constant or fresh */
  void *constant;      /* its bytes */
  /* of an argument */
  int argument;        /* stack index of the first argument with this storage */
  int64_t base;        /* that argument's offset when it was traced */
  tl_storage *actual;  /* while it is traced: what is stood for */
} tl_slot;

typedef struct tl_reference {
  size_t slot;
  int64_t offset; /* as recorded */
} tl_reference;

/* A command, in one block; its draft's pointers point into it. */
typedef struct tl_record {
  tl_draft draft;
  tl_operand *operands;
  tl_reference *references;
  void *parameters;
} tl_record;

typedef struct tl_result {
  enum { IS_NIL, IS_BOOLEAN, IS_INTEGER, IS_FLOAT, IS_STRING, IS_ARGUMENT, IS_TENSOR } kind;
  union {
    bool boolean;
    lua_Integer integer;
    lua_Number number;
    char *string;
    int argument; /* the very tensor of this stack index */
    size_t slot;
  } value;
  size_t length; /* of a string */
  tl_view view;  /* of a tensor */
} tl_result;

/* Where a slot is in one replay. */
typedef struct tl_place {
  tl_storage *storage;
  int64_t shift; /* of an argument's offsets against those recorded */
} tl_place;

struct tl_trace {
  tl_slot *slots;
  tl_record **records;
  tl_result *results;
  size_t nslots, slots_capacity, nrecords, records_capacity, nresults;
  size_t result_bytes;   /* of storages that results need at each replay */
  bool writes_outside;   /* to an argument or a captured tensor */
  unsigned replays;      /* under way: a finalizer may start another */
  tl_place *spare;       /* for the next replay */
  /* while it is recorded */
  lua_State *L;
  tl_trace **owner;
  const char *failure, *failed_name; /* why it cannot be used: a format and the function's name */
};

static const char NO_MEMORY[] = "compile: %s: not enough memory";
static const char READS[] =
    "compile: %s: a function being traced has no values to read: return the tensor, "
    "read it outside";
static const char HAS_EFFECT[] = "compile: %s: would not be repeated: call it outside the function";
static const char OVERLAPS[] =
    "compile: %s: overlaps a tensor that is an argument and used in the function by itself too";

/* Raises it, and again at the end should the function catch it. */
static void fail(lua_State *L, tl_trace *trace, const char *format, const char *name) {
  trace->failure = format;
  trace->failed_name = name;
  tl_fail(L, format, name);
}

/* ---- life ---- */

static void drop_storage(tl_context *context, tl_storage *storage) {
  tl_tensor handle = {.storage = storage};
  tl_tensor_drop(context, &handle);
}

/* The function's view of it ends: only handles of captured storages stay. */
static void drop_stand_ins(tl_context *context, tl_trace *trace) {
  for (size_t s = 0; s < trace->nslots && trace->slots[s].kind == ARGUMENT; s++) {
    drop_storage(context, trace->slots[s].storage);
    trace->slots[s].storage = trace->slots[s].actual = NULL;
  }
}

void tl_trace_free(tl_context *context, tl_trace *trace) {
  for (size_t s = 0; s < trace->nslots; s++) {
    if (trace->slots[s].kind == CAPTURED) drop_storage(context, trace->slots[s].storage);
    free(trace->slots[s].constant);
  }
  for (size_t r = 0; r < trace->nrecords; r++) free(trace->records[r]);
  for (size_t r = 0; r < trace->nresults; r++) {
    if (trace->results[r].kind == IS_STRING) free(trace->results[r].value.string);
  }
  free(trace->slots);
  free(trace->records);
  free(trace->results);
  free(trace->spare);
  free(trace);
}

void tl_trace_abandon(tl_context *context) {
  tl_trace *trace = context->trace;
  if (!trace) return;
  context->trace = NULL;
  *trace->owner = NULL;
  drop_stand_ins(context, trace);
  tl_trace_free(context, trace);
}

bool tl_trace_in_use(const tl_trace *trace) { return trace->replays > 0; }

bool tl_trace_is_active(tl_context *context) {
  if (context->trace && lua_status(context->trace->L) > LUA_YIELD) tl_trace_abandon(context);
  return context->trace != NULL;
}

/* ---- recording ---- */

static void *grown(void *array, size_t count, size_t *capacity, size_t size) {
  if (count < *capacity) return array;
  size_t wanted = *capacity ? 2 * *capacity : 16;
  void *larger = realloc(array, wanted * size);
  if (larger) *capacity = wanted;
  return larger;
}

/* Adds a slot; NULL when there is no memory.  A storage says which slot it was last given, and the
 * slot whether that holds still. */
static tl_slot *add_slot(tl_trace *trace, tl_slot_kind kind, tl_storage *storage) {
  tl_slot *slots = grown(trace->slots, trace->nslots, &trace->slots_capacity, sizeof *slots);
  if (!slots) return NULL;
  trace->slots = slots;
  storage->slot = (uint32_t)trace->nslots;
  tl_slot *slot = &slots[trace->nslots++];
  *slot = (tl_slot){.kind = kind, .storage = storage};
  return slot;
}

/* The slot of a storage that the function uses; a storage not seen before is captured. */
static tl_slot *use(lua_State *L, tl_trace *trace, tl_storage *storage, const char *name) {
  tl_slot *slot = NULL;
  if (storage->slot < trace->nslots && trace->slots[storage->slot].storage == storage) {
    slot = &trace->slots[storage->slot];
  } else {
    slot = add_slot(trace, CAPTURED, storage);
    if (!slot) fail(L, trace, NO_MEMORY, name);
    tl_storage_retain(storage);
  }
  /* Only tensor{...} gives a value to a storage that no command has used, and now it is still. */
  if (slot->kind == FRESH && !slot->used && storage->data) {
    slot->constant = malloc(slot->bytes + 1);
    if (!slot->constant) fail(L, trace, NO_MEMORY, name);
    memcpy(slot->constant, storage->data, slot->bytes);
    slot->kind = CONSTANT;
  }
  slot->used = true;
  return slot;
}

void tl_trace_add_storage(lua_State *L, tl_context *context, tl_storage *storage) {
  tl_slot *slot = add_slot(context->trace, FRESH, storage);
  if (!slot) fail(L, context->trace, NO_MEMORY, "tensor");
  slot->bytes = storage->bytes;
}

static tl_record *copy_draft(const tl_draft *draft) {
  size_t operands = (size_t)draft->noperands, sizes = 0;
  for (size_t i = 0; i < operands; i++) sizes += 2u * draft->operands[i].ndim;
  tl_record *record = malloc(sizeof *record + operands * sizeof *record->operands +
                             operands * sizeof *record->references + sizes * sizeof(int64_t) +
                             draft->parameters_size);
  if (!record) return NULL;
  record->draft = *draft;
  record->operands = (tl_operand *)(void *)(record + 1);
  record->references = (tl_reference *)(void *)(record->operands + operands);
  int64_t *at = (int64_t *)(void *)(record->references + operands);
  for (size_t i = 0; i < operands; i++) {
    const tl_operand *from = &draft->operands[i];
    tl_operand *to = &record->operands[i];
    *to = *from;
    to->shape = memcpy(at, from->shape, from->ndim * sizeof *at);
    at += from->ndim;
    to->stride = memcpy(at, from->stride, from->ndim * sizeof *at);
    at += from->ndim;
  }
  record->parameters = at;
  if (draft->parameters_size) memcpy(at, draft->parameters, draft->parameters_size);
  record->draft.operands = record->operands;
  record->draft.parameters = record->parameters;
  return record;
}

/* Puts the storages of this call into an operand. */
static void place(const tl_slot *slot, const tl_reference *reference, tl_operand *operand,
                  tl_storage *storage, int64_t shift) {
  operand->storage = storage;
  operand->offset = reference->offset + shift;
  /* Of an operand that is read too, not all need be written. */
  if (slot->kind != ARGUMENT || (operand->access & (TL_WRITE | TL_READ)) != TL_WRITE) return;
  size_t written = (size_t)tl_operand_numel(operand) * tl_dtype_size((tl_dtype)operand->dtype);
  operand->access = (uint8_t)(TL_WRITE | (written == storage->bytes ? TL_WHOLE : 0));
}

/* Whether the command reads elements that it writes in another order, through another slot: the
 * frontend copies such an input first when it knows that the storages are one. */
static bool overlaps(const tl_record *record) {
  const tl_operand *out = &record->operands[0];
  for (int i = 1; i < record->draft.noperands; i++) {
    const tl_operand *in = &record->operands[i];
    size_t bytes = out->ndim * sizeof *out->shape;
    if (in->storage != out->storage ||
        record->references[i].slot == record->references[0].slot) {
      continue;
    }
    if (out->access & TL_READ || in->offset != out->offset || in->ndim != out->ndim ||
        in->dtype != out->dtype ||
        memcmp(in->shape, out->shape, bytes) != 0 || memcmp(in->stride, out->stride, bytes) != 0) {
      return true;
    }
  }
  return false;
}

void tl_trace_enqueue(lua_State *L, tl_context *context, const tl_draft *draft) {
  tl_trace *trace = context->trace;
  const char *name = tl_ops[draft->op].name;
  tl_record **records =
      grown(trace->records, trace->nrecords, &trace->records_capacity, sizeof *records);
  if (!records) fail(L, trace, NO_MEMORY, name);
  trace->records = records;
  tl_record *record = copy_draft(draft);
  if (!record) fail(L, trace, NO_MEMORY, name);
  size_t index = trace->nrecords++;
  records[index] = record;
  for (int i = 0; i < draft->noperands; i++) {
    tl_operand *operand = &record->operands[i];
    tl_reference *reference = &record->references[i];
    tl_slot *slot = use(L, trace, operand->storage, name);
    slot->last = index;
    *reference = (tl_reference){(size_t)(slot - trace->slots), operand->offset};
    bool outside = slot->kind == ARGUMENT || slot->kind == CAPTURED;
    if (outside && (operand->access & TL_WRITE)) trace->writes_outside = true;
    place(slot, reference, operand, slot->kind == ARGUMENT ? slot->actual : slot->storage, 0);
  }
  if (overlaps(record)) fail(L, trace, OVERLAPS, name);
  tl_error error;
  if (tl_engine_submit(context->engine, &record->draft, &error) != TL_OK) tl_raise(L, &error);
}

void tl_trace_refuse_read(lua_State *L, tl_context *context, const char *name) {
  if (tl_trace_is_active(context)) fail(L, context->trace, READS, name);
}

void tl_trace_refuse_effect(lua_State *L, tl_context *context, const char *name) {
  if (tl_trace_is_active(context)) fail(L, context->trace, HAS_EFFECT, name);
}

/* ---- beginning and end ---- */

/* The slot that stands for the storage of an argument. */
static tl_slot *stand_in(lua_State *L, tl_context *context, int argument, const tl_tensor *tensor) {
  static const char kept[] =
      "compile: this was the argument of a function while it was traced, and is none outside";
  tl_trace *trace = context->trace;
  tl_storage *actual = tensor->storage, *storage;
  for (size_t s = 0; s < trace->nslots; s++) {
    if (trace->slots[s].actual == actual) return &trace->slots[s];
  }
  tl_error error;
  if (tl_engine_storage(tl_context_engine(L, context), 0, &storage, &error) != TL_OK) {
    tl_raise(L, &error);
  }
  tl_slot *slot = add_slot(trace, ARGUMENT, storage);
  if (!slot) {
    drop_storage(context, storage);
    fail(L, trace, NO_MEMORY, "trace");
  }
  tl_engine_poison(storage, kept);
  slot->actual = actual;
  slot->argument = argument;
  slot->base = tensor->view.offset;
  return slot;
}

void tl_trace_begin(lua_State *L, tl_context *context, int nargs, tl_trace **owner) {
  tl_trace *trace = calloc(1, sizeof *trace);
  if (!trace) tl_fail(L, NO_MEMORY, "trace");
  trace->L = L;
  trace->owner = owner;
  *owner = context->trace = trace;
  for (int i = 1; i <= nargs; i++) {
    const tl_tensor *tensor = tl_tensor_test(L, i);
    if (!tensor) {
      lua_pushvalue(L, i);
      continue;
    }
    tl_tensor *given = tl_tensor_push(L, &tensor->view);
    const tl_slot *slot = stand_in(L, context, i, tensor);
    tl_storage_retain(slot->storage);
    given->storage = slot->storage;
  }
}

/* What the value at a stack index is, when a replay is to give it again. */
static void take_result(lua_State *L, tl_trace *trace, int nargs, int given, int first, int index) {
  tl_result *result = &trace->results[trace->nresults];
  result->kind = IS_NIL;
  const tl_tensor *tensor = tl_tensor_test(L, index);
  if (tensor && !tensor->storage) {
    tl_fail(L, "compile: result %d is a tensor that has been closed", index - first + 1);
  } else if (tensor) {
    for (int i = 0; i < nargs; i++) {
      if (!lua_rawequal(L, given + i, index)) continue;
      result->kind = IS_ARGUMENT;
      result->value.argument = i + 1;
      trace->nresults++;
      return;
    }
    tl_slot *slot = use(L, trace, tensor->storage, "result");
    if (!slot->kept && (slot->kind == CONSTANT || slot->kind == FRESH)) {
      trace->result_bytes += slot->bytes;
    }
    slot->kept = true;
    result->kind = IS_TENSOR;
    result->value.slot = (size_t)(slot - trace->slots);
    result->view = tensor->view;
  } else if (lua_type(L, index) == LUA_TBOOLEAN) {
    result->kind = IS_BOOLEAN;
    result->value.boolean = lua_toboolean(L, index);
  } else if (lua_isinteger(L, index)) {
    result->kind = IS_INTEGER;
    result->value.integer = lua_tointeger(L, index);
  } else if (lua_type(L, index) == LUA_TNUMBER) {
    result->kind = IS_FLOAT;
    result->value.number = lua_tonumber(L, index);
  } else if (lua_type(L, index) == LUA_TSTRING) {
    const char *text = lua_tolstring(L, index, &result->length);
    result->value.string = malloc(result->length + 1);
    if (!result->value.string) fail(L, trace, NO_MEMORY, "result");
    memcpy(result->value.string, text, result->length);
    result->kind = IS_STRING;
  } else if (!lua_isnil(L, index)) {
    tl_fail(L, "compile: result %d is a %s: a compiled function gives tensors, numbers, strings, "
            "booleans and nil", index - first + 1, luaL_typename(L, index));
  }
  trace->nresults++;
}

void tl_trace_end(lua_State *L, tl_context *context, int nargs, int given, int first) {
  tl_trace *trace = context->trace;
  int last = lua_gettop(L);
  if (trace->failure) tl_fail(L, trace->failure, trace->failed_name);
  luaL_checkstack(L, 4, "compile");
  if (last >= first) {
    trace->results = malloc((size_t)(last - first + 1) * sizeof *trace->results);
    if (!trace->results) fail(L, trace, NO_MEMORY, "result");
  }
  for (int i = first; i <= last; i++) take_result(L, trace, nargs, given, first, i);
  for (int i = first; i <= last; i++) {
    const tl_result *result = &trace->results[i - first];
    if (result->kind == IS_ARGUMENT) {
      lua_pushvalue(L, result->value.argument);
      lua_replace(L, i);
    } else if (result->kind == IS_TENSOR && trace->slots[result->value.slot].kind == ARGUMENT) {
      const tl_slot *slot = &trace->slots[result->value.slot];
      tl_tensor *tensor = tl_tensor_test(L, i);
      if (tensor->storage != slot->storage) continue; /* the same result twice */
      tl_storage_retain(slot->actual);
      tensor->storage = slot->actual;
      drop_storage(context, slot->storage);
    }
  }
  context->trace = NULL;
  drop_stand_ins(context, trace);
}

/* ---- replaying ---- */

static tl_status make_storage(lua_State *L, tl_context *context, const tl_slot *slot,
                              const char *name, tl_storage **storage, tl_error *error) {
  tl_status status = tl_engine_storage(context->engine, slot->bytes, storage, error);
  if (status == TL_NO_MEMORY) { /* some of it may be garbage */
    lua_gc(L, LUA_GCCOLLECT);
    status = tl_engine_storage(context->engine, slot->bytes, storage, error);
  }
  if (status != TL_OK) {
    tl_error reason = *error;
    *storage = NULL;
    return status == TL_INTERRUPTED ? status
                                    : tl_error_set(error, status, "%s: %.400s", name, reason.text);
  }
  context->live += slot->bytes;
  if (slot->kind != CONSTANT) return TL_OK;
  void *bytes = tl_engine_fill(context->engine, *storage);
  if (!bytes) return tl_error_set(error, TL_NO_MEMORY, "tensor: out of memory");
  memcpy(bytes, slot->constant, slot->bytes);
  return TL_OK;
}

/* An argument is also captured, which it was not when the trace was made. */
static bool is_aliased(const tl_trace *trace, const tl_place *places) {
  for (size_t a = 0; a < trace->nslots && trace->slots[a].kind == ARGUMENT; a++) {
    for (size_t s = a + 1; s < trace->nslots; s++) {
      if (trace->slots[s].kind == CAPTURED && places[s].storage == places[a].storage) return true;
    }
  }
  return false;
}

static void draw(tl_context *context, const tl_record *record) {
  const tl_operand *out = &record->operands[0];
  tl_generate *parameters = record->parameters;
  parameters->seed = context->random.seed;
  parameters->position = tl_generator_draw(&context->random, (tl_dtype)out->dtype,
                                           (uint64_t)tl_operand_numel(out));
}

/* No Lua runs between placing the operands and submitting, so that replays can nest. */
static tl_status submit(lua_State *L, tl_context *context, tl_trace *trace, size_t index,
                        tl_place *places, bool aliased, tl_error *error) {
  tl_record *record = trace->records[index];
  const char *name = tl_ops[record->draft.op].name;
  int noperands = record->draft.noperands;
  if (tl_interrupt_pending()) return tl_error_set(error, TL_INTERRUPTED, "interrupted");
  for (int i = 0; i < noperands; i++) {
    size_t s = record->references[i].slot;
    if (places[s].storage) continue;
    tl_status status =
        make_storage(L, context, &trace->slots[s], name, &places[s].storage, error);
    if (status != TL_OK) return status;
  }
  for (int i = 0; i < noperands; i++) {
    const tl_reference *reference = &record->references[i];
    const tl_place *at = &places[reference->slot];
    place(&trace->slots[reference->slot], reference, &record->operands[i], at->storage, at->shift);
  }
  if (aliased && overlaps(record)) return tl_error_set(error, TL_INVALID, OVERLAPS, name);
  if (record->draft.op == TL_OP_rand || record->draft.op == TL_OP_randn) draw(context, record);
  tl_status status = tl_engine_submit(context->engine, &record->draft, error);
  if (status != TL_OK) return status;
  for (int i = 0; i < noperands; i++) {
    size_t s = record->references[i].slot;
    const tl_slot *slot = &trace->slots[s];
    bool ours = slot->kind == CONSTANT || slot->kind == FRESH;
    if (!ours || slot->kept || slot->last != index || !places[s].storage) continue;
    drop_storage(context, places[s].storage);
    places[s].storage = NULL;
  }
  return TL_OK;
}

static tl_status run(lua_State *L, tl_context *context, tl_trace *trace, tl_place *places,
                     tl_error *error) {
  for (size_t s = 0; s < trace->nslots; s++) {
    const tl_slot *slot = &trace->slots[s];
    places[s] = (tl_place){slot->kind == CAPTURED ? slot->storage : NULL, 0};
    if (slot->kind != ARGUMENT) continue;
    const tl_tensor *tensor = tl_tensor_test(L, slot->argument);
    places[s] = (tl_place){tensor->storage, tensor->view.offset - slot->base};
  }
  bool aliased = trace->writes_outside && is_aliased(trace, places);
  tl_status status = TL_OK;
  for (size_t r = 0; r < trace->nrecords && status == TL_OK; r++) {
    status = submit(L, context, trace, r, places, aliased, error);
  }
  for (size_t r = 0; r < trace->nresults && status == TL_OK; r++) { /* constants without command */
    const tl_result *result = &trace->results[r];
    size_t s = result->value.slot;
    if (result->kind != IS_TENSOR || places[s].storage) continue;
    status = make_storage(L, context, &trace->slots[s], "tensor", &places[s].storage, error);
  }
  return status;
}

/* Tensors among them are still closed. */
static void push_results(lua_State *L, const tl_trace *trace) {
  for (size_t r = 0; r < trace->nresults; r++) {
    const tl_result *result = &trace->results[r];
    switch (result->kind) {
    case IS_NIL: lua_pushnil(L); break;
    case IS_BOOLEAN: lua_pushboolean(L, result->value.boolean); break;
    case IS_INTEGER: lua_pushinteger(L, result->value.integer); break;
    case IS_FLOAT: lua_pushnumber(L, result->value.number); break;
    case IS_STRING: lua_pushlstring(L, result->value.string, result->length); break;
    case IS_ARGUMENT: lua_pushvalue(L, result->value.argument); break;
    case IS_TENSOR: tl_tensor_push(L, &result->view); break;
    }
  }
}

int tl_trace_replay(lua_State *L, tl_context *context, tl_trace *trace) {
  int nresults = (int)trace->nresults, first = lua_gettop(L) + 1;
  luaL_checkstack(L, nresults + LUA_MINSTACK, "compile: too many results");
  if (trace->nslots) tl_context_engine(L, context);
  tl_context_charge(L, context, trace->result_bytes);
  push_results(L, trace);
  tl_place *places = trace->spare ? trace->spare : malloc((trace->nslots + 1) * sizeof *places);
  if (!places) tl_fail(L, NO_MEMORY, "trace");
  trace->spare = NULL;
  trace->replays++;
  tl_error error;
  tl_status status = run(L, context, trace, places, &error);
  for (int r = 0; r < nresults && status == TL_OK; r++) {
    const tl_result *result = &trace->results[r];
    if (result->kind != IS_TENSOR) continue;
    tl_tensor *tensor = lua_touserdata(L, first + r);
    const tl_place *at = &places[result->value.slot];
    tl_storage_retain(at->storage);
    tensor->storage = at->storage;
    tensor->view.offset += at->shift;
  }
  for (size_t s = 0; s < trace->nslots; s++) {
    bool ours = trace->slots[s].kind == CONSTANT || trace->slots[s].kind == FRESH;
    if (ours && places[s].storage) drop_storage(context, places[s].storage);
  }
  trace->replays--;
  if (trace->spare) {
    free(places);
  } else {
    trace->spare = places;
  }
  if (status != TL_OK) tl_raise(L, &error);
  return nresults;
}
