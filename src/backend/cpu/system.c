/* What POSIX does not tell or do, and Linux does: the cores and the memory that this process has,
 * and huge pages. */
#define _GNU_SOURCE
#include "backend/cpu/system.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"

static const size_t HUGE_PAGE = 2 << 20;

int tl_cpu_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

/* The limit of the control group (version 2) of a container, when there is one. */
static size_t group_limit(void) {
  size_t limit = SIZE_MAX;
  FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
  if (!file) return limit;
  if (fscanf(file, "%zu", &limit) != 1) limit = SIZE_MAX; /* "max" */
  fclose(file);
  return limit;
}

size_t tl_cpu_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  size_t machine = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX;
  size_t limit = group_limit();
  return limit < machine ? limit : machine;
}

void *tl_cpu_allocate(size_t bytes) {
  if (bytes < HUGE_PAGE) return aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
  size_t rounded = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  void *buffer = aligned_alloc(HUGE_PAGE, rounded);
  if (buffer) madvise(buffer, rounded, MADV_HUGEPAGE); /* advice: nothing is lost if refused */
  return buffer;
}
