/* Injected faults: their text, and what counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fault.h"

static tl_faults faults;

static void accept(const char *text, int count) {
  tl_error error;
  if (tl_faults_parse(&faults, text, &error) != TL_OK) fail_msg("'%s': %s", text, error.text);
  assert_int_equal(faults.count, count);
}

static void test_good_texts(void **state) {
  (void)state;
  accept(NULL, 0);
  accept("", 0);
  accept("mm:2", 1);
  assert_int_equal(faults.faults[0].op, TL_OP_mm);
  assert_int_equal(faults.faults[0].remaining, 2);
  accept("alloc:5,copy_:1,mm:70000", 3);
  assert_int_equal(faults.faults[0].op, TL_OP_none);
  assert_int_equal(faults.faults[1].op, TL_OP_copy_);
  assert_int_equal(faults.faults[2].remaining, 70000);
  accept("mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1",
         TL_MAX_FAULTS);
}

static void refuse(const char *text, const char *reason) {
  tl_error error;
  if (tl_faults_parse(&faults, text, &error) != TL_INVALID) fail_msg("'%s' is accepted", text);
  assert_int_equal(error.status, TL_INVALID);
  if (!strstr(error.text, "TENSORLUA_FAULT") || !strstr(error.text, reason)) {
    fail_msg("'%s': %s", text, error.text);
  }
}

static void test_bad_texts(void **state) {
  (void)state;
  const char *form = "form operation:count", *count = "wants a count from 1 on";
  refuse("mm", form);
  refuse(":2", form);
  refuse(",mm:2", form);
  refuse("mm:2,,alloc:1", form);
  refuse("nothing:2", "there is no operation 'nothing'");
  refuse("none:2", "there is no operation 'none'");
  refuse("mm :2", "there is no operation 'mm '");
  refuse("mm:", count);
  refuse("mm:0", count);
  refuse("mm:x", count);
  refuse("mm:2x", count);
  refuse("mm:1.5", count);
  refuse("mm:2:3", count);
  refuse("alloc:0", count);
  refuse("mm:1,alloc:", count);
  refuse("mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1,mm:1",
         "more than 16");
  char text[3000];
  memset(text, 'm', sizeof text);
  text[sizeof text - 1] = '\0';
  refuse(text, "mmmm");
  memcpy(&text[sizeof text - 3], ":1", 2);
  refuse(text, "mmmm");
}

/* Numbers that strtoul() would take for large ones. */
static void test_bad_counts(void **state) {
  (void)state;
  refuse("mm:-1", "wants a count from 1 on");
  refuse("mm:99999999999999999999999", "wants a count from 1 on");
}

/* A command that writes the given storage, and perhaps reads another. */
static bool hits(tl_op op, tl_storage *written, tl_storage *read) {
  static union {
    tl_command command;
    char bytes[sizeof(tl_command) + 2 * sizeof(tl_operand)];
  } buffer;
  memset(&buffer, 0, sizeof buffer);
  buffer.command.op = (uint16_t)op;
  buffer.command.noperands = read ? 2 : 1;
  buffer.command.operands[0] = (tl_operand){.storage = written, .access = TL_WRITE};
  buffer.command.operands[1] = (tl_operand){.storage = read, .access = TL_READ};
  return tl_faults_hit(&faults, &buffer.command);
}

static void test_operations_are_counted(void **state) {
  (void)state;
  tl_storage storage = {.last_write = 1};
  accept("mm:2,mm:5,add:1", 3);
  int wanted[] = {0, 1, 0, 0, 1, 0, 0};
  for (int i = 0; i < 7; i++) assert_int_equal(hits(TL_OP_mm, &storage, NULL), wanted[i]);
  assert_false(hits(TL_OP_sub, &storage, NULL));
  assert_true(hits(TL_OP_add, &storage, NULL));
  assert_false(hits(TL_OP_add, &storage, NULL)); /* once */
}

static void test_first_writes_are_counted(void **state) {
  (void)state;
  tl_storage fresh = {.last_write = 0}, used = {.last_write = 7};
  accept("alloc:3", 1);
  assert_false(hits(TL_OP_add, &fresh, NULL));
  assert_false(hits(TL_OP_add, &used, NULL));
  assert_false(hits(TL_OP_add, &used, &fresh)); /* reading allocates nothing */
  assert_false(hits(TL_OP_mm, &fresh, &used));
  assert_true(hits(TL_OP_zeros, &fresh, NULL));
  assert_false(hits(TL_OP_zeros, &fresh, NULL));
}

static void test_nothing_hits_without_faults(void **state) {
  (void)state;
  tl_storage fresh = {.last_write = 0};
  accept("", 0);
  for (int i = 0; i < 100; i++) assert_false(hits(TL_OP_mm, &fresh, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_good_texts),
      cmocka_unit_test(test_bad_texts),
      cmocka_unit_test(test_bad_counts),
      cmocka_unit_test(test_operations_are_counted),
      cmocka_unit_test(test_first_writes_are_counted),
      cmocka_unit_test(test_nothing_hits_without_faults),
  };
  return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
