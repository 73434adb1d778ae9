/* A library whose fork handlers use memory, as OpenBLAS, gRPC and others have them: the C library
 * allows it, whatever the order in which libraries came. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static char *held;
static void use(void) { free(held); held = malloc(5000000); memset(held, 1, 5000000); }
__attribute__((constructor)) static void enter(void) { use(); pthread_atfork(use, use, use); }
