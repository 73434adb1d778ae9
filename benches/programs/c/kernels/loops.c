/* The kernels as plain loops, for `largesse bench kernels`: a compiler's result for the obvious code; and the
 * steps by which a sum of doubles was made faster on the HA8000: one accumulator, two numbers at a time, then
 * four and eight accumulators, which hide the latency of an addition. The functions have the types of cblas.h, so that
 * they are called like those of OpenBLAS; every step is 1. */
#include <complex.h>
#include <math.h>
#include <stddef.h>

double plain_dsum(int n, const double *x, int step)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)n; i++) sum += x[i];
    return sum;
}

double plain_dasum(int n, const double *x, int step)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)n; i++) sum += fabs(x[i]);
    return sum;
}

static double sum_of_squares(size_t n, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

/* Like ddot(x, x), which is called where a library has no sum of squares. */
double plain_dsumsq(int n, const double *x, int step, const double *y, int y_step) { return sum_of_squares(n, x); }

double plain_dnrm2(int n, const double *x, int step) { return sqrt(sum_of_squares(n, x)); }

double plain_ddot(int n, const double *x, int step, const double *y, int y_step)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)n; i++) sum += x[i] * y[i];
    return sum;
}

void plain_daxpy(int n, double a, const double *restrict x, int step, double *restrict y, int y_step)
{
    for (size_t i = 0; i < (size_t)n; i++) y[i] += a * x[i];
}

void plain_zdotu_sub(int n, const double *x, int step, const double *y, int y_step, double *result)
{
    double re = 0, im = 0;
    for (size_t i = 0; i < (size_t)n; i++) {
        re += x[2 * i] * y[2 * i] - x[2 * i + 1] * y[2 * i + 1];
        im += x[2 * i] * y[2 * i + 1] + x[2 * i + 1] * y[2 * i];
    }
    result[0] = re;
    result[1] = im;
}

float plain_ssum(int n, const float *x, int step)
{
    float sum = 0;
    for (size_t i = 0; i < (size_t)n; i++) sum += x[i];
    return sum;
}

float plain_sdot(int n, const float *x, int step, const float *y, int y_step)
{
    float sum = 0;
    for (size_t i = 0; i < (size_t)n; i++) sum += x[i] * y[i];
    return sum;
}

/* Defines the ladder with vectors of two doubles, which every 64-bit processor has. */
typedef double pair __attribute__((vector_size(16), aligned(8)));

#define LADDER(accumulators)                                                                                   \
    double ladder_##accumulators(int count, const double *x, int step)                                         \
    {                                                                                                          \
        pair sums[accumulators] = {{0}}, all = {0};                                                            \
        size_t i = 0, n = count;                                                                               \
        for (; i + 2 * accumulators <= n; i += 2 * accumulators)                                               \
            _Pragma("GCC unroll 8") for (int k = 0; k < accumulators; k++) sums[k] += *(const pair *)(x + i + 2 * k); \
        for (int k = 0; k < accumulators; k++) all += sums[k];                                                 \
        double sum = all[0] + all[1];                                                                          \
        for (; i < n; i++) sum += x[i];                                                                        \
        return sum;                                                                                            \
    }

LADDER(1)
LADDER(4)
LADDER(8)
