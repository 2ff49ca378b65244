/* The engine against a sequential run: random commands over a few dozen storages, on several
 * numbers of threads; every value and every error is compared, bit for bit, with what a plain
 * interpreter gives that computes each command as it is submitted.
 *
 * TENSORLUA_TEST_SEED=n adds a seed; a failure tells its own. */
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "formula.h"
#include "toy.h"

enum {
  SLOTS = 36,
  MAX_ELEMENTS = 1200,
  MAX_PADDING = 1500,
  DIMS = 2,
  MAX_COMMANDS = TOY_SANITIZED ? 5000 : 20000, /* about 800 bytes each in a ring of 2 MiB */
  RUSH = 4000 /* enough to fill it */
};

/* ---- the sequential run ---- */

typedef struct failure {
  tl_op op;
  int line;
  bool injected, seen;
  uint64_t salt;
} failure;

typedef struct slot {
  tl_storage *storage; /* NULL: none */
  int64_t elements;
  int handles;
  bool real;
  bool defined, written; /* has a value or a failure; a command has written it */
  failure *poison;
  uint64_t words[MAX_ELEMENTS];
} slot;

typedef struct setting {
  int threads;
  bool synchronous, interrupts, failing;
  size_t memory;
} setting;

typedef struct replay {
  setting setting;
  uint64_t seed, random;
  toy_backend toy;
  tl_engine *engine;
  slot slots[SLOTS];
  size_t live; /* bytes of all storages with a handle */
  int commands;
  int rush; /* so many commands more without a wait */
  failure failures[MAX_COMMANDS];
  int nfailures, drained; /* in program order; those before `drained` are no longer in its list */
  tl_op fault_op;
  int fault_ops, fault_allocations; /* countdowns */
} replay;

static void differs(const replay *r, const char *format, ...) {
  char text[1500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fail_msg("seed %" PRIu64 ", %d threads, %s, budget %zu, command %d: %s", r->seed,
           r->setting.threads, r->setting.synchronous ? "synchronous" : "asynchronous",
           r->setting.memory, r->commands, text);
}

static uint64_t next_random(replay *r) { /* splitmix64 */
  uint64_t z = r->random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static int below(replay *r, int64_t limit) { return (int)(next_random(r) % (uint64_t)limit); }
static bool percent(replay *r, int chance) { return below(r, 100) < chance; }

static void expect_failure(replay *r, failure *expected, tl_status status, const tl_error *error) {
  if (!expected) {
    if (status != TL_OK) differs(r, "an error where there is none: %s", error->text);
    return;
  }
  char text[TL_ERROR_TEXT];
  if (expected->injected) {
    snprintf(text, sizeof text, "%s: injected failure (queued at replay.lua:%d)",
             tl_ops[expected->op].name, expected->line);
  } else {
    snprintf(text, sizeof text, "%s: no value for %016" PRIx64 " (queued at replay.lua:%d)",
             tl_ops[expected->op].name, expected->salt, expected->line);
  }
  if (status != TL_FAILED || error->status != status || strcmp(error->text, text) != 0) {
    differs(r, "instead of '%s': %s", text, status == TL_OK ? "no error" : error->text);
  }
  expected->seen = true;
}

static failure *new_failure(replay *r, const tl_draft *draft, bool injected) {
  failure *made = &r->failures[r->nfailures++];
  *made = (failure){draft->op, draft->line, injected, false,
                    ((const formula *)draft->parameters)->salt};
  return made;
}

/* Counts as fault.h says. */
static bool is_injected(replay *r, const tl_draft *draft, slot *const *slots) {
  bool hit = draft->op == r->fault_op && --r->fault_ops == 0;
  for (int k = 0; k < draft->noperands; k++) {
    if (draft->operands[k].access & TL_WRITE && !slots[k]->written) {
      hit |= --r->fault_allocations == 0;
    }
  }
  return hit;
}

/* slots[k]: where operand k lies. */
static void interpret(replay *r, const tl_draft *draft, slot *const *slots) {
  const formula *recipe = draft->parameters;
  bool injected = is_injected(r, draft, slots);
  failure *cause = NULL;
  for (int k = 0; k < draft->noperands; k++) {
    failure *poison = draft->operands[k].access & TL_WHOLE ? NULL : slots[k]->poison;
    if (poison && (!cause || poison < cause)) cause = poison;
  }
  if (!cause && (injected || recipe->failing_chunk != NEVER)) {
    cause = new_failure(r, draft, injected);
  }
  static uint64_t values[OUTPUTS][MAX_ELEMENTS];
  const uint64_t *data[OUTPUTS + INPUTS];
  for (int k = 0; k < draft->noperands; k++) data[k] = slots[k]->words;
  for (int k = 0; k < recipe->outputs && !cause; k++) {
    int64_t count = tl_operand_numel(&draft->operands[k]);
    for (int64_t i = 0; i < count; i++) {
      values[k][i] = element_value(recipe, draft->noperands, draft->operands, data, k, i);
    }
  }
  for (int k = 0; k < recipe->outputs; k++) {
    slots[k]->defined = slots[k]->written = true;
    slots[k]->poison = cause;
    int64_t count = cause ? 0 : tl_operand_numel(&draft->operands[k]);
    for (int64_t i = 0; i < count; i++) {
      slots[k]->words[place(&draft->operands[k], i)] = values[k][i];
    }
  }
}

/* ---- random commands ---- */

typedef struct axes {
  int64_t shape[DIMS], stride[DIMS];
} axes;

/* Every element once, in some order. */
static void whole_view(replay *r, tl_operand *operand, axes *dims, int64_t elements) {
  int64_t columns = 1 + below(r, 6);
  operand->offset = 0;
  operand->ndim = 1;
  dims->shape[0] = elements;
  dims->stride[0] = 1;
  if (elements % columns == 0 && percent(r, 50)) {
    int by_columns = percent(r, 50);
    operand->ndim = 2;
    dims->shape[by_columns] = elements / columns;
    dims->stride[by_columns] = columns;
    dims->shape[!by_columns] = columns;
    dims->stride[!by_columns] = 1;
  } else if (percent(r, 20)) {
    operand->offset = elements - 1;
    dims->stride[0] = -1;
  } else if (elements == 1 && percent(r, 50)) {
    operand->ndim = 0;
  }
}

/* A run of elements, a lattice, one element, none; one that is only read may meet itself. */
static void part_view(replay *r, tl_operand *operand, axes *dims, int64_t elements, bool is_read) {
  int64_t first = below(r, elements), room = elements - first;
  operand->offset = first;
  operand->ndim = (uint8_t)below(r, DIMS + 1);
  if (operand->ndim == 0) return;
  int64_t step = 1 + below(r, 3);
  int64_t count = 1 + below(r, (room - 1) / step + 1);
  int last = operand->ndim - 1;
  dims->shape[last] = count;
  dims->stride[last] = step;
  if (operand->ndim == 2) {
    int64_t line = is_read ? below(r, 4) : (count - 1) * step + 1 + below(r, 3);
    int64_t reach = (count - 1) * step;
    dims->stride[0] = line;
    dims->shape[0] = 1 + (line ? below(r, (room - 1 - reach) / line + 1) : below(r, 3));
    if (dims->shape[0] * count > MAX_ELEMENTS) dims->shape[0] = 1;
  }
  if (!is_read && percent(r, 3)) dims->shape[0] = 0;
}

static slot *pick_slot(replay *r, slot *const *others, int count, bool real, bool defined) {
  for (int tries = 0; tries < 50; tries++) {
    slot *picked = &r->slots[below(r, SLOTS)];
    if (!picked->storage || picked->real != real || (defined && !picked->defined)) continue;
    bool taken = false;
    for (int i = 0; i < count; i++) taken |= others[i] == picked;
    if (!taken) return picked;
  }
  return NULL;
}

/* Whether an input has an element that is written. */
static bool meets_itself(const tl_draft *draft, int outputs) {
  static bool written[MAX_ELEMENTS];
  for (int k = 0; k < outputs; k++) {
    const tl_operand *out = &draft->operands[k];
    memset(written, 0, sizeof written);
    int64_t count = tl_operand_numel(out);
    for (int64_t i = 0; i < count; i++) written[place(out, i)] = true;
    for (int j = outputs; j < draft->noperands; j++) {
      const tl_operand *in = &draft->operands[j];
      if (in->storage != out->storage) continue;
      int64_t elements = tl_operand_numel(in);
      for (int64_t i = 0; i < elements; i++) {
        if (written[place(in, i)]) return true;
      }
    }
  }
  return false;
}

static void make_plan(replay *r, const tl_draft *draft, formula *recipe) {
  tl_plan *plan = &recipe->work.plan;
  plan->chunks = percent(r, 70) ? 1 : (uint32_t)(1 + below(r, 9));
  plan->cost = percent(r, 75) ? (float)below(r, 2000) : (float)below(r, 30000);
  if (meets_itself(draft, recipe->outputs) || percent(r, 10)) {
    int64_t elements = 1;
    for (int k = 0; k < recipe->outputs; k++) elements += tl_operand_numel(&draft->operands[k]);
    plan->scratch_size = (uint32_t)(elements * 8);
  }
  if (percent(r, 8)) recipe->delay = (uint16_t)(percent(r, 50) ? GIVE_WAY : 3 + below(r, 20000));
  if (r->rush == RUSH) recipe->delay = STALL;
  if (r->setting.failing && percent(r, 2)) {
    recipe->failing_chunk = (uint32_t)below(r, plan->chunks + (plan->scratch_size > 0));
  }
}

static void random_command(replay *r) {
  static const tl_op ops[] = {TL_OP_add, TL_OP_mul, TL_OP_exp, TL_OP_mm, TL_OP_sum, TL_OP_copy_};
  union {
    formula recipe;
    char bytes[sizeof(formula) + MAX_PADDING]; /* so that the ring's end is met in all ways */
  } parameters;
  memset(&parameters, 0, sizeof parameters);
  formula *recipe = &parameters.recipe;
  recipe->work.run = run_recipe;
  recipe->work.finish = finish_recipe;
  recipe->salt = next_random(r);
  recipe->failing_chunk = NEVER;
  recipe->real = percent(r, 50);

  slot *slots[OUTPUTS + INPUTS];
  tl_operand operands[OUTPUTS + INPUTS];
  axes dims[OUTPUTS + INPUTS];
  int outputs = 0, wholes = 0, count = 0;
  for (int k = 0; k < 1 + percent(r, 10); k++) {
    slot *out = pick_slot(r, slots, count, recipe->real, false);
    if (!out) break;
    tl_operand *operand = &operands[count];
    *operand = (tl_operand){.storage = out->storage, .dtype = TL_float64, .access = TL_WRITE};
    if (!out->defined || percent(r, 25)) {
      operand->access |= TL_WHOLE;
      wholes++;
    } else if (percent(r, 50)) {
      operand->access |= TL_READ;
    }
    if (operand->access & TL_WHOLE || percent(r, 20)) {
      whole_view(r, operand, &dims[count], out->elements);
    } else {
      part_view(r, operand, &dims[count], out->elements, false);
    }
    slots[count++] = out;
    outputs++;
  }
  if (outputs == 0) return;
  recipe->outputs = (uint8_t)outputs;
  for (int k = below(r, INPUTS + 1); k > 0; k--) {
    slot *in = pick_slot(r, slots, wholes ? outputs : 0, recipe->real, true);
    if (!in) break;
    tl_operand *operand = &operands[count];
    *operand = (tl_operand){.storage = in->storage, .dtype = TL_float64, .access = TL_READ};
    (percent(r, 40) ? whole_view(r, operand, &dims[count], in->elements)
                    : part_view(r, operand, &dims[count], in->elements, true));
    slots[count++] = in;
  }
  for (int k = 0; k < count; k++) {
    operands[k].shape = dims[k].shape;
    operands[k].stride = dims[k].stride;
    if (k > 0 && operands[k].ndim == operands[k - 1].ndim &&
        memcmp(dims[k].shape, operands[k - 1].shape, operands[k].ndim * sizeof(int64_t)) == 0) {
      operands[k].shape = operands[k - 1].shape; /* as the frontend does */
    }
  }
  tl_draft draft = {
      .op = ops[below(r, (int)(sizeof ops / sizeof *ops))],
      .noperands = count,
      .operands = operands,
      .parameters = &parameters,
      .parameters_size = sizeof *recipe + (size_t)(percent(r, 50) ? below(r, MAX_PADDING) : 0),
      .source = "replay.lua",
      .line = ++r->commands,
  };
  make_plan(r, &draft, recipe);
  interpret(r, &draft, slots);

  tl_error error;
  tl_status status;
  do {
    status = tl_engine_submit(r->engine, &draft, &error);
  } while (status == TL_INTERRUPTED);
  expect_failure(r, r->setting.synchronous ? slots[0]->poison : NULL, status, &error);
}

/* ---- random events ---- */

static int polls_until_interrupt; /* 0: no interrupt */

static bool is_interrupted(void) {
  return polls_until_interrupt > 0 && --polls_until_interrupt == 0;
}

static size_t bytes_of(const slot *s) { return (size_t)s->elements * 8; }

/* TL_NO_MEMORY exactly when what is alive leaves no room, however late its releases run. */
static void create(replay *r) {
  slot *made = &r->slots[below(r, SLOTS)];
  if (made->storage) return;
  int limit = percent(r, 40) ? TL_INLINE_BYTES / 8 : percent(r, 90) ? 200 : MAX_ELEMENTS;
  made->elements = 1 + below(r, limit);
  made->real = percent(r, 50);
  tl_error error;
  tl_status status;
  do {
    status = tl_engine_storage(r->engine, bytes_of(made), &made->storage, &error);
  } while (status == TL_INTERRUPTED);
  bool fits = r->setting.memory == 0 || r->live + bytes_of(made) <= r->setting.memory;
  if (!fits) {
    char text[TL_ERROR_TEXT];
    snprintf(text, sizeof text, "out of memory: %zu bytes wanted, %zu of %zu in use",
             bytes_of(made), r->live, r->setting.memory);
    if (status != TL_NO_MEMORY || strcmp(error.text, text) != 0) {
      differs(r, "instead of '%s': %s", text, status == TL_OK ? "a storage" : error.text);
    }
    made->storage = NULL;
    return;
  }
  if (status != TL_OK) differs(r, "no storage of %zu bytes: %s", bytes_of(made), error.text);
  r->live += bytes_of(made);
  made->handles = 1;
  made->poison = NULL;
  made->defined = made->written = false;
  if (!r->setting.failing && percent(r, 30)) { /* faults would count its first write */
    for (int64_t i = 0; i < made->elements; i++) {
      made->words[i] = made->real ? real_word(next_random(r)) : next_random(r);
    }
    memcpy(tl_engine_fill(r->engine, made->storage), made->words, bytes_of(made));
    made->defined = true;
  }
}

static void drop(replay *r, slot *dropped) {
  tl_engine_drop(r->engine, dropped->storage);
  if (--dropped->handles > 0) return;
  dropped->storage = NULL;
  r->live -= bytes_of(dropped);
}

static void read_value(replay *r, slot *read) {
  tl_error error;
  tl_status status;
  do {
    status = tl_engine_wait(r->engine, read->storage, &error);
  } while (status == TL_INTERRUPTED);
  expect_failure(r, read->poison, status, &error);
  if (status == TL_OK && memcmp(read->storage->data, read->words, bytes_of(read)) != 0) {
    const uint64_t *words = read->storage->data;
    int64_t i = 0;
    while (words[i] == read->words[i]) i++;
    differs(r, "slot %d, element %" PRId64 " of %" PRId64 ": %016" PRIx64 " instead of %016" PRIx64,
            (int)(read - r->slots), i, read->elements, words[i], read->words[i]);
  }
}

static void poll_value(replay *r, slot *read) {
  time_t start = time(NULL);
  while (!tl_engine_is_ready(r->engine, read->storage)) {
    if (time(NULL) - start > 20) differs(r, "slot %d never gets ready", (int)(read - r->slots));
    sched_yield();
  }
  read_value(r, read);
}

/* Gives whether there was a failure that nobody had seen. */
static bool drain(replay *r) {
  failure *first = NULL;
  while (!first && r->drained < r->nfailures) {
    failure *next = &r->failures[r->drained++];
    if (!next->seen) first = next;
  }
  tl_error error;
  tl_status status;
  do {
    status = tl_engine_drain(r->engine, &error);
  } while (status == TL_INTERRUPTED);
  expect_failure(r, first, status, &error);
  return first != NULL;
}

static void change_threads(replay *r) {
  int threads = 1 + below(r, 4);
  tl_error error;
  tl_status status;
  do {
    status = tl_engine_set_threads(r->engine, threads, &error);
  } while (status == TL_INTERRUPTED);
  if (status != TL_OK) differs(r, "%s", error.text);
  assert_int_equal(tl_engine_threads(r->engine), threads);
}

static void random_event(replay *r) {
  if (r->setting.interrupts && percent(r, 2)) polls_until_interrupt = 1 + below(r, 3);
  int event = below(r, 1000);
  if (event < 150) create(r);
  if (event == 999 && r->rush == 0) r->rush = RUSH;
  slot *picked = &r->slots[below(r, SLOTS)];
  if (!picked->storage) return;
  if (event >= 150 && event < 230) {
    drop(r, picked);
  } else if (event < 250) {
    tl_storage_retain(picked->storage);
    picked->handles++;
  } else if (r->rush > 0) {
    random_command(r);
    r->rush--;
  } else if (event < 280 && picked->defined) {
    read_value(r, picked);
  } else if (event < 285 && picked->defined) {
    poll_value(r, picked);
  } else if (event < 287) {
    drain(r);
  } else if (event < 291) {
    tl_engine_away(r->engine, percent(r, 50));
  } else if (event < 292) {
    change_threads(r);
  } else {
    random_command(r);
  }
}

/* ---- runs ---- */

static void run_replay(uint64_t seed, setting how) {
  static replay replayed;
  replay *r = &replayed;
  memset(r, 0, sizeof *r);
  r->setting = how;
  r->seed = r->random = seed;
  r->fault_op = TL_OP_mm;
  char faults[64] = "";
  if (how.failing) {
    r->fault_ops = 1 + below(r, 200);
    r->fault_allocations = 1 + below(r, 400);
    snprintf(faults, sizeof faults, "alloc:%d,mm:%d", r->fault_allocations, r->fault_ops);
  }
  polls_until_interrupt = 0;
  toy_init(&r->toy);
  tl_engine_options options = {
      .backend = &r->toy.base,
      .threads = how.threads,
      .synchronous = how.synchronous,
      .memory = how.memory,
      .faults = faults,
      .interrupted = is_interrupted,
  };
  tl_error error;
  if (tl_engine_open(&r->engine, &options, &error) != TL_OK) differs(r, "%s", error.text);

  while (r->commands < MAX_COMMANDS) random_event(r);
  for (int s = 0; s < SLOTS; s++) {
    slot *left = &r->slots[s];
    if (left->storage && left->defined) read_value(r, left);
    while (left->storage) drop(r, left);
  }
  while (drain(r)) {}
  tl_engine_counters counters;
  tl_engine_count(r->engine, &counters);
  if (counters.reserved != 0) differs(r, "%zu bytes are not given back", counters.reserved);
  assert_int_equal(counters.enqueued, r->commands);
  assert_int_equal(counters.retired, r->commands);
  tl_engine_close(r->engine);
  if (!toy_is_whole(&r->toy)) differs(r, "the backend's memory is not given back");
}

/* The fixed seeds, and the environment's. */
static void run_seeds(uint64_t first, int count, setting how) {
  for (int i = 0; i < count; i++) run_replay(first + (uint64_t)i, how);
  const char *seed = getenv("TENSORLUA_TEST_SEED");
  if (seed) run_replay(strtoull(seed, NULL, 10), how);
}

static void test_values(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    run_seeds(100, 2, (setting){.threads = threads});
  }
}

static void test_failures(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    run_seeds(200, 2, (setting){.threads = threads, .failing = true});
  }
}

static void test_budget_and_interrupts(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    run_seeds(300, 2, (setting){.threads = threads, .interrupts = true, .memory = 24 << 10});
  }
}

static void test_all_together(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    setting all = {.threads = threads, .interrupts = true, .failing = true, .memory = 24 << 10};
    run_seeds(400, 2, all);
  }
}

static void test_synchronous(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads *= 2) {
    setting all = {.threads = threads, .synchronous = true, .failing = true, .memory = 24 << 10};
    run_seeds(400, 1, all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),       cmocka_unit_test(test_failures),
      cmocka_unit_test(test_budget_and_interrupts), cmocka_unit_test(test_all_together),
      cmocka_unit_test(test_synchronous),
  };
  return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
