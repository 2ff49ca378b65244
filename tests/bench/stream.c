/* The limits of what passes over arrays: one loop in C for all of a workload, over warm buffers, by
 * as many threads as the argument says.  Prints lines "workload seconds".
 *
 * Each loop is tried both ways, storing in place and, from a block in L1, past the caches; the
 * better one counts.  Compiled for this machine with all that -Ofast allows. */
#define _DEFAULT_SOURCE /* madvise */
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "timing.h"

enum { BLOCK = 1024, LARGE = 10000000, WARM = 1000000, ROWS = 4096 };

/* Computes one block of `n` elements; a reduction leaves one element. */
typedef void kernel(float *restrict out, const float *restrict x, const float *restrict y, int n);

#define EACH(name, formula)                                                           \
  static void name(float *restrict out, const float *restrict x, const float *restrict y, \
                   int n) {                                                            \
    for (int i = 0; i < n; i++) out[i] = (formula);                                    \
    (void)y;                                                                           \
  }
EACH(loop_copy, x[i])
EACH(loop_add, x[i] + y[i])
EACH(loop_xy2, x[i] * y[i] + 2)
EACH(loop_chain, ((((x[i] * y[i] + 2) * x[i] - 1) * y[i] + x[i]) * 0.5f - y[i]))
EACH(loop_exp, expf(x[i]))
EACH(loop_tanh, tanhf(x[i]))
EACH(loop_gelu, 0.5f * x[i] * (1 + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]))))

static void loop_softmax(float *restrict out, const float *restrict x, const float *restrict y,
                         int n) {
  float largest = x[0], total = 0;
  for (int i = 0; i < n; i++) largest = x[i] > largest ? x[i] : largest;
  for (int i = 0; i < n; i++) out[i] = expf(x[i] - largest);
  for (int i = 0; i < n; i++) total += out[i];
  for (int i = 0; i < n; i++) out[i] /= total;
  (void)y;
}

static void loop_sum(float *restrict out, const float *restrict x, const float *restrict y, int n) {
  float total = 0;
  for (int i = 0; i < n; i++) total += x[i];
  *out = total;
  (void)y;
}

typedef struct {
  const char *name;
  kernel *loop;
  long count;
  int reduces;
} workload;

/* Threads that run a workload together: `begin`, each its part, `end`. */

static float *in_x, *in_y, *result;
static int threads;
static pthread_barrier_t begin, end;
static const workload *current;
static int streaming, finished;

static void store_past_caches(float *to, const float *from, int n) {
#ifdef __SSE2__
  for (int i = 0; i < n / 4; i++) {
    _mm_stream_si128((__m128i *)to + i, _mm_load_si128((const __m128i *)from + i));
  }
  memcpy(to + n / 4 * 4, from + n / 4 * 4, (size_t)(n % 4) * sizeof *to);
#else
  memcpy(to, from, (size_t)n * sizeof *to);
#endif
}

static void run_part(int part) {
  _Alignas(64) float block[BLOCK];
  const workload *w = current;
  long blocks = (w->count + BLOCK - 1) / BLOCK;
  for (long i = blocks * part / threads, last = blocks * (part + 1) / threads; i < last; i++) {
    long at = i * BLOCK;
    int n = w->count - at < BLOCK ? (int)(w->count - at) : BLOCK;
    float *out = w->reduces ? result + i : result + at;
    if (streaming) {
      w->loop(block, in_x + at, in_y + at, n);
      store_past_caches(out, block, n);
    } else {
      w->loop(out, in_x + at, in_y + at, n);
    }
  }
}

static void *helper_main(void *part) {
  for (;;) {
    pthread_barrier_wait(&begin);
    if (finished) return NULL;
    run_part(*(int *)part);
    pthread_barrier_wait(&end);
  }
}

static void run(void *context) {
  current = context;
  pthread_barrier_wait(&begin);
  run_part(0);
  pthread_barrier_wait(&end);
}

static float *huge_buffer(void) {
  size_t bytes = ((size_t)LARGE * sizeof(float) + (1u << 21)) & ~(((size_t)1 << 21) - 1);
  float *buffer = aligned_alloc((size_t)1 << 21, bytes);
  if (!buffer) exit(1);
  madvise(buffer, bytes, MADV_HUGEPAGE);
  for (long i = 0; i < LARGE; i++) buffer[i] = (float)(i % 17) / 8 - 1;
  return buffer;
}

int main(int argc, char **argv) {
  enum { MOST = 256 };
  pthread_t helpers[MOST];
  int parts[MOST];
  threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > MOST) return 1;
  in_x = huge_buffer();
  in_y = huge_buffer();
  result = huge_buffer();
  pthread_barrier_init(&begin, NULL, (unsigned)threads);
  pthread_barrier_init(&end, NULL, (unsigned)threads);
  for (int i = 1; i < threads; i++) {
    parts[i] = i;
    if (pthread_create(&helpers[i], NULL, helper_main, &parts[i]) != 0) return 1;
  }

  static workload workloads[] = {
      {"xy2", loop_xy2, LARGE, 0},
      {"chain", loop_chain, LARGE, 0},
      {"exp", loop_exp, WARM, 0},
      {"tanh", loop_tanh, WARM, 0},
      {"gelu", loop_gelu, WARM, 0},
      {"softmax", loop_softmax, (long)ROWS * BLOCK, 0},
      {"sum.rows", loop_sum, (long)ROWS * BLOCK, 1},
      {"sum.columns", loop_sum, (long)ROWS * BLOCK, 1},
      {"transpose", loop_copy, (long)ROWS * BLOCK, 0},
      {"layout.transposed", loop_add, (long)ROWS * BLOCK, 0},
      {"layout.stepped", loop_add, (long)ROWS * BLOCK, 0},
      {"layout.row", loop_add, (long)ROWS * BLOCK, 0},
  };
  for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
    workload *w = &workloads[i];
    if (!bench_wanted(w->name)) continue;
    streaming = 0;
    double best = bench_best(run, w);
    streaming = !w->reduces;
    double past_caches = streaming ? bench_best(run, w) : best;
    printf("%s %.9f\n", w->name, past_caches < best ? past_caches : best);
  }
  finished = 1;
  if (threads > 1) pthread_barrier_wait(&begin);
  for (int i = 1; i < threads; i++) pthread_join(helpers[i], NULL);
  free(in_x);
  free(in_y);
  free(result);
  return 0;
}
