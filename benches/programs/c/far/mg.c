/* MG: solves a Poisson equation on a periodic cube, on several ever coarser grids.
 *
 * Shapes and order of access are those that the NAS Parallel Benchmarks describe: 256 points an edge and a
 * border that repeats the other side, solution and residual on every level, right side on the finest: some
 * 430 MiB. A cycle streams through the finest grid some four times and visits all the smaller ones in
 * between; the right side has ten charges of each sign.
 *
 * The operator is our own choice, A u = 6 u - (the six neighbours). On components that a coarser grid cannot
 * represent, its eigenvalues are within [2, 12]; the smoother S = (16 + 2 (six neighbours)) / 73 is the one that leaves
 * least of it, at most 0.35: 1 - A S is Chebyshev's polynomial of degree 2 there. */
#include "far.h"

typedef struct {
    int n;         /* points along an edge, without the border */
    double *u, *r; /* solution and residual */
} level_t;
enum { LEVELS = 12 };
static level_t level[LEVELS];

static size_t cells(int n) { return (size_t)(n + 2) * (n + 2) * (n + 2); }
static size_t place(int n, int i, int j, int k) { return ((size_t)i * (n + 2) + j) * (n + 2) + k; }

#define EACH_ROW(n)              \
    for (int i = 1; i <= n; i++) \
        for (int j = 1; j <= n; j++)

/* Copies the other side to the border. */
static void wrap(int n, double *x) {
    EACH_ROW(n) {
        x[place(n, i, j, 0)] = x[place(n, i, j, n)];
        x[place(n, i, j, n + 1)] = x[place(n, i, j, 1)];
    }
    size_t row = (n + 2) * sizeof *x;
    for (int i = 1; i <= n; i++) {
        memcpy(x + place(n, i, 0, 0), x + place(n, i, n, 0), row);
        memcpy(x + place(n, i, n + 1, 0), x + place(n, i, 1, 0), row);
    }
    memcpy(x + place(n, 0, 0, 0), x + place(n, n, 0, 0), (n + 2) * row);
    memcpy(x + place(n, n + 1, 0, 0), x + place(n, 1, 0, 0), (n + 2) * row);
}

static double neighbours(const double *x, size_t p, size_t row, size_t plane) {
    return x[p - 1] + x[p + 1] + x[p - row] + x[p + row] + x[p - plane] + x[p + plane];
}

/* Computes r := v - A u; v may be r. */
static void residual(int n, const double *u, const double *v, double *r) {
    size_t row = n + 2, plane = row * row;
    EACH_ROW(n) for (size_t p = place(n, i, j, 1); p < place(n, i, j, n + 1); p++)
        r[p] = v[p] - (6 * u[p] - neighbours(u, p, row, plane));
    wrap(n, r);
}

/* Computes u := u + S r. */
static void smooth(int n, const double *r, double *u) {
    size_t row = n + 2, plane = row * row;
    EACH_ROW(n) for (size_t p = place(n, i, j, 1); p < place(n, i, j, n + 1); p++)
        u[p] += (16 * r[p] + 2 * neighbours(r, p, row, plane)) / 73;
    wrap(n, u);
}

/* Sets a coarse point to the weighted mean of the fine ones around it, nearer ones more; times 4 = distance^2. */
static void coarsen(int coarse, const double *fine, double *to) {
    EACH_ROW(coarse) for (int k = 1; k <= coarse; k++) {
        double sum = 0;
        for (int a = -1; a <= 1; a++)
            for (int b = -1; b <= 1; b++) {
                const double *x = fine + place(2 * coarse, 2 * i + a, 2 * j + b, 2 * k);
                sum += (2 - abs(a)) * (2 - abs(b)) * (x[-1] + 2 * x[0] + x[1]);
            }
        to[place(coarse, i, j, k)] = sum / 16;
    }
    wrap(coarse, to);
}

/* Adds to a fine point the mean of the eight, four, two or one coarse ones around it, which also fills the border. */
static void refine(int coarse, const double *from, double *fine) {
    for (int i = 0; i <= 2 * coarse + 1; i++)
        for (int j = 0; j <= 2 * coarse + 1; j++) {
            const double *a = from + place(coarse, i / 2, j / 2, 0);
            const double *b = from + place(coarse, (i + 1) / 2, j / 2, 0);
            const double *c = from + place(coarse, i / 2, (j + 1) / 2, 0);
            const double *d = from + place(coarse, (i + 1) / 2, (j + 1) / 2, 0);
            double *to = fine + place(2 * coarse, i, j, 0);
            double here = (a[0] + b[0] + c[0] + d[0]) / 4;
            for (int k = 0; k <= coarse; k++) {
                double next = (a[k + 1] + b[k + 1] + c[k + 1] + d[k + 1]) / 4;
                to[2 * k] += here;
                to[2 * k + 1] += (here + next) / 2;
                here = next;
            }
        }
}

/* Runs a cycle down to two or three points an edge, and up again. */
static void cycle(int finest, const double *v) {
    for (int l = finest; l > 0; l--) coarsen(level[l - 1].n, level[l].r, level[l - 1].r);
    for (int l = 0; l <= finest; l++) {
        level_t at = level[l];
        if (l < finest) memset(at.u, 0, cells(at.n) * sizeof(double));
        if (l > 0) {
            refine(level[l - 1].n, level[l - 1].u, at.u);
            residual(at.n, at.u, l < finest ? at.r : v, at.r);
        }
        smooth(at.n, at.r, at.u);
    }
    residual(level[finest].n, level[finest].u, v, level[finest].r);
}

static double norm(int n, const double *x) {
    double sum = 0;
    EACH_ROW(n) for (int k = 1; k <= n; k++) sum += x[place(n, i, j, k)] * x[place(n, i, j, k)];
    return sqrt(sum);
}

int main(int argc, char **argv) {
    int times = (int)option(argc, argv, "--times", 10), finest = 0;
    /* An edge is two or three times a power of two: a share of the data is rounded to that. */
    double edge = 256 * cbrt(option(argc, argv, "--scale", 1));
    for (; edge >= 3.5; edge /= 2) finest++;
    require(finest > 0 && finest < LEVELS, "--scale: too small or too large");
    for (int l = 0; l <= finest; l++) {
        int n = (int)lround(edge) << l;
        level[l] = (level_t){n, zeros(cells(n), sizeof(double)), zeros(cells(n), sizeof(double))};
    }
    int n = level[finest].n;
    double *v = zeros(cells(n), sizeof *v);
    for (uint64_t c = 0; c < 20; c++) {
        int i = 1 + (int)(draw(3 * c) * n), j = 1 + (int)(draw(3 * c + 1) * n), k = 1 + (int)(draw(3 * c + 2) * n);
        v[place(n, i, j, k)] += c < 10 ? 1 : -1;
    }
    wrap(n, v);
    memcpy(level[finest].r, v, cells(n) * sizeof *v);
    cycle(finest, v); /* Every page is touched before the clock starts. */
    memset(level[finest].u, 0, cells(n) * sizeof *v);

    double begin = now();
    residual(n, level[finest].u, v, level[finest].r);
    for (int turn = 0; turn < times; turn++) cycle(finest, v);
    double seconds = now() - begin, left = norm(n, level[finest].r);
    require(left < fmax(norm(n, v) * pow(0.37, times), 1e-9), "mg: too much of the residual is left");
    result("mg", seconds, left);
    finish();
}
