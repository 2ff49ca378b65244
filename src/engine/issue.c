/* Issue: published commands become units, in order. */
#include <string.h>

#include "engine/scheduler.h"

/* A command cheaper than this is bundled with its neighbours, up to that much in all: a hand-over
 * between lanes costs 1 to 5 microseconds. */
static const float SMALL_COST = 5e3f, BUNDLE_COST = 20e3f; /* nanoseconds */
enum { BUNDLE_COMMANDS = 128 };

/* A command this large is worth a moment's wait for the next one to join: a twentieth of its time.
 * The frontend needs a microsecond for an operation, and a hundred where it collects garbage. */
static const float LINGER_COST = 50e3f; /* nanoseconds */
enum { LINGER_PART = 20, LINGER_LIMIT = 200000 /* nanoseconds, since the lock is held */ };

/* The units in flight that `command` must wait for. */
static uint64_t hazards(const tl_command *command) {
  uint64_t units = 0;
  for (int i = 0; i < command->noperands; i++) {
    const tl_operand *operand = &command->operands[i];
    if (!operand->storage) continue; /* kept for a recipe */
    units |= operand->storage->writer;
    if (operand->access & TL_WRITE) units |= operand->storage->readers;
  }
  return units;
}

/* Later commands on its operands will wait for the unit `bit`.  A writer stands for the readers
 * before it, since it waits for them. */
static void record(const tl_command *command, uint64_t bit) {
  for (int i = 0; i < command->noperands; i++) {
    const tl_operand *operand = &command->operands[i];
    if (!operand->storage) continue;
    if (operand->access & TL_WRITE) {
      operand->storage->writer = bit;
      operand->storage->readers = 0;
    } else if (operand->storage->writer != bit) {
      operand->storage->readers |= bit;
    }
  }
}

static bool is_small(const tl_command *command) {
  return command->chunks == 1 && command->cost < SMALL_COST;
}

/* Whether a command with these hazards may run as part of the bundle `bit` that waits for `waits`.
 * It must not make the bundle wait for more, nor wait itself for what it does not depend on. */
static bool joins(const tl_command *command, uint64_t units, uint64_t bit, uint64_t waits) {
  uint64_t others = units & ~bit;
  if (others & ~waits) return false;
  return others == waits || (units & bit) || command->op == TL_OP_release;
}

static tl_unit *open_unit(tl_scheduler *s, uint64_t position) {
  tl_unit *unit = &s->window[s->next % TL_WINDOW];
  unit->begin = unit->end = position;
  unit->waits = 0;
  unit->ticket = s->last_ticket;
  unit->failed = unit->fused = unit->by_one = false;
  unit->command = NULL;
  unit->recipe = NULL;
  return unit;
}

static void close_unit(tl_scheduler *s, tl_unit *unit) {
  uint64_t bit = tl_unit_bit(s->next++);
  s->queue->issued = unit->end;
  s->last_ticket = unit->ticket;
  *(unit->waits ? &s->waiting : &s->ready) |= bit;
}

/* Takes one more command into the unit. */
static void take(tl_scheduler *s, tl_unit *unit, tl_command *command, uint64_t position) {
  tl_fusion_issue(&s->fusion, command);
  record(command, tl_unit_bit(s->next));
  unit->ticket = command->ticket;
  unit->end = position + command->size;
}

/* More small commands into a bundle. */
static void bundle(tl_scheduler *s, tl_unit *unit, float cost, uint64_t published) {
  uint64_t position = unit->end;
  for (int count = 1; count < BUNDLE_COMMANDS && cost < BUNDLE_COST; count++) {
    tl_command *another = tl_queue_at(s->queue, &position, published);
    if (!another || !is_small(another) || tl_fusion_in_the_way(&s->fusion, another) ||
        !joins(another, hazards(another), tl_unit_bit(s->next), unit->waits)) {
      return;
    }
    take(s, unit, another, position);
    position += another->size;
    cost += another->cost;
  }
}

static void plan(tl_scheduler *s, tl_command *command) {
  tl_plan made = {.chunks = 1};
  s->backend->plan(s->backend, command, &made);
  command->chunks = made.chunks;
  command->cost = made.cost;
  command->scratch_size = made.scratch_size;
}

/* A unit that computes a value that was left virtual. */
static void issue_recipe(tl_scheduler *s, tl_recipe *recipe) {
  tl_unit *unit = open_unit(s, s->queue->issued);
  tl_fused *fused = &s->fused[s->next % TL_WINDOW];
  tl_recipe_start(&s->fusion, recipe, fused);
  unit->command = tl_fused_command(fused);
  unit->fused = true;
  unit->recipe = recipe;
  plan(s, unit->command);
  unit->waits = hazards(unit->command);
  record(unit->command, tl_unit_bit(s->next));
  close_unit(s, unit);
}

/* Waits a moment for a command behind `position`, unless nobody will publish any. */
static uint64_t linger(tl_scheduler *s, uint64_t position, float cost) {
  float time = cost / LINGER_PART;
  uint64_t end = tl_clock() + (uint64_t)(time < LINGER_LIMIT ? time : LINGER_LIMIT), published;
  do {
    published = atomic_load(&s->queue->published);
  } while (published == position && !atomic_load(&s->frontend_waits) && tl_clock() < end);
  return published;
}

/* Joins to the unit's command those behind it, and the releases in between.  What the unit waits
 * for is settled by the first command, as for a bundle. */
static void fuse(tl_scheduler *s, tl_unit *unit, tl_command *command, uint64_t published) {
  uint64_t bit = tl_unit_bit(s->next), position = unit->end;
  tl_command *releases[TL_MAX_STEPS];
  int nreleases = 0;
  float cost = command->cost;
  tl_group group;
  tl_group_begin(&group);
  bool joined = tl_group_add(&s->fusion, &group, command);
  while (joined) {
    if (position == published && cost >= LINGER_COST) published = linger(s, position, cost);
    tl_command *another = tl_queue_at(s->queue, &position, published);
    if (!another || !joins(another, hazards(another), bit, unit->waits)) break;
    if (another->op == TL_OP_release) {
      if (nreleases == TL_MAX_STEPS) break;
      releases[nreleases++] = another; /* taken if another command joins */
    } else {
      joined = tl_fusion_applies(&s->fusion, another) &&
               !tl_fusion_in_the_way(&s->fusion, another) &&
               tl_group_add(&s->fusion, &group, another);
      if (!joined && !tl_group_reduce(&s->fusion, &group, another)) break;
      while (nreleases > 0) tl_group_release(&group, releases[--nreleases]);
      take(s, unit, another, position);
      cost += another->cost;
    }
    position += another->size;
  }
  bool is_group = group.nresults > 1 || group.reduction;
  unit->command = is_group || command->chunks == 1 ? NULL : command;
  if (is_group) {
    tl_fused *fused = &s->fused[s->next % TL_WINDOW];
    if (tl_group_finish(&s->fusion, &group, fused)) { /* else it stays a bundle */
      unit->command = tl_fused_command(fused);
      unit->fused = true;
      plan(s, unit->command);
    }
    /* Now that it is known what recipes hold. */
    uint64_t at = unit->begin;
    for (tl_command *c; (c = tl_queue_at(s->queue, &at, unit->end)); at += c->size) {
      if (c->op != TL_OP_release) continue;
      tl_fusion_issue(&s->fusion, c);
      record(c, bit);
    }
  }
}

/* Makes the next published commands into a unit. */
static void issue_unit(tl_scheduler *s, uint64_t published) {
  uint64_t position = s->queue->issued;
  tl_command *command = tl_queue_at(s->queue, &position, published);
  if (!command) {
    s->queue->issued = published; /* only padding was left */
    return;
  }
  tl_recipe *recipe = tl_fusion_in_the_way(&s->fusion, command);
  if (recipe) {
    issue_recipe(s, recipe);
    return;
  }
  tl_unit *unit = open_unit(s, position);
  tl_fusion_issue(&s->fusion, command);
  unit->waits = hazards(command);
  take(s, unit, command, position);
  if (tl_fusion_applies(&s->fusion, command)) {
    fuse(s, unit, command, published);
  } else if (command->chunks > 1) {
    unit->command = command;
  } else if (is_small(command)) {
    bundle(s, unit, command->cost, published);
  }
  close_unit(s, unit);
}

static tl_recipe *recipe_to_settle(const tl_scheduler *s) {
  tl_recipe *recipe = s->settling ? s->fusion.recipes : NULL;
  while (recipe && recipe->computing) recipe = recipe->next;
  return recipe;
}

/* Whether there was something to issue, and room in the window. */
static bool issue_one(tl_scheduler *s) {
  uint64_t published = atomic_load(&s->queue->published);
  tl_recipe *recipe = recipe_to_settle(s);
  if (s->next - s->oldest == TL_WINDOW || (!recipe && s->queue->issued == published)) return false;
  if (recipe) {
    issue_recipe(s, recipe);
  } else {
    issue_unit(s, published);
  }
  return true;
}

void tl_scheduler_issue(tl_scheduler *s) {
  while (tl_count_bits(s->ready) < s->limit && issue_one(s)) continue;
}

void tl_scheduler_issue_to(tl_scheduler *s, uint64_t ticket) {
  while (s->last_ticket < ticket && issue_one(s)) continue;
}
