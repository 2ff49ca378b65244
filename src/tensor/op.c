#include "tensor/op.h"

#include <stddef.h>
#include <string.h>

const tl_op_row tl_ops[TL_OP_COUNT] = {
    [TL_OP_none] = {.name = "none"},
#define ELEMENTWISE(arity, name, kind, metamethod, formula, low, high, doc, example, value)  \
  [TL_OP_##name] = {#name, TL_ELEMENTWISE, arity, TL_##kind, metamethod, formula, low, high, \
                    doc,   example,        value},
#define TL_UNARY(name, kind, metamethod, formula, ...) \
  ELEMENTWISE(1, name, kind, metamethod, #formula, __VA_ARGS__)
#define TL_BINARY(name, kind, metamethod, formula, ...) \
  ELEMENTWISE(2, name, kind, metamethod, #formula, __VA_ARGS__)
#define TL_TERNARY(name, kind, metamethod, formula, ...) \
  ELEMENTWISE(3, name, kind, metamethod, #formula, __VA_ARGS__)
#define TL_OTHER(name, family, doc, example, value) \
  [TL_OP_##name] = {#name, TL_##family, 0, TL_NUMERIC, NULL, NULL, 0, 0, doc, example, value},
#define TL_MEMBER(group, member, room) \
  [TL_OP_##group##_##member] = {.name = #group "." #member, .family = TL_##room},
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY
#undef TL_OTHER
};

tl_op tl_op_find(const char *name) {
  for (int op = TL_OP_none + 1; op < TL_OP_COUNT; op++) {
    if (strcmp(tl_ops[op].name, name) == 0) return (tl_op)op;
  }
  return TL_OP_none;
}
