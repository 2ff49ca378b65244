/* The operator table: ops.def as an enum and as rows.  Pure data. */
#ifndef TL_TENSOR_OP_H
#define TL_TENSOR_OP_H

/* Which function of a backend runs an operator. */
typedef enum tl_family {
  TL_ELEMENTWISE, /* a program of unary and binary steps (program.h) */
  TL_FILL,        /* likewise, of one step without operands */
  TL_COPY,        /* likewise, without steps */
  TL_GENERATE,    /* values from the element's index alone */
  TL_MATMUL,
  TL_LINALG, /* factorisations of the matrices of a batch */
  TL_REDUCE,
  TL_COMPARE,
  TL_READING, /* the engine's own: nothing to run */
  TL_RELEASE, /* likewise */
} tl_family;

typedef enum tl_op {
  TL_OP_none, /* so that 0 is never an operator by accident */
#define TL_UNARY(name, metamethod, formula, low, high, doc, example, value) TL_OP_##name,
#define TL_BINARY(name, metamethod, formula, low, high, doc, example, value) TL_OP_##name,
#define TL_OTHER(name, family, doc, example, value) TL_OP_##name,
#define TL_MEMBER(group, name, family) TL_OP_##group##_##name,
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_OTHER
  TL_OP_COUNT
} tl_op;

typedef struct tl_op_row {
  const char *name;
  tl_family family;
  int arity;              /* of element-wise operators: 1 or 2; otherwise 0 */
  const char *metamethod; /* or NULL */
  const char *formula;    /* of element-wise operators: C text over x and y */
  double low, high;       /* domain of x and y for tests */
  const char *doc;        /* NULL: not a function of the surface */
  const char *example, *value;
} tl_op_row;

extern const tl_op_row tl_ops[TL_OP_COUNT];

tl_op tl_op_find(const char *name); /* TL_OP_none when there is none */

#endif
