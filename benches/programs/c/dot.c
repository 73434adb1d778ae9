/* Times dot over two equal vectors, placed by the allocator and at the best offset.
 *
 * For each length, `malloc-N` are two blocks as malloc returned them; `best-N` is the best of sixteen
 * distances between two vectors in one mapping of large pages. */
#include "measure.h"
#include <sys/mman.h>

static double dot(const double *x, const double *y, size_t n) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t i = 0; i + 32 <= n; i += 32)
        for (int j = 0; j < 8; j++) {
            s0 += x[i + j] * y[i + j];
            s1 += x[i + 8 + j] * y[i + 8 + j];
            s2 += x[i + 16 + j] * y[i + 16 + j];
            s3 += x[i + 24 + j] * y[i + 24 + j];
        }
    return s0 + s1 + s2 + s3;
}

static void fill(double *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = 1.0 + (double)(i % 7);
}

static double time_dot(const double *x, const double *y, size_t n, double *answer) {
    double best = 1e9;
    int inner = (int)((1 << 25) / n) + 1;
    for (int turn = 0; turn < 9; turn++) {
        double start = now();
        for (int i = 0; i < inner; i++) *answer = dot(x, y, n);
        double spent = (now() - start) / inner;
        if (spent < best) best = spent;
    }
    return best;
}

int main(int argc, char **argv) {
    double scale = option(argc, argv, "--scale", 1);
    static const size_t lengths[] = {1 << 18, 1 << 20, 1000000, 1 << 22, 1 << 24, 20000000, 1 << 25};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = (size_t)(lengths[k] * scale) / 32 * 32;
        char name[64];
        double answer, seconds;
        double *x = malloc(n * 8), *y = malloc(n * 8);
        fill(x, n);
        fill(y, n);
        seconds = time_dot(x, y, n, &answer);
        snprintf(name, sizeof name, "malloc-%zu", lengths[k]);
        result(name, seconds, answer);
        free(x);
        free(y);

        size_t room = n * 16 + (4 << 20);
        char *map = mmap(0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(map, room, MADV_HUGEPAGE);
        double best = 1e9;
        static const size_t distances[] = {0, 64, 256, 1024, 2048, 2112, 4096, 4160, 5184, 8192, 8256, 10368, 16384, 65536, 131072, 1 << 20};
        for (size_t d = 0; d < sizeof distances / sizeof *distances; d++) {
            double *a = (double *)map, *b = (double *)(map + n * 8 + distances[d]);
            fill(a, n);
            fill(b, n);
            seconds = time_dot(a, b, n, &answer);
            if (seconds < best) best = seconds;
        }
        snprintf(name, sizeof name, "best-%zu", lengths[k]);
        result(name, best, answer);
        munmap(map, room);
    }
    finish();
}
