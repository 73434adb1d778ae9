/* Defines the cube of bt.c and sp.c, and the two orders in which an axis is swept. */
#ifndef GRID_H
#define GRID_H
#include "far.h"

enum { SIDE = 64, PAD = SIDE / 2 * 2 + 1, POINTS = PAD * PAD * PAD };

static int n;          /* points along an edge, the boundary included */
static long stride[3]; /* of x, y, z; odd, lest lines along x or y fall into few sets of a cache */
static long points;
static double h; /* the distance of neighbours */

/* Returns whether the arrays come from malloc instead of .bss. */
static inline int grid(int argc, char **argv) {
    int heap = !strcmp(word(argc, argv, "--storage", "static"), "heap");
    n = (int)lround(SIDE * cbrt(option(argc, argv, "--scale", 1)));
    n = n < 8 ? 8 : n;
    require(heap || n <= SIDE, "--scale above 1 needs --storage heap");
    long pad = n / 2 * 2 + 1;
    stride[0] = pad * pad;
    stride[1] = pad;
    stride[2] = 1;
    points = pad * pad * pad;
    h = 1.0 / (n - 1);
    return heap;
}

static inline long place(int i, int j, int k) { return i * stride[0] + j * stride[1] + k; }

#define EACH_POINT(i, j, k)         \
    for (int i = 0; i < n; i++)     \
        for (int j = 0; j < n; j++) \
            for (int k = 0; k < n; k++)

/* PLANES has the axis outermost, and finishes a plane before the next. LINES has it innermost, and finishes a line
 * before the next. The two other axes are in the order of memory. */
enum order { PLANES, LINES };

/* Calls `step(point, axis, place on the axis, with)` for every inner point, along the axis upwards or downwards.
 * It is inlined, so that each caller gets a loop of its own. */
static inline __attribute__((always_inline)) void
inner(int axis, enum order order, int down, void (*step)(long, int, int, int), int with) {
    long s = stride[axis], a = stride[axis == 0 ? 1 : 0], b = stride[axis == 2 ? 1 : 2];
    int end = n - 1;
    if (order == PLANES)
        for (int q = 1; q < end; q++)
            for (int i = 1; i < end; i++)
                for (int j = 1; j < end; j++) {
                    int at = down ? end - q : q;
                    step(at * s + i * a + j * b, axis, at, with);
                }
    else
        for (int i = 1; i < end; i++)
            for (int j = 1; j < end; j++)
                for (int q = 1; q < end; q++) {
                    int at = down ? end - q : q;
                    step(at * s + i * a + j * b, axis, at, with);
                }
}

/* Returns index 0 of the inner line along `axis` through the middle of the cube. */
static inline long middle_line(int axis) {
    return n / 2 * (stride[0] + stride[1] + stride[2] - stride[axis]);
}

/* Returns component m of the steady solution, which can be any smooth function. */
static inline double target(int m, int i, int j, int k) {
    double x = i * h, y = j * h, z = k * h;
    double along_x = 0.2 * x * (1 - (0.3 + 0.1 * m) * x), along_y = 0.1 * y * y * (1 + 0.2 * m - y);
    return 1 + 0.1 * m + along_x + along_y - 0.1 * z * (x - z * z);
}

/* Returns the distance of the start from the solution, which is 0 on the boundary. */
static inline double bump(int m, int i, int j, int k) {
    double x = i * h, y = j * h, z = k * h;
    return (3.0 + m) * x * (1 - x) * y * (1 - y) * z * (1 - z) * (1 + x - y);
}
#endif
