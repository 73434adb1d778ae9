/* Calls the library from an R session that loaded it late. The functions are found by dlsym. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include "largesse.h"

void enable(int *on, int *result) {
    int (*f)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "largesse_enable");
    *result = f ? f(*on) : -99;
}
void limits(double *min, double *max, int *result) {
    int (*f)(uint64_t, uint64_t) = (int (*)(uint64_t, uint64_t))dlsym(RTLD_DEFAULT, "largesse_set_limits");
    *result = f ? f((uint64_t)*min, (uint64_t)*max) : -99;
}
void facts(int *enabled, int *hooked, double *blocks, double *bytes, int *header) {
    int (*f)(largesse_stats_t *) = (int (*)(largesse_stats_t *))dlsym(RTLD_DEFAULT, "largesse_stats");
    largesse_stats_t s = { sizeof s };
    if (!f || f(&s)) { *blocks = -1; return; }
    *enabled = s.enabled; *hooked = s.hooked; *blocks = s.blocks; *bytes = s.live_bytes; *header = s.header;
}
/* Counts the blocks of at least `*from` bytes, and checks whether the data of all are 64-byte aligned. */
void count(double *from, int *found, int *aligned) {
    size_t (*f)(largesse_block_t *, size_t) = (size_t (*)(largesse_block_t *, size_t))dlsym(RTLD_DEFAULT, "largesse_blocks");
    static largesse_block_t blocks[1000];
    blocks[0].struct_size = sizeof blocks[0];
    size_t n = f ? f(blocks, 1000) : 0;
    *found = 0; *aligned = 1;
    for (size_t i = 0; i < n && i < 1000; i++) if (blocks[i].size >= *from) { (*found)++; *aligned &= (blocks[i].address + 48) % 64 == 0; }
}
/* Sets a limit; `why` is empty or the reason why it cannot be kept. */
void limit(char **limit, char **store, char **why) {
    const char *(*f)(const char *, const char *) = (const char *(*)(const char *, const char *))dlsym(RTLD_DEFAULT, "largesse_limit");
    const char *answer = f ? f(*limit, *store) : "no library";
    if (answer) *why = (char *)answer;
}
