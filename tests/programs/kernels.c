/* Compares the kernels' C interface with the definitions in docs/kernels.md, which this file implements in plain C. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "largesse.h"

enum { LANES = 64, PART = 32768, PARTS = 256 };

static int wrong;

static void same(const char *what, size_t n, double got, double want)
{
    if (memcmp(&got, &want, sizeof got) == 0) return;
    printf("%s of %zu: %a, not %a\n", what, n, got, want);
    wrong = 1;
}

static double tree(double *lanes, size_t width)
{
    while ((width /= 2) > 0)
        for (size_t k = 0; k < width; k++) lanes[k] += lanes[k + width];
    return lanes[0];
}

static size_t part_length(size_t n)
{
    size_t parts = (n + PART - 1) / PART;
    if (parts <= 1) return n;
    if (parts > PARTS) parts = PARTS;
    return ((n + parts - 1) / parts + LANES - 1) / LANES * LANES;
}

/* Returns the sum of x, or of x times y if there is a y. */
static double reference(size_t n, const double *x, const double *y)
{
    double results[LANES] = {0}, only = 0;
    size_t length = part_length(n), parts = 0;
    for (size_t start = 0; start < n; start += length, parts++) {
        double lanes[LANES] = {0};
        for (size_t i = start; i < n && i < start + length; i++)
            lanes[(i - start) % LANES] =
                y ? fma(x[i], y[i], lanes[(i - start) % LANES]) : lanes[(i - start) % LANES] + x[i];
        only = tree(lanes, LANES);
        results[parts % LANES] += only;
    }
    return (parts == 1 ? only : tree(results, LANES)) + 0.0;
}

static void compare(size_t n, const double *x, const double *y)
{
    same("dsum", n, largesse_dsum(n, x, 1), reference(n, x, NULL));
    same("ddot", n, largesse_ddot(n, x, 1, y, 1), reference(n, x, y));
    same("dsumsq", n, largesse_dsumsq(n, y, 1), reference(n, y, y));
    same("dnrm2", n, largesse_dnrm2(n, y, 1), sqrt(reference(n, y, y)));
    double *other = malloc((2 * n + 1) * sizeof *other);
    for (size_t i = 0; i < n; i++) other[i] = fabs(y[i]);
    same("dasum", n, largesse_dasum(n, y, 1), reference(n, other, NULL));
    double most = 0, least = INFINITY;
    for (size_t i = 0; i < n; i++) most = fmax(most, other[i]), least = fmin(least, other[i]);
    same("damax", n, largesse_damax(n, y, 1), most);
    same("damin", n, largesse_damin(n, y, 1), least);
    /* The strided copy is in reverse order, with a stride of two. */
    for (size_t i = 0; i < n; i++) other[2 * (n - 1 - i)] = x[i];
    same("ddot, steps", n, largesse_ddot(n, other, -2, y, 1), reference(n, x, y));
    memcpy(other, y, n * sizeof *y);
    largesse_daxpy(n, 0.75, x, 1, other, 1);
    for (size_t i = 0; i < n; i++) same("daxpy", i, other[i], fma(0.75, x[i], y[i]));
    free(other);
}

static int close_to(double complex a, double complex b) { return cabs(a - b) < 1e-12 * cabs(b); }

int main(void)
{
    static const size_t lengths[] = {0, 1, 7, 31, 64, 100, 1000, 4099, PART, PART + 1, 3000000};
    enum { MOST = 3000000 };
    double *x = malloc(MOST * sizeof *x), *y = malloc(MOST * sizeof *y);
    for (int i = 0; i < MOST; i++) x[i] = 1.0 / (i + 1), y[i] = sqrt(i + 1.0) * (i % 3 ? 1 : -1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) compare(lengths[i], x, y);

    const double complex z[3] = {1 + 2 * I, 3 - 1 * I, 0.5 * I}, w[3] = {2 - 1 * I, 1 * I, 4};
    if (largesse_zdotu(3, z, 1, w, 1) != z[0] * w[0] + z[1] * w[1] + z[2] * w[2]) wrong = 1, puts("zdotu");
    if (largesse_zdotc(3, z, 1, w, 1) != conj(z[0]) * w[0] + conj(z[1]) * w[1] + conj(z[2]) * w[2]) wrong = 1, puts("zdotc");
    const float complex c[2] = {1 + 2 * I, 3 - 1 * I}, d[2] = {2 - 1 * I, 1 * I};
    if (!close_to(largesse_cdotu(2, c, 1, d, 1), c[0] * d[0] + c[1] * d[1])) wrong = 1, puts("cdotu");
    if (!close_to(largesse_cdotc(2, c, -1, d, -1), conjf(c[0]) * d[0] + conjf(c[1]) * d[1])) wrong = 1, puts("cdotc");

    float f[300], g[300];
    for (int i = 0; i < 300; i++) f[i] = i % 17 - 8, g[i] = i % 5;
    float sum = 0, squares = 0, absolute = 0, dot = 0;
    for (int i = 0; i < 300; i++) sum += f[i], squares += f[i] * f[i], absolute += fabsf(f[i]), dot += f[i] * g[i];
    if (largesse_ssum(300, f, 1) != sum || largesse_ssumsq(300, f, 1) != squares || largesse_sasum(300, f, 1) != absolute ||
        largesse_sdot(300, f, 1, g, 1) != dot || largesse_snrm2(300, f, 1) != sqrtf(squares) ||
        largesse_samax(300, f, 1) != 8 || largesse_samin(300, f, 1) != 0) wrong = 1, puts("float");
    largesse_saxpy(300, 2, f, 1, g, 1);
    for (int i = 0; i < 300; i++) if (g[i] != 2 * f[i] + i % 5) wrong = 1, puts("saxpy");

    /* A child must start threads of its own, because it has not inherited its parent's. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        compare(MOST, x, y);
        fflush(stdout);
        _exit(wrong);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) wrong = 1, printf("child: status %#x\n", status);
    puts(wrong ? "wrong" : "all bits agree");
    return wrong;
}
