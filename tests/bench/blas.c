/* The limits of what multiplies matrices: the same products, one call of cblas_sgemm each, on the
 * cores that OPENBLAS_NUM_THREADS gives.  Prints lines "workload seconds". */
#include <cblas.h>

#include "timing.h"

typedef struct {
  const char *name;
  int rows, inner, columns;
  int per; /* so many products */
} product;

enum { LARGEST = 2048 };
static float *a, *b, *c;

static void multiply(int rows, int inner, int columns) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, 1, a, inner, b,
              columns, 0, c, columns);
}

static void run_product(void *context) {
  const product *p = context;
  for (int i = 0; i < p->per; i++) multiply(p->rows, p->inner, p->columns);
}

static void run_mlp(void *context) {
  int batch = *(int *)context;
  multiply(batch, 512, 256);
  multiply(batch, 256, 128);
  multiply(batch, 128, 2);
}

int main(void) {
  size_t count = (size_t)LARGEST * LARGEST;
  a = malloc(count * sizeof *a);
  b = malloc(count * sizeof *b);
  c = malloc(count * sizeof *c);
  if (!a || !b || !c) return 1;
  for (size_t i = 0; i < count; i++) a[i] = b[i] = (float)(i % 17) - 8;

  static product products[] = {
      {"mm.64", 64, 64, 64, 1000},        {"mm.128", 128, 128, 128, 300},
      {"mm.256", 256, 256, 256, 50},      {"mm.512", 512, 512, 512, 5},
      {"mm.1024", 1024, 1024, 1024, 1},   {"mm.2048", 2048, 2048, 2048, 1},
      {"warmup", 1000, 1000, 1000, 10},   {"products64", 200, 200, 200, 64},
  };
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    product *p = &products[i];
    if (!bench_wanted(p->name)) continue;
    int counts_as = strncmp(p->name, "mm.", 3) == 0 ? p->per : 1;
    printf("%s %.9f\n", p->name, bench_best(run_product, p) / counts_as);
  }
  if (bench_wanted("mlp.1")) printf("mlp.1 %.9f\n", bench_best(run_mlp, &(int){1}));
  if (bench_wanted("mlp.256")) printf("mlp.256 %.9f\n", bench_best(run_mlp, &(int){256}));
  free(a);
  free(b);
  free(c);
  return 0;
}
