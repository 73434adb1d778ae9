/* Allocates three blocks of 5 MiB, and prints the kinds of page of each, and of the second half of the last one:
 * kind, kind of the rest, bytes of the rest. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "largesse.h"

static void show(const largesse_block_t *it)
{
    printf("%u %u %llu\n", it->kind, it->rest_kind, (unsigned long long)it->rest_bytes);
}

int main(void)
{
    size_t (*list)(largesse_block_t *, size_t) = dlsym(RTLD_DEFAULT, "largesse_blocks");
    int (*inspect)(const void *, size_t, largesse_block_t *) = dlsym(RTLD_DEFAULT, "largesse_inspect");
    static largesse_block_t blocks[4];
    const size_t half = 5 << 19;
    char *volatile last = NULL; /* volatile, so that no allocation is left out */
    for (int i = 0; i < 3; i++) last = malloc(2 * half);
    blocks[0].struct_size = blocks[3].struct_size = sizeof blocks[0];
    if (!list || !inspect || !last || list(blocks, 3) != 3) return 1;
    for (int i = 0; i < 3; i++) show(&blocks[i]);
    if (inspect(last + half, half, &blocks[3])) return 1;
    show(&blocks[3]);
    return 0;
}
