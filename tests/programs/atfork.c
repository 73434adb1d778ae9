/* A library whose fork handlers allocate memory, like those of OpenBLAS and gRPC. The C library permits this, in whatever
 * order the libraries were loaded. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static char *held;
static void use(void) { free(held); held = malloc(5000000); memset(held, 1, 5000000); }
__attribute__((constructor)) static void enter(void) { use(); pthread_atfork(use, use, use); }
