/* A library that allocates a block for its program, which outlives it, and one for itself. */
#include <stdlib.h>
#include <string.h>
static char *own;
__attribute__((constructor)) static void enter(void) { own = malloc(5000000); memset(own, 1, 5000000); }
__attribute__((destructor)) static void leave(void) { free(own); }
void *make(size_t size) { return calloc(1, size); }
