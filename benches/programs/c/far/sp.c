/* SP: solves implicit steps along x, then y, then z, which first decouple the five quantities.
 *
 * Shapes and order of access are those that the NAS Parallel Benchmarks describe: each component is an array
 * of its own, and along each axis every grid line is five systems of five diagonals, three of them
 * with the same matrix; so 15 arrays for the matrices, about 75 MiB together. They lie in .bss (--storage heap:
 * calloc).
 *
 * The equations are our own, those of sound in a moving medium: along axis d everything is convected with the speed
 * v_d = u_{1+d} / u_0, and u_0 and u_{1+d} drive each other with the speed c = sqrt(u_4 / u_0),
 *     du_m/dt = forcing_m - sum over d of ( v_d (u_m)_d + c (partner of m)_d - NU (u_m)_dd + DAMP (u_m)_dddd h^3 ).
 * The sum and the difference of the partners are convected with v + c and v - c, which decouples them.
 * As in bt.c the forcing leaves a known function unchanged. */
#include "grid.h"

#define DT 0.05
#define NU 0.2
#define DAMP 0.02
#define EACH5(m) for (int m = 0; m < 5; m++)

enum { ARRAYS = 5 + 5 + 5 + 15 + 3 + 1 + 1 };
static double still[ARRAYS * (long)POINTS];
static double *u[5], *rhs[5], *forcing[5], *lhs[15], *velocity[3], *inverse[1], *speed[1];
static double *wave[5]; /* rhs in another order */

static void arrays(double **array, int count, int heap) {
    static double *next = still;
    double *from = heap ? zeros(count * points, sizeof(double)) : next;
    for (int m = 0; m < count; m++) array[m] = from + m * points;
    if (!heap) next += count * points;
}

/* Leaves out damping that would reach beyond the boundary. */
static double damp(int at) { return at > 1 && at < n - 2 ? DAMP / h : 0; }

static void flux(long p, int axis, int at, int with) {
    long s = stride[axis];
    double v = velocity[axis][p], c = speed[0][p], weight = damp(at);
    (void)with;
    EACH5(m) {
        const double *x = u[m] + p;
        double slope = (x[s] - x[-s]) / (2 * h);
        double change = NU * (x[s] - 2 * x[0] + x[-s]) / (h * h) - v * slope;
        if (weight > 0) change -= weight * (x[2 * s] - 4 * x[s] + 6 * x[0] - 4 * x[-s] + x[-2 * s]);
        rhs[m][p] += DT * change;
        int partner = m == 0 ? 1 + axis : m == 1 + axis ? 0 : -1;
        if (partner >= 0) rhs[partner][p] -= DT * c * slope;
    }
}

static void right_side(void) {
    for (long p = 0; p < points; p++)
        if (u[0][p] != 0) { /* not in the padding */
            inverse[0][p] = 1 / u[0][p];
            for (int d = 0; d < 3; d++) velocity[d][p] = u[1 + d][p] * inverse[0][p];
            speed[0][p] = sqrt(u[4][p] * inverse[0][p]);
        }
    EACH5(m) for (long p = 0; p < points; p++) rhs[m][p] = DT * forcing[m][p];
    for (int axis = 0; axis < 3; axis++) inner(axis, LINES, 0, flux, 0);
}

/* Computes the right sides along the axis: three that are convected with v, then the two that depend on sound. */
static void take_apart(int axis) {
    int plain = 0;
    for (int m = 1; m < 5; m++)
        if (m != 1 + axis) wave[plain++] = rhs[m];
    wave[3] = rhs[0], wave[4] = rhs[1 + axis];
}

/* Replaces the partners by their sum and difference; a second call restores them. */
static void turn(long p, int axis, int at, int with) {
    double a = wave[3][p] * M_SQRT1_2, b = wave[4][p] * M_SQRT1_2;
    (void)axis, (void)at, (void)with;
    wave[3][p] = a + b;
    wave[4][p] = a - b;
}

/* Computes one row of the three matrices: convected with v, v + c, v - c. */
static void rows(long p, int axis, int at, int with) {
    double first = DT / (2 * h), second = DT * NU / (h * h), fourth = DT * damp(at);
    (void)with;
    for (int matrix = 0; matrix < 3; matrix++) {
        double with_sound = velocity[axis][p] + (matrix == 1) * speed[0][p] - (matrix == 2) * speed[0][p];
        double **row = lhs + 5 * matrix;
        row[0][p] = fourth;
        row[1][p] = -first * with_sound - second - 4 * fourth;
        row[2][p] = 1 + 2 * second + 6 * fourth;
        row[3][p] = first * with_sound - second - 4 * fourth;
        row[4][p] = fourth;
    }
}

#define EACH_WAVE(w, matrix) for (int w = matrix ? matrix + 2 : 0; w < matrix + 3; w++)

static void eliminate(long p, int axis, int at, int matrix) {
    double **row = lhs + 5 * matrix, pivot = 1 / row[2][p];
    long next = p + stride[axis], second = next + stride[axis];
    int two = at + 2 < n; /* places ahead lies a row still */
    double times = row[1][next], again = two ? row[0][second] : 0;
    row[3][p] *= pivot;
    row[4][p] *= pivot;
    row[2][next] -= times * row[3][p];
    row[3][next] -= times * row[4][p];
    if (two) row[1][second] -= again * row[3][p];
    if (two) row[2][second] -= again * row[4][p];
    EACH_WAVE(w, matrix) {
        wave[w][p] *= pivot;
        wave[w][next] -= times * wave[w][p];
        if (two) wave[w][second] -= again * wave[w][p];
    }
}

static void substitute(long p, int axis, int at, int matrix) {
    double **row = lhs + 5 * matrix;
    long next = p + stride[axis], second = next + stride[axis];
    EACH_WAVE(w, matrix) {
        wave[w][p] -= row[3][p] * wave[w][next];
        if (at + 2 < n) wave[w][p] -= row[4][p] * wave[w][second];
    }
}

/* Puts the solution of one line into newly built rows, and checks that it gives the right side. */
static void check_line(int axis, double (*asked)[5]) {
    double worst = 0, largest = 0;
    for (int at = 1; at < n - 1; at++) {
        long p = middle_line(axis) + at * stride[axis];
        rows(p, axis, at, 0);
        for (int matrix = 0; matrix < 3; matrix++) EACH_WAVE(w, matrix) {
            double sum = 0;
            for (int k = -2; k <= 2; k++)
                if (at + k >= 0 && at + k < n) sum += lhs[5 * matrix + 2 + k][p] * wave[w][p + k * stride[axis]];
            worst = fmax(worst, fabs(sum - asked[at][w]));
            largest = fmax(largest, fabs(asked[at][w]));
        }
    }
    require(worst <= 1e-10 * largest, "sp: a line is not the solution of its system");
}

static void solve(int axis, int check) {
    double asked[n][5];
    take_apart(axis);
    inner(2, LINES, 0, turn, 0);
    for (int at = 0; at < n; at++) EACH5(w) asked[at][w] = wave[w][middle_line(axis) + at * stride[axis]];
    inner(axis, LINES, 0, rows, 0);
    enum order order = axis == 2 ? LINES : PLANES;
    for (int matrix = 0; matrix < 3; matrix++) {
        inner(axis, order, 0, eliminate, matrix);
        inner(axis, order, 1, substitute, matrix);
    }
    if (check) check_line(axis, asked);
    inner(2, LINES, 0, turn, 0);
}

/* Returns the size of the change. */
static double step(int check) {
    double change = 0;
    right_side();
    for (int axis = 0; axis < 3; axis++) solve(axis, check);
    EACH5(m) for (long p = 0; p < points; p++) {
        u[m][p] += rhs[m][p];
        change += rhs[m][p] * rhs[m][p];
    }
    return sqrt(change / points);
}

static void start(double away) {
    EACH5(m) EACH_POINT(i, j, k) u[m][place(i, j, k)] = target(m, i, j, k) + away * bump(m, i, j, k);
}

static double error(void) {
    double sum = 0;
    EACH5(m) EACH_POINT(i, j, k) sum += pow(u[m][place(i, j, k)] - target(m, i, j, k), 2);
    return sqrt(sum / points);
}

int main(int argc, char **argv) {
    int times = (int)option(argc, argv, "--times", 20), heap = grid(argc, argv);
    arrays(u, 5, heap), arrays(rhs, 5, heap), arrays(forcing, 5, heap), arrays(lhs, 15, heap);
    arrays(velocity, 3, heap), arrays(inverse, 1, heap), arrays(speed, 1, heap);
    start(0);
    right_side();
    EACH5(m) for (long p = 0; p < points; p++) forcing[m][p] = -rhs[m][p] / DT;
    start(1);
    step(0); /* Every page is touched before the clock starts. */
    start(1);
    double before = error(), last = HUGE_VAL, begin = now();
    for (int turn = 1; turn <= times; turn++) {
        double change = step(turn == times);
        require(change < last || change < 1e-12, "sp: the steps do not get smaller");
        last = change;
    }
    double seconds = now() - begin, after = error();
    require(after < fmax(before * pow(0.85, times), 1e-6), "sp: comes no nearer to the solution");
    result("sp", seconds, after);
    finish();
}
