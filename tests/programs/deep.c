/* Passes large blocks in both directions between a program and a library that it opens with RTLD_DEEPBIND.
   deep.bin [lazy] LIBRARY ANOTHER */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MB (1ul << 20)
static void *(*volatile get)(size_t) = malloc;
static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) { printf("no %s: %s\n", name, dlerror()); exit(1); }
    return found;
}
static char *filled(size_t n) { char *block = get(n); memset(block, 5, n); return block; }

static void exchange(void *library) {
    void *(*make)(size_t) = (void *(*)(size_t))find(library, "make");
    void (*take)(void *) = (void (*)(void *))find(library, "take");
    void *(*grow)(void *, size_t) = (void *(*)(void *, size_t))find(library, "grow");
    void *(*multiply)(void *, size_t, size_t) = (void *(*)(void *, size_t, size_t))find(library, "multiply");
    size_t (*usable)(void *) = (size_t (*)(void *))find(library, "usable");
    static const size_t sizes[] = { 100, 200000, MB, 5 * MB };
    for (int i = 0; i < 4; i++) {
        size_t n = sizes[i]; char *block = filled(n);
        int fits = usable(block) >= n;
        block = grow(block, 2 * n); int grown = block[n - 1] == 5;
        block = multiply(block, n, 3); int multiplied = block[n - 1] == 5;
        block = grow(block, n / 2); int shrunk = block[n / 2 - 1] == 5;
        take(block); take(filled(n));
        block = make(n); memset(block, 6, n);
        int fits_too = malloc_usable_size(block) >= n;
        block = realloc(block, 3 * n); int back = block[n - 1] == 6;
        free(block); free(make(n));
        printf("%zu: %d %d %d %d %d %d\n", n, fits, grown, multiplied, shrunk, fits_too, back);
    }
}

int main(int argc, char **argv) {
    int lazy = argc > 1 && !strcmp(argv[1], "lazy"), mode = (lazy ? RTLD_LAZY : RTLD_NOW) | RTLD_DEEPBIND;
    argv += lazy;
    void *early = filled(3 * MB), *library = dlopen(argv[1], mode);
    if (!library) { printf("not opened: %s\n", dlerror()); return 1; }
    void (*take)(void *) = (void (*)(void *))find(library, "take");
    take(early); exchange(library);
    void *(*more)(const char *) = (void *(*)(const char *))find(library, "more");
    void *another = argc > 2 + lazy ? more(argv[2]) : NULL;
    if (another) exchange(another);
    printf("%s\n", dlopen("/nowhere/library.so", mode) ? "opened" : dlerror());
    return 0;
}
