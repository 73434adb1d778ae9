/* A library that frees and resizes blocks of its program, and that allocates blocks for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

void *make(size_t n) { return malloc(n); }
void take(void *block) { free(block); }
void *grow(void *block, size_t n) { return realloc(block, n); }
void *multiply(void *block, size_t n, size_t m) { return reallocarray(block, n, m); }
size_t usable(void *block) { return malloc_usable_size(block); }
/* Opens another library in the same way. */
void *more(const char *file) { return dlopen(file, RTLD_NOW | RTLD_DEEPBIND); }
