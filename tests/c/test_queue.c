/* The ring: commands of any size come out whole, in order, and only when there is room.  The test
 * plays the engine: it publishes, retires and reclaims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/queue.h"

enum { CAPACITY = 8192, HEADER = sizeof(tl_command), LARGEST = 2500 };

static tl_queue queue;

static int open_queue(void **state) {
  (void)state;
  tl_error error;
  return tl_queue_init(&queue, CAPACITY, &error) == TL_OK ? 0 : -1;
}

static int close_queue(void **state) {
  (void)state;
  tl_queue_destroy(&queue);
  return 0;
}

static size_t rounded(size_t size) { return (size + 63) / 64 * 64; }
static size_t used(void) { return (size_t)(queue.head - queue.reclaimed); }
static size_t to_end(void) { return CAPACITY - (size_t)(queue.head % CAPACITY); }

/* ---- commands that can be recognised ---- */

static void paint(tl_command *command, uint64_t ticket, size_t from) {
  command->op = TL_OP_add;
  command->ticket = ticket;
  for (size_t i = from; i < command->size; i++) {
    ((unsigned char *)command)[i] = (unsigned char)(ticket * 31 + i);
  }
}

static void check_paint(const tl_command *command) {
  for (size_t i = HEADER; i < command->size; i++) {
    unsigned char wanted = (unsigned char)(command->ticket * 31 + i);
    if (((const unsigned char *)command)[i] != wanted) fail_msg("a command is damaged");
  }
}

static tl_command *append(uint64_t ticket, size_t size) {
  tl_command *command = tl_queue_reserve(&queue, size);
  if (!command) return NULL;
  paint(command, ticket, HEADER);
  tl_queue_append(&queue, command);
  return command;
}

/* Takes the oldest command out, as retiring and reclaiming do. */
static uint64_t take(uint64_t end) {
  tl_command *command = tl_queue_at(&queue, &queue.reclaimed, end);
  if (!command) return 0;
  check_paint(command);
  uint64_t ticket = command->ticket;
  queue.reclaimed += command->size;
  return ticket;
}

/* ---- tests ---- */

static void test_empty(void **state) {
  (void)state;
  uint64_t position = 0;
  assert_null(tl_queue_at(&queue, &position, 0));
  assert_int_equal(position, 0);
}

static void test_commands_are_aligned(void **state) {
  (void)state;
  uint64_t ticket = 0;
  for (size_t size = HEADER; size < 1000; size += 13) {
    tl_command *command = append(++ticket, size);
    assert_non_null(command);
    assert_int_equal((uintptr_t)command % TL_QUEUE_ALIGNMENT, 0);
    assert_int_equal(command->size, rounded(size));
    assert_int_equal(queue.end, queue.head);
    assert_int_equal(take(queue.end), ticket);
    assert_int_equal(used(), 0);
  }
}

static void test_full(void **state) {
  (void)state;
  uint64_t ticket = 0;
  while (append(ticket + 1, 256)) ticket++;
  assert_int_equal(ticket, CAPACITY / 256);
  assert_int_equal(used(), CAPACITY);
  assert_null(tl_queue_reserve(&queue, HEADER));
  assert_int_equal(take(queue.end), 1);
  assert_null(tl_queue_reserve(&queue, 257));
  assert_non_null(append(++ticket, 256));
  for (uint64_t next = 2; next <= ticket; next++) assert_int_equal(take(queue.end), next);
  assert_int_equal(take(queue.end), 0);
}

static void test_padding(void **state) {
  (void)state;
  assert_non_null(append(1, CAPACITY - 128));
  assert_null(tl_queue_reserve(&queue, 256)); /* 128 bytes at the end, none at the beginning */
  assert_int_equal(queue.head, queue.end);
  assert_int_equal(take(queue.end), 1);
  assert_non_null(tl_queue_reserve(&queue, 256));
  assert_int_equal(queue.head, CAPACITY); /* past the padding */
  assert_int_equal(queue.end, CAPACITY - 128);
  assert_int_equal(take(queue.end), 0); /* which is not published */
  assert_int_equal(queue.reclaimed, CAPACITY - 128);
  tl_command *command = append(2, 256);
  assert_ptr_equal(command, queue.ring);
  uint64_t position = queue.reclaimed;
  assert_ptr_equal(tl_queue_at(&queue, &position, queue.end), command);
  assert_int_equal(position, CAPACITY);
  assert_int_equal(take(queue.end), 2);
  assert_int_equal(used(), 0);
}

static void test_extend(void **state) {
  (void)state;
  tl_command *command = append(1, 250);
  assert_true(tl_queue_extend(&queue, command, 256)); /* already that large */
  assert_int_equal(command->size, 256);
  assert_true(tl_queue_extend(&queue, command, 257));
  assert_int_equal(command->size, 320);
  assert_int_equal(queue.head, 320);
  assert_int_equal(queue.end, 320);
  assert_true(tl_queue_extend(&queue, command, CAPACITY));
  assert_int_equal(used(), CAPACITY);
  assert_false(tl_queue_extend(&queue, command, CAPACITY + 64));
  paint(command, 1, HEADER);
  assert_int_equal(take(queue.end), 1);

  /* Not over the ring's end, not behind padding, not into what is not reclaimed. */
  command = append(2, CAPACITY - 256);
  assert_true(tl_queue_extend(&queue, command, CAPACITY - 128));
  assert_false(tl_queue_extend(&queue, command, CAPACITY + 64));
  paint(command, 2, HEADER);
  assert_int_equal(take(queue.end), 2);
  assert_non_null(tl_queue_reserve(&queue, 512));
  assert_false(tl_queue_extend(&queue, command, CAPACITY - 64));
  command = append(3, 512);
  assert_non_null(append(4, CAPACITY - 1024));
  assert_int_equal(take(queue.end), 3);
  command = append(5, 512);
  assert_true(tl_queue_extend(&queue, command, 512));
  assert_false(tl_queue_extend(&queue, command, 513)); /* the ring's end */
  command = append(6, 448);
  assert_true(tl_queue_extend(&queue, command, 512));
  assert_false(tl_queue_extend(&queue, command, 513)); /* full */
  paint(command, 6, HEADER);
  for (uint64_t ticket = 4; ticket <= 6; ticket++) assert_int_equal(take(queue.end), ticket);
}

/* Random sizes, round and round: a refusal is right exactly when there is no room. */
static void test_wrap_around(void **state) {
  (void)state;
  srand(1);
  uint64_t ticket = 0, taken = 0, refused = 0, extended = 0;
  while (queue.head < 300 * CAPACITY) {
    size_t size = HEADER + (size_t)rand() % (rand() % 4 ? 300 : LARGEST);
    size_t room = CAPACITY - used(), end = to_end();
    size_t needed = rounded(size) + (rounded(size) > end ? end : 0);
    tl_command *command = append(ticket + 1, size);
    if (!command != (needed > room)) fail_msg("%d bytes in %d", (int)needed, (int)room);
    if (command) {
      ticket++;
      assert_true((char *)command + command->size <= queue.ring + CAPACITY);
      size_t larger = size + (size_t)rand() % 300;
      size_t before = command->size, more = rounded(larger) > before ? rounded(larger) - before : 0;
      size_t next = to_end() < CAPACITY ? to_end() : 0;
      bool fits = more == 0 || (more <= next && more <= CAPACITY - used());
      if (rand() % 3 == 0) {
        assert_int_equal(tl_queue_extend(&queue, command, larger), fits);
        if (fits) paint(command, ticket, before);
        extended += fits && more;
      }
    } else {
      refused++;
    }
    for (int takes = command ? rand() % 3 : 1; takes > 0 && taken < ticket; takes--) {
      assert_int_equal(take(queue.end), ++taken);
    }
  }
  while (taken < ticket) assert_int_equal(take(queue.end), ++taken);
  assert_int_equal(take(queue.end), 0);
  assert_true(refused > 100 && extended > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_empty, open_queue, close_queue),
      cmocka_unit_test_setup_teardown(test_commands_are_aligned, open_queue, close_queue),
      cmocka_unit_test_setup_teardown(test_full, open_queue, close_queue),
      cmocka_unit_test_setup_teardown(test_padding, open_queue, close_queue),
      cmocka_unit_test_setup_teardown(test_extend, open_queue, close_queue),
      cmocka_unit_test_setup_teardown(test_wrap_around, open_queue, close_queue),
  };
  return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
