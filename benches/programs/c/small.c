/* Times pairs of malloc and free of small blocks: the cost of passing through the library. */
#include "measure.h"

static void pairs(const char *test, size_t size, long count) {
    double best = 1e9;
    volatile char *sink;
    for (int turn = 0; turn < 7; turn++) {
        double start = now();
        for (long i = 0; i < count; i++) {
            char *block = malloc(size);
            sink = block;
            *sink = 1;
            free((void *)sink);
        }
        double spent = now() - start;
        if (spent < best) best = spent;
    }
    result(test, best, (double)count);
}

int main(int argc, char **argv) {
    long count = (long)(2e7 * option(argc, argv, "--scale", 1));
    pairs("pairs-16", 16, count);
    pairs("pairs-256", 256, count);
    pairs("pairs-8000", 8000, count);
    finish();
}
