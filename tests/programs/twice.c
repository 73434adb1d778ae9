/* Frees or uses a block that is already freed, or an address inside a block. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
static void (*volatile give)(void *) = free;
static void *(*volatile again)(void *, size_t) = realloc;
int main(int argc, char **argv) {
    char *volatile block = malloc(5 << 20);
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "inside")) { give(block + (1 << 20)); return 0; }
    give(block);
    if (!strcmp(mode, "free")) give(block);
    if (!strcmp(mode, "realloc")) return again(block, 9 << 20) != NULL;
    if (!strcmp(mode, "usable")) return (int)malloc_usable_size(block);
    return 0;
}
