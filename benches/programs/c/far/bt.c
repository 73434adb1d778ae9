/* BT: solves implicit steps for five coupled quantities on a cube, along x, then y, then z.
 *
 * Shapes and order of access are those that the NAS Parallel Benchmarks describe: along each axis every grid line
 * is a system of 5x5 blocks, three a point; the blocks and the Jacobians they are made of are stored for the whole
 * grid. So each step passes three times over some 300 MiB, once along each axis, and only along one of them in
 * the order of memory. The arrays lie in .bss, where no allocator sees them (--storage heap: calloc).
 *
 * The equations are our own: each component m is carried by the components 1, 2, 3 as velocities and spreads,
 *     du_m/dt = forcing_m - sum over axes d of ( (u_m u_{1+d})_d - (N_m(u))_dd ),
 *     N_m(u) = NU (u_m + MIX (sum of the others)) + BEND u_m^2,
 * with a forcing that leaves a known function unchanged. Each step must come nearer to it. */
#include "grid.h"

extern void largesse_tune_begin(const char *) __attribute__((weak));
extern void largesse_tune_end(const char *) __attribute__((weak));

typedef double vec[5];
typedef double block[5][5];
enum { BEFORE, HERE, AFTER }; /* the blocks of a row: times the neighbours along the axis, times the point */
#define EACH5(m) for (int m = 0; m < 5; m++)
#define DT 0.05
#define NU 0.2
#define MIX 0.05
#define BEND 0.02

static vec still_u[POINTS], still_rhs[POINTS], still_forcing[POINTS];
static block still_fjac[POINTS], still_njac[POINTS], still_lhs[POINTS][3];
static vec *u = still_u, *rhs = still_rhs, *forcing = still_forcing;
static block *fjac = still_fjac, *njac = still_njac, (*lhs)[3] = still_lhs;

static double spread(const vec v, int m) {
    return NU * ((1 - MIX) * v[m] + MIX * (v[0] + v[1] + v[2] + v[3] + v[4])) + BEND * v[m] * v[m];
}

static void flux(long p, int axis, int at, int with) {
    const double *less = u[p - stride[axis]], *here = u[p], *more = u[p + stride[axis]];
    (void)at, (void)with;
    EACH5(m) {
        double carried = (more[m] * more[1 + axis] - less[m] * less[1 + axis]) / (2 * h);
        double spreading = (spread(more, m) - 2 * spread(here, m) + spread(less, m)) / (h * h);
        rhs[p][m] += DT * (spreading - carried);
    }
}

/* Returns the change by an explicit step, which is 0 for the steady u. */
static void right_side(void) {
    for (long p = 0; p < points; p++) EACH5(m) rhs[p][m] = DT * forcing[p][m];
    for (int axis = 0; axis < 3; axis++) inner(axis, LINES, 0, flux, 0);
}

/* Computes derivatives of the convected and of the diffused quantities along the axis. */
static void jacobians(long p, int axis) {
    EACH5(m) EACH5(l) {
        fjac[p][m][l] = (l == m) * u[p][1 + axis] + (l == 1 + axis) * u[p][m];
        njac[p][m][l] = NU * (l == m ? 1 : MIX) + (l == m) * 2 * BEND * u[p][m];
    }
}

/* Computes the row of a point in the systems along the axis. */
static void blocks(long p, int axis) {
    long s = stride[axis];
    double first = DT / (2 * h), second = DT / (h * h);
    EACH5(m) EACH5(l) {
        lhs[p][BEFORE][m][l] = -first * fjac[p - s][m][l] - second * njac[p - s][m][l];
        lhs[p][HERE][m][l] = (l == m) + 2 * second * njac[p][m][l];
        lhs[p][AFTER][m][l] = first * fjac[p + s][m][l] - second * njac[p + s][m][l];
    }
}

/* Solves in the published order: along x line by line, otherwise with two passes through memory. */
static void build(int axis) {
    if (axis == 0) {
        for (int j = 1; j < n - 1; j++)
            for (int k = 1; k < n - 1; k++) {
                for (int i = 0; i < n; i++) jacobians(place(i, j, k), axis);
                for (int i = 1; i < n - 1; i++) blocks(place(i, j, k), axis);
            }
    } else {
        EACH_POINT(i, j, k) jacobians(place(i, j, k), axis);
        for (int i = 1; i < n - 1; i++)
            for (int j = 1; j < n - 1; j++)
                for (int k = 1; k < n - 1; k++) blocks(place(i, j, k), axis);
    }
}

/* Sets c := b^-1 c and r := b^-1 r and overwrites b, whose diagonal is large enough for division without pivots. */
static void divide(block b, block c, vec r) {
    EACH5(k) {
        double pivot = 1 / b[k][k];
        for (int l = k + 1; l < 5; l++) b[k][l] *= pivot;
        EACH5(l) c[k][l] *= pivot;
        r[k] *= pivot;
        EACH5(m) if (m != k) {
            double times = b[m][k];
            for (int l = k + 1; l < 5; l++) b[m][l] -= times * b[k][l];
            EACH5(l) c[m][l] -= times * c[k][l];
            r[m] -= times * r[k];
        }
    }
}

static void eliminate(long p, int axis, int at, int with) {
    long before = p - stride[axis];
    (void)with;
    if (at > 1) EACH5(m) EACH5(k) {
        double times = lhs[p][BEFORE][m][k];
        EACH5(l) lhs[p][HERE][m][l] -= times * lhs[before][AFTER][k][l];
        rhs[p][m] -= times * rhs[before][k];
    }
    divide(lhs[p][HERE], lhs[p][AFTER], rhs[p]);
}

static void substitute(long p, int axis, int at, int with) {
    (void)at, (void)with;
    EACH5(m) EACH5(l) rhs[p][m] -= lhs[p][AFTER][m][l] * rhs[p + stride[axis]][l];
}

/* Puts the solution of one line into newly built rows, and checks that it gives the right side. */
static void check_line(int axis, vec *asked) {
    long s = stride[axis], line = middle_line(axis);
    double worst = 0, largest = 0;
    for (int at = 1; at < n - 1; at++) {
        long p = line + at * s;
        blocks(p, axis);
        EACH5(m) {
            double sum = 0;
            for (int which = BEFORE; which <= AFTER; which++)
                EACH5(l) sum += lhs[p][which][m][l] * rhs[p + (which - HERE) * s][l];
            worst = fmax(worst, fabs(sum - asked[at][m]));
            largest = fmax(largest, fabs(asked[at][m]));
        }
    }
    require(worst <= 1e-10 * largest, "bt: a line is not the solution of its system");
}

static void solve(int axis, int check) {
    vec asked[n];
    for (int at = 0; at < n; at++) memcpy(asked[at], rhs[middle_line(axis) + at * stride[axis]], sizeof(vec));
    build(axis);
    inner(axis, PLANES, 0, eliminate, 0);
    inner(axis, axis == 2 ? LINES : PLANES, 1, substitute, 0);
    if (check) check_line(axis, asked);
}

/* Returns the size of the change. */
static double step(int check) {
    double change = 0;
    right_side();
    for (int axis = 0; axis < 3; axis++) solve(axis, check);
    for (long p = 0; p < points; p++) EACH5(m) {
        u[p][m] += rhs[p][m];
        change += rhs[p][m] * rhs[p][m];
    }
    return sqrt(change / points);
}

static void start(double away) {
    EACH_POINT(i, j, k) EACH5(m) u[place(i, j, k)][m] = target(m, i, j, k) + away * bump(m, i, j, k);
}

static double error(void) {
    double sum = 0;
    EACH_POINT(i, j, k) EACH5(m) sum += pow(u[place(i, j, k)][m] - target(m, i, j, k), 2);
    return sqrt(sum / points);
}

int main(int argc, char **argv) {
    int times = (int)option(argc, argv, "--times", 5), trace = flag(argc, argv, "--trace");
    int tune = flag(argc, argv, "--tune");
    if (grid(argc, argv)) {
        u = zeros(points, sizeof *u), rhs = zeros(points, sizeof *rhs), forcing = zeros(points, sizeof *forcing);
        fjac = zeros(points, sizeof *fjac), njac = zeros(points, sizeof *njac), lhs = zeros(points, sizeof *lhs);
    }
    start(0);
    right_side();
    for (long p = 0; p < points; p++) EACH5(m) forcing[p][m] = -rhs[p][m] / DT;
    start(1);
    step(0); /* Every page is touched before the clock starts. */
    start(1);
    double before = error(), last = HUGE_VAL, begin = now();
    for (int turn = 1; turn <= times; turn++) {
        if (tune && largesse_tune_begin) largesse_tune_begin("core");
        double from = now(), change = step(turn == times);
        if (tune && largesse_tune_end) largesse_tune_end("core");
        if (trace) fprintf(stderr, "bt %d: %.6f s, change %.3e\n", turn, now() - from, change);
        require(change < last || change < 1e-12, "bt: the steps do not get smaller");
        last = change;
    }
    double seconds = now() - begin, after = error();
    require(after < fmax(before * pow(0.75, times), 1e-6), "bt: comes no nearer to the solution");
    result("bt", seconds, after);
    finish();
}
