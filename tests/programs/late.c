/* A program that is not R loads the library. The library serves no blocks and returns the reason. Without
 * position-independent code the program has a stub for malloc, because it takes its address. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *(*volatile taken)(size_t) = malloc;
int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) { puts("no library"); return 1; }
    int (*enable)(int) = (int (*)(int))dlsym(library, "largesse_enable");
    const char *(*why)(void) = (const char *(*)(void))dlsym(library, "largesse_why_not");
    printf("%d %s\n", enable(1), why());
    char *block = taken(5000000); memset(block, 1, 5000000);
    block = realloc(block, 9000000); free(block);
    dlclose(library);
    block = malloc(5000000); memset(block, 1, 5000000); free(block);
    printf("still here %d\n", dlsym(RTLD_DEFAULT, "largesse_stats") != NULL);
    return 0;
}
