/* Fills cold blocks, and then hot ones, which it goes through again and again. After a while it fills more blocks, with
   a pass over the hot ones after each, which exceeds the limit under which it runs. Then it checks all of them, if
   asked: that fetches the cold ones back. The fourth word says which blocks are made first.
   cold_first COLD_MIB HOT_MIB MORE_MIB cold|hot SECONDS [check] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK_MIB = 8, WORDS = (BLOCK_MIB << 20) / 8, MOST = 1024 };
struct set { uint64_t *blocks[MOST]; size_t count; uint64_t first; };

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}
static void add(struct set *set) {
    uint64_t *block = malloc(WORDS * 8);
    if (!block) { puts("no memory"); exit(3); }
    for (size_t word = 0; word < WORDS; word++) block[word] = set->first + set->count + word;
    set->blocks[set->count++] = block;
}
static uint64_t pass(struct set *set) {
    uint64_t sum = 0;
    for (size_t block = 0; block < set->count; block++)
        for (size_t word = 0; word < WORDS; word++) sum += set->blocks[block][word];
    return sum;
}
static size_t wrong(struct set *set) {
    size_t found = 0;
    for (size_t block = 0; block < set->count; block++)
        for (size_t word = 0; word < WORDS; word++) found += set->blocks[block][word] != set->first + block + word;
    return found;
}

int main(int argc, char **argv) {
    static struct set cold = { .first = 1 }, hot = { .first = 2 }, more = { .first = 3 };
    if (argc < 6) return 2;
    struct set *sets[] = { &cold, &hot };
    int hot_first = !strcmp(argv[4], "hot");
    for (int at = 0; at < 2; at++) {
        int which = at ^ hot_first;
        for (long mib = atol(argv[1 + which]); mib > 0; mib -= BLOCK_MIB) add(sets[which]);
    }
    uint64_t want = pass(&hot);
    double seconds = atof(argv[5]), began = now();
    while (now() - began < seconds) if (pass(&hot) != want) return 4;
    began = now();
    for (long mib = atol(argv[3]); mib > 0; mib -= BLOCK_MIB) {
        add(&more);
        if (pass(&hot) != want) return 4;
    }
    printf("seconds %.4f\n", now() - began);
    if (argc > 6) printf("%zu wrong\n", wrong(&hot) + wrong(&more) + wrong(&cold));
    return 0;
}
