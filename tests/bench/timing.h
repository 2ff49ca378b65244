/* What the limits share: the clock, and the rule of here.lua and peers.py (one run unmeasured, then
 * the best of those that fill the budget).  BENCH_ONLY, part of a name, picks workloads. */
#ifndef TL_BENCH_TIMING_H
#define TL_BENCH_TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_BUDGET 0.1 /* seconds */

static inline double bench_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int bench_wanted(const char *name) {
  const char *only = getenv("BENCH_ONLY");
  return !only || strstr(name, only);
}

/* Seconds of one work(context). */
static inline double bench_best(void (*work)(void *), void *context) {
  double least = 1e9, spent = 0;
  work(context);
  while (spent < BENCH_BUDGET) {
    double start = bench_seconds();
    work(context);
    double taken = bench_seconds() - start;
    if (taken < least) least = taken;
    spent += taken;
  }
  return least;
}

#endif
