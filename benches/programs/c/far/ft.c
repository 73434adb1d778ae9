/* FT: solves a heat equation on a periodic box by a Fourier transform along all three axes.
 *
 * Shapes and order of access are those that the NAS Parallel Benchmarks describe: 256 x 256 x 128 complex
 * numbers in three arrays of 128 MiB; forward once, then for each time the spectrum fades a little and is
 * transformed back. Lines along x are contiguous; those along y and z are taken sixteen neighbours at a
 * time, so that a step along z passes to another MiB. */
#include "far.h"

typedef struct { double re, im; } complex_t;
enum { X, Y, Z, ABREAST = 16 };
static int side[3] = {256, 256, 128};
static size_t total;
static complex_t *roots[3], *work, *spare;
static double *fade[3];

/* Roots of unity, and the decay of a frequency in one time step, exp(-k^2 / 1000), for each axis. */
static void tables(void) {
    int longest = 0;
    total = 1;
    for (int axis = X; axis <= Z; axis++) {
        int n = side[axis];
        total *= n;
        longest = n > longest ? n : longest;
        roots[axis] = room(n, sizeof(complex_t));
        fade[axis] = room(n, sizeof(double));
        for (int k = 0; k < n; k++) {
            int wave = k < n / 2 ? k : k - n;
            roots[axis][k] = (complex_t){cos(2 * M_PI * k / n), -sin(2 * M_PI * k / n)};
            fade[axis][k] = exp(-1e-3 * wave * wave);
        }
    }
    work = room((size_t)longest * ABREAST, sizeof *work);
    spare = room((size_t)longest * ABREAST, sizeof *spare);
}

/* Transforms `count` neighbouring lines of the axis in `x` by halving. Each pass writes the other array, so that the
 * result is in order. Returns the array with the result. */
static complex_t *lines(complex_t *x, complex_t *y, int axis, int count, int sign) {
    int n = side[axis], run = count;
    for (int half = n / 2; half >= 1; half /= 2, run *= 2) {
        for (int k = 0; k < half; k++) {
            complex_t w = roots[axis][k * (run / count)];
            complex_t *a = x + (size_t)k * run, *b = a + (size_t)half * run, *to = y + (size_t)2 * k * run;
            w.im *= sign;
            for (int i = 0; i < run; i++) {
                complex_t less = {a[i].re - b[i].re, a[i].im - b[i].im};
                to[i] = (complex_t){a[i].re + b[i].re, a[i].im + b[i].im};
                to[run + i] = (complex_t){less.re * w.re - less.im * w.im, less.re * w.im + less.im * w.re};
            }
        }
        complex_t *swap = x;
        x = y;
        y = swap;
    }
    return x;
}

static void along_x(int sign, const complex_t *from, complex_t *to) {
    for (size_t at = 0; at < total; at += side[X]) {
        memcpy(work, from + at, side[X] * sizeof *work);
        memcpy(to + at, lines(work, spare, X, 1, sign), side[X] * sizeof *work);
    }
}

/* Transforms along y or z: elements are `step` apart; lines begin at all `others` and at all x. */
static void across(int axis, int sign, const complex_t *from, complex_t *to) {
    size_t step = axis == Y ? (size_t)side[X] : (size_t)side[X] * side[Y];
    size_t other = axis == Y ? (size_t)side[X] * side[Y] : (size_t)side[X];
    int n = side[axis], others = axis == Y ? side[Z] : side[Y], abreast = side[X] < ABREAST ? side[X] : ABREAST;
    for (int o = 0; o < others; o++)
        for (int x = 0; x < side[X]; x += abreast) {
            size_t at = o * other + x;
            for (int i = 0; i < n; i++) memcpy(work + i * abreast, from + at + i * step, abreast * sizeof *work);
            complex_t *done = lines(work, spare, axis, abreast, sign);
            for (int i = 0; i < n; i++) memcpy(to + at + i * step, done + i * abreast, abreast * sizeof *work);
        }
}

/* Transforms along the last axis into `to`, and overwrites `from`. */
static void transform(int sign, complex_t *from, complex_t *to) {
    if (sign > 0) {
        along_x(sign, from, from);
        across(Y, sign, from, from);
        across(Z, sign, from, to);
    } else {
        across(Z, sign, from, from);
        across(Y, sign, from, from);
        along_x(sign, from, to);
    }
}

static void evolve(complex_t *spectrum, complex_t *copy) {
    size_t at = 0;
    for (int z = 0; z < side[Z]; z++)
        for (int y = 0; y < side[Y]; y++)
            for (int x = 0; x < side[X]; x++, at++) {
                double share = fade[X][x] * fade[Y][y] * fade[Z][z];
                spectrum[at].re *= share;
                spectrum[at].im *= share;
                copy[at] = spectrum[at];
            }
}

static complex_t origin(size_t at) { return (complex_t){draw(2 * at), draw(2 * at + 1)}; }

static double energy(const complex_t *x) {
    double sum = 0;
    for (size_t at = 0; at < total; at++) sum += x[at].re * x[at].re + x[at].im * x[at].im;
    return sum;
}

static int near(double a, double b) { return fabs(a - b) <= 1e-10 * fabs(b); }

/* Samples a few points, spread over the box. */
static double checksum(const complex_t *x) {
    double sum = 0;
    for (size_t i = 1; i <= 1024; i++) sum += x[scramble(i) % total].re + x[scramble(i) % total].im;
    return sum / total;
}

int main(int argc, char **argv) {
    /* Each side is a power of two, so a share of the data is rounded to one. */
    double scale = option(argc, argv, "--scale", 1), sum = 0, mean = 0, given;
    int times = (int)option(argc, argv, "--times", 5), axis = Z;
    for (; scale < 0.7; scale *= 2, axis = (axis + 2) % 3) side[axis] /= 2;
    for (; scale > 1.5; scale /= 2, axis = (axis + 2) % 3) side[axis] *= 2;
    tables();
    complex_t *spectrum = room(total, sizeof *spectrum);
    complex_t *box = room(total, sizeof *box), *then = room(total, sizeof *then);
    for (size_t at = 0; at < total; at++) box[at] = origin(at), mean += box[at].re;
    given = energy(box);

    double begin = now();
    transform(1, box, spectrum);
    double seconds = now() - begin;

    require(near(energy(spectrum), given * total), "ft: the spectrum has another energy than the box");
    require(near(spectrum[0].re, mean), "ft: the spectrum has another mean than the box");
    memcpy(box, spectrum, total * sizeof *box);
    transform(-1, box, then);
    for (size_t at = 0; at < total; at++) {
        complex_t was = origin(at), is = {then[at].re / total, then[at].im / total};
        require(fabs(is.re - was.re) + fabs(is.im - was.im) < 1e-13, "ft: forward and back is not the identity");
    }

    begin = now();
    for (int t = 0; t < times; t++) {
        evolve(spectrum, box);
        transform(-1, box, then);
        sum += checksum(then);
    }
    seconds += now() - begin;
    require(times < 1 || near(energy(then), energy(spectrum) * total), "ft: the last box has another energy");
    result("ft", seconds, sum);
    finish();
}
