/* CG: finds the smallest eigenvalue of a large sparse symmetric matrix, by conjugate gradients within inverse
 * iteration.
 *
 * Shapes and order of access are those that the NAS Parallel Benchmarks describe: 75000 rows with some 185
 * numbers each (159 MiB with their columns), 25 products with a vector for each solution: one long stream,
 * read again and again, that picks from a vector at random.
 *
 * The matrix is our own: the sum of many shuffles of the rows, i to a*i + b modulo n, with random weights,
 * and their transposes, plus a diagonal twice as large as the rest's largest eigenvalue is likely to be.
 * So rows can be written one after the other, without sorting a list of entries. */
#include "far.h"

enum { SHUFFLES = 92, WIDTH = 2 * SHUFFLES + 1, PRODUCTS = 25 };
static int n;
static double *weight;
static int *column;

/* Returns the inverse of a modulo n; 0 if there is none. */
static long inverse(long a) {
    long r = n, next = a, t = 0, t_next = 1;
    while (next) {
        long times = r / next, swap = r - times * next;
        r = next, next = swap;
        swap = t - times * t_next;
        t = t_next, t_next = swap;
    }
    return r == 1 ? (t + n) % n : 0;
}

static double entry(long from, long shuffle) { return 2 * draw(from * SHUFFLES + shuffle) - 1; }

static void fill(void) {
    long factor[SHUFFLES], back[SHUFFLES], shift[SHUFFLES];
    for (long s = 0, tries = 0; s < SHUFFLES; tries++) {
        factor[s] = 1 + (long)(draw(3 * tries) * (n - 1));
        shift[s] = (long)(draw(3 * tries + 1) * n);
        back[s] = inverse(factor[s]);
        s += back[s] != 0;
    }
    for (long i = 0; i < n; i++) {
        double *w = weight + i * WIDTH;
        int *c = column + i * WIDTH;
        for (long s = 0; s < SHUFFLES; s++) {
            long to = (i * factor[s] + shift[s]) % n, from = (i - shift[s] + n) % n * back[s] % n;
            c[2 * s] = (int)to, w[2 * s] = entry(i, s);
            c[2 * s + 1] = (int)from, w[2 * s + 1] = entry(from, s);
        }
        /* Random signs of variance 1/3: the largest eigenvalue is near 2 sqrt(count/3). */
        c[2 * SHUFFLES] = (int)i, w[2 * SHUFFLES] = 4 * sqrt(2 * SHUFFLES / 3.0);
    }
}

static void product(const double *x, double *y) {
    for (long i = 0; i < n; i++) {
        double sum = 0;
        for (long k = i * WIDTH; k < (i + 1) * WIDTH; k++) sum += weight[k] * x[column[k]];
        y[i] = sum;
    }
}

static double dot(const double *x, const double *y) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Solves A z = x with work vectors p, q, r. Returns the residual, computed from z and not by the recurrence. */
static double solve(const double *x, double *z, double *p, double *q, double *r) {
    for (int i = 0; i < n; i++) z[i] = 0, p[i] = r[i] = x[i];
    double rest = dot(r, r);
    for (int turn = 0; turn < PRODUCTS; turn++) {
        product(p, q);
        double far = rest / dot(p, q), last = rest;
        for (int i = 0; i < n; i++) z[i] += far * p[i], r[i] -= far * q[i];
        rest = dot(r, r);
        for (int i = 0; i < n; i++) p[i] = r[i] + rest / last * p[i];
    }
    product(z, q);
    for (int i = 0; i < n; i++) r[i] = x[i] - q[i];
    return sqrt(dot(r, r) / dot(x, x));
}

int main(int argc, char **argv) {
    int times = (int)option(argc, argv, "--times", 5);
    n = (int)lround(75000 * option(argc, argv, "--scale", 1));
    n = n < 500 ? 500 : n;
    weight = room((size_t)n * WIDTH, sizeof *weight);
    column = room((size_t)n * WIDTH, sizeof *column);
    double *x = room(n, 8), *z = room(n, 8), *p = room(n, 8), *q = room(n, 8), *r = room(n, 8), value = 0;
    fill();
    for (int i = 0; i < n; i++) x[i] = 1 / sqrt(n);

    double begin = now();
    for (int turn = 0; turn < times; turn++) {
        double off = solve(x, z, p, q, r), length = sqrt(dot(z, z));
        require(off < 1e-12, "cg: the solution does not solve the system");
        value = 1 / dot(x, z);
        for (int i = 0; i < n; i++) x[i] = z[i] / length;
    }
    result("cg", now() - begin, value);
    finish();
}
