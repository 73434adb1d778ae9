/* A program with a malloc of its own, which the C library uses too. It defines some functions of the family, not all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char heap[64 << 20]; static size_t used;
void *malloc(size_t n) {
    size_t *p = (size_t *)(heap + used); used += (n + 31) & ~15UL;
    if (used > sizeof heap) return NULL;
    p[0] = n; return p + 2;
}
void free(void *p) { if (p && ((char *)p < heap || (char *)p >= heap + sizeof heap)) abort(); }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n); free(p);
    if (p && q) memcpy(q, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n);
    return q;
}
int main(void) {
    /* The C library allocates these with the program's functions. */
    char *text = NULL; size_t length = 0; FILE *memory = open_memstream(&text, &length);
    for (int i = 0; i < 100000; i++) fprintf(memory, "%d ", i);
    fclose(memory);
    char *array = reallocarray(NULL, 3, 1 << 20); memset(array, 1, 3 << 20);
    array = reallocarray(array, 5, 1 << 20);
    printf("%zu %d %d\n", length, array[(3 << 20) - 1], array >= heap && array < heap + sizeof heap);
    free(array); free(text);
    return 0;
}
