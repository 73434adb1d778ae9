/* The kernels as plain loops, for `largesse bench kernels`: a compiler's result for the obvious code; and the
 * steps by which a sum of doubles was made faster on the HA8000: one accumulator, two numbers at a time, then
 * four and eight accumulators, which hide the latency of an addition. */
#include <complex.h>
#include <math.h>
#include <stddef.h>

double plain_dsum(size_t n, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

double plain_dasum(size_t n, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += fabs(x[i]);
    return sum;
}

double plain_dsumsq(size_t n, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

double plain_dnrm2(size_t n, const double *x) { return sqrt(plain_dsumsq(n, x)); }

double plain_ddot(size_t n, const double *x, const double *y)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

void plain_daxpy(size_t n, double a, const double *restrict x, double *restrict y)
{
    for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

void plain_zdotu(size_t n, const double *x, const double *y, double *result)
{
    double re = 0, im = 0;
    for (size_t i = 0; i < n; i++) {
        re += x[2 * i] * y[2 * i] - x[2 * i + 1] * y[2 * i + 1];
        im += x[2 * i] * y[2 * i + 1] + x[2 * i + 1] * y[2 * i];
    }
    result[0] = re;
    result[1] = im;
}

float plain_ssum(size_t n, const float *x)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

float plain_sdot(size_t n, const float *x, const float *y)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Defines the ladder with vectors of two doubles, which every 64-bit processor has. */
typedef double pair __attribute__((vector_size(16), aligned(8)));

#define LADDER(accumulators)                                                                                   \
    double ladder_##accumulators(size_t n, const double *x)                                                    \
    {                                                                                                          \
        pair sums[accumulators] = {{0}}, all = {0};                                                            \
        size_t i = 0;                                                                                          \
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
