/* Fusion: consecutive element-wise commands joined into one program, in one pass over memory.
 *
 * A value that only the joined program reads is left virtual: instead of a buffer its storage has a
 * recipe (a program and its inputs), while a handle to it lives.  It is computed when a command
 * does read it after all, or before an input of the recipe is overwritten; released, it never is.
 * What a recipe reads is held: released meanwhile, it stays until the recipe goes.
 *
 * The life of a held storage: when it is released it is taken out of the release's operands and
 * marked `kept`; when the last recipe that reads it goes, and no unit in flight does, it is emptied
 * and put into `freed`, from which the frontend takes it back as it does the operands of other
 * releases.
 *
 * Everything here happens as commands are issued or finished, in program order, under the
 * scheduler's lock. */
#ifndef TL_ENGINE_FUSION_H
#define TL_ENGINE_FUSION_H

#include "engine/command.h"
#include "engine/pool.h"
#include "tensor/parameters.h"

enum {
  TL_FUSE_ELEMENTS = 16384, /* smaller commands are bundled instead: they are in cache anyway */
  TL_MAX_FUSED_OPERANDS = 1 + TL_MAX_OUTPUTS + TL_MAX_INPUTS,
  TL_LONG_ROW = 64,
  TL_FUSE_REDUCED = 256, /* a reduction over fewer elements does not end a group */
};

/* A command that is not in the ring: a tl_command with its operands and its program. */
typedef struct tl_fused {
  alignas(64) char command[sizeof(tl_command) + TL_MAX_FUSED_OPERANDS * sizeof(tl_operand)];
  alignas(8) char program[sizeof(tl_program) + TL_MAX_STEPS * sizeof(tl_step)];
  tl_reduce reduce;
  int64_t shape[TL_MAX_DIMS];
  int64_t stride[TL_MAX_FUSED_OPERANDS][TL_MAX_DIMS];
} tl_fused;

static inline tl_command *tl_fused_command(tl_fused *fused) {
  return (tl_command *)(void *)fused->command;
}

/* One input of a recipe, in the list of those that read its storage. */
typedef struct tl_hold {
  struct tl_recipe *recipe;
  tl_storage *storage;
  struct tl_hold *next, **link;
} tl_hold;

typedef struct tl_recipe {
  tl_fused fused; /* computes the value */
  tl_storage *storage;
  bool computing; /* a unit that does is in flight */
  int nholds;
  tl_hold holds[TL_MAX_INPUTS];
  struct tl_recipe *next, **link; /* of all recipes */
} tl_recipe;

/* How often a source line's virtual values are read after all: from 2 on they are written at once.
 * Hashed, as a branch predictor's counters are. */
enum { TL_PREDICTOR_LINES = 256 };

typedef struct tl_fusion {
  bool enabled;
  tl_recipe *recipes;
  size_t virtual_bytes; /* that their values would take */
  tl_storage *freed; /* released and kept, and now free: for the frontend to take back */
  atomic_bool has_freed;
  tl_pool *pool;
  uint8_t read_back[TL_PREDICTOR_LINES];
} tl_fusion;

/* The commands joined so far. */
typedef struct tl_result {
  const tl_command *command; /* that makes it */
  uint8_t reg;
  bool read;     /* by a later command of the group */
  bool replaced; /* a later command of the group writes the storage again */
  bool released; /* in the group's range of the queue */
} tl_result;

typedef struct tl_group {
  tl_dtype dtype;
  int ndim;
  int64_t shape[TL_MAX_DIMS];
  int ninputs, nsteps, nresults;
  tl_operand inputs[TL_MAX_INPUTS];
  int64_t stride[TL_MAX_INPUTS][TL_MAX_DIMS];
  tl_step steps[TL_MAX_STEPS]; /* registers: inputs from 0, steps from TL_MAX_INPUTS on */
  tl_result results[TL_MAX_STEPS];
  const tl_command *reduction; /* that ends it, or NULL */
  uint8_t reduced;             /* register */
} tl_group;

/* Whether a command can be part of a group at all. */
bool tl_fusion_applies(const tl_fusion *fusion, const tl_command *command);

void tl_group_begin(tl_group *group);

/* Joins a command that applies, or leaves the group as it is and returns false. */
bool tl_group_add(const tl_fusion *fusion, tl_group *group, const tl_command *command);

/* Ends the group with a reduction of one of its results, if the command is one. */
bool tl_group_reduce(const tl_fusion *fusion, tl_group *group, const tl_command *command);

/* Takes note of a release in the group's range. */
void tl_group_release(tl_group *group, const tl_command *release);

/* Makes the group's command, and recipes for the values that it leaves virtual.  False, and nothing
 * is made, when there is no memory for them. */
bool tl_group_finish(tl_fusion *fusion, const tl_group *group, tl_fused *fused);

/* A recipe that must be computed before `command` may be issued, or NULL. */
tl_recipe *tl_fusion_in_the_way(const tl_fusion *fusion, const tl_command *command);

/* Copies a recipe's command, to be run by a unit. */
void tl_recipe_start(tl_fusion *fusion, tl_recipe *recipe, tl_fused *fused);

/* As a command is issued: what it overwrites whole or releases needs no recipe any more; what it
 * releases and a recipe holds leaves the command (its operand's storage becomes NULL). */
void tl_fusion_issue(tl_fusion *fusion, tl_command *command);

/* The value of a storage exists: its recipe, if it has one, goes. */
void tl_recipe_drop(tl_fusion *fusion, tl_recipe *recipe);

/* A unit that read or wrote the storage has finished: frees what was kept for it alone. */
void tl_storage_settle(tl_fusion *fusion, tl_storage *storage);

#endif
