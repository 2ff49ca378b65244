/* The operator table: ops.def as an enum and as rows.  Pure data. */
#ifndef TL_TENSOR_OP_H
#define TL_TENSOR_OP_H

#include <stdbool.h>

/* Which function of a backend runs an operator. */
typedef enum tl_family {
  TL_ELEMENTWISE, /* a program of steps (program.h) */
  TL_FILL,        /* likewise, of one step without operands */
  TL_COPY,        /* likewise, without steps, or of one step under a name of its own */
  TL_GENERATE,    /* values from the element's index alone */
  TL_MATMUL,
  TL_LINALG, /* factorisations of the matrices of a batch */
  TL_REDUCE,
  TL_COMPARE,
  TL_INDEX,
  TL_ALONG,   /* line by line: scans, sorting, searching, counting */
  TL_ALLOCATE, /* nothing to run: the result is its buffer, whatever that holds */
  TL_READING, /* the engine's own: nothing to run */
  TL_RELEASE, /* likewise */
} tl_family;

/* Of element-wise operators: for which dtypes, and what comes out (ops.def). */
typedef enum tl_kind { TL_NUMERIC, TL_REAL, TL_ROUND, TL_TEST, TL_BITS } tl_kind;

typedef enum tl_op {
  TL_OP_none, /* so that 0 is never an operator by accident */
#define TL_UNARY(name, kind, metamethod, formula, low, high, doc, example, value) TL_OP_##name,
#define TL_BINARY TL_UNARY
#define TL_TERNARY TL_UNARY
#define TL_OTHER(name, family, doc, example, value) TL_OP_##name,
#define TL_MEMBER(group, name, family) TL_OP_##group##_##name,
#include "tensor/ops.def"
#undef TL_UNARY
#undef TL_BINARY
#undef TL_TERNARY
#undef TL_OTHER
  TL_OP_COUNT
} tl_op;

typedef struct tl_op_row {
  const char *name;
  tl_family family;
  int arity;              /* of element-wise operators: 1 to 3; otherwise 0 */
  tl_kind kind;           /* likewise */
  const char *metamethod; /* or NULL */
  const char *formula;    /* of element-wise operators: C text over x, y and z */
  double low, high;       /* domain of x and y for tests */
  const char *doc;        /* NULL: not a function of the surface */
  const char *example, *value;
} tl_op_row;

/* Whether an operator fails for some integers (to divide by 0, say): no value comes out then, so
 * it is not joined with others. */
static inline bool tl_op_can_fail(tl_op op) {
  return op == TL_OP_floor_divide || op == TL_OP_remainder || op == TL_OP_fmod || op == TL_OP_pow;
}

extern const tl_op_row tl_ops[TL_OP_COUNT];

tl_op tl_op_find(const char *name); /* TL_OP_none when there is none */

#endif
