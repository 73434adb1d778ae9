/* Defines what the programs of this folder share. They use more memory than is local, in a known order.
 *
 *   --scale F   share of the data           --times N   iterations
 *
 * Each program checks its result without a stored answer, and fails when it is wrong; the bits of the answer
 * change if a page comes back from the store with other bytes. `seconds` is the time of all
 * iterations, without set-up and checks. No memory is freed before the end. No threads, no clock and
 * no address enters a result: the bits are the same in every run. */
#ifndef FAR_H
#define FAR_H
#include "../measure.h"
#include <math.h>

static inline const char *word(int argc, char **argv, const char *name, const char *otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name)) return argv[i + 1];
    return otherwise;
}

static inline int flag(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return 0;
}

static inline void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

/* Returns memory that was not touched yet. */
static inline void *room(size_t count, size_t size) {
    void *block = malloc(count * size);
    require(block != 0, "no memory");
    return block;
}

static inline void *zeros(size_t count, size_t size) {
    void *block = calloc(count, size);
    require(block != 0, "no memory");
    return block;
}

/* Returns data that depend on their index alone, so that a check needs no copy of them. */
static inline uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* Returns a number in [0, 1). */
static inline double draw(uint64_t which) {
    return (double)(scramble(which + 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}
#endif
