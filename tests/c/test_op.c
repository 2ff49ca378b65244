/* The operator table: every row is complete, and can be a name of the surface. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/op.h"

static const char *const reserved[] = {
    "and",    "break",  "do",       "else",   "elseif", "end",   "false", "for",
    "function", "goto", "if",       "in",     "local",  "nil",   "not",   "or",
    "repeat", "return", "then",     "true",   "until",  "while",
};

static void test_names(void **state) {
  (void)state;
  for (int a = TL_OP_none + 1; a < TL_OP_COUNT; a++) {
    const char *name = tl_ops[a].name;
    assert_non_null(name);
    assert_true(isalpha((unsigned char)name[0]));
    const char *dot = strchr(name, '.'); /* of a member of a table */
    for (const char *c = name; *c; c++) {
      assert_true(isalnum((unsigned char)*c) || *c == '_' || c == dot);
    }
    if (dot) assert_true(isalpha((unsigned char)dot[1]));
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
      assert_string_not_equal(name, reserved[i]);
    }
    assert_int_equal(tl_op_find(name), a); /* the first of its name, so the only one */
  }
  assert_int_equal(tl_op_find("none"), TL_OP_none);
  assert_int_equal(tl_op_find(""), TL_OP_none);
  assert_int_equal(tl_op_find("ad"), TL_OP_none);
}

static void test_texts(void **state) {
  (void)state;
  for (int op = TL_OP_none + 1; op < TL_OP_COUNT; op++) {
    const tl_op_row *row = &tl_ops[op];
    bool in_lua = row->family == TL_LINALG; /* their texts are there */
    bool internal = row->family == TL_RELEASE || row->family == TL_READING;
    if (internal || in_lua) {
      assert_null(row->doc);
      continue;
    }
    if (!row->doc || !row->example || !row->value) fail_msg("%s lacks a text", row->name);
    if (!*row->doc || !*row->example || !*row->value) fail_msg("%s has an empty text", row->name);
    if (strchr(row->doc, '\n')) fail_msg("the doc of %s is not one line", row->name);
    if (strchr(row->example, '\n')) fail_msg("the example of %s is not one line", row->name);
  }
}

/* Whether a letter stands alone in a formula. */
static bool names_operand(const char *formula, char letter) {
  for (const char *at = formula; (at = strchr(at, letter)); at++) {
    if ((at == formula || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[1])) {
      return true;
    }
  }
  return false;
}

static void test_elementwise(void **state) {
  (void)state;
  for (int op = TL_OP_none + 1; op < TL_OP_COUNT; op++) {
    const tl_op_row *row = &tl_ops[op];
    if (row->family != TL_ELEMENTWISE) {
      assert_int_equal(row->arity, 0);
      assert_null(row->formula);
      assert_null(row->metamethod);
      continue;
    }
    assert_in_range(row->arity, 1, 3);
    assert_true(names_operand(row->formula, 'x'));
    assert_int_equal(names_operand(row->formula, 'y'), row->arity >= 2);
    assert_int_equal(names_operand(row->formula, 'z'), row->arity == 3);
    assert_true(row->low < row->high);
  }
}

static void test_metamethods(void **state) {
  (void)state;
  for (int a = TL_OP_none + 1; a < TL_OP_COUNT; a++) {
    if (!tl_ops[a].metamethod) continue;
    assert_memory_equal(tl_ops[a].metamethod, "__", 2);
    for (int b = a + 1; b < TL_OP_COUNT; b++) {
      if (tl_ops[b].metamethod) assert_string_not_equal(tl_ops[a].metamethod, tl_ops[b].metamethod);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_metamethods),
  };
  return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
