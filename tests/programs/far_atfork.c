/* A library whose fork handlers use its large blocks and allocate new ones. It prints a line if a block has lost its
 * contents. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 24 << 20 };
static unsigned char *held;
static unsigned char now;

static void use(void) {
    int wrong = 0;
    /* The constructor cannot allocate the block, because it may run before the heap exists. */
    if (!held) held = calloc(1, SIZE);
    for (size_t i = 0; i < SIZE; i += 512) wrong += held[i] != now;
    if (wrong && write(1, "handler: wrong\n", 15) != 15) _exit(9);
    now++;
    memset(held, now, SIZE);
    unsigned char *more = malloc(5000000);
    memset(more, 1, 5000000);
    free(more);
}

__attribute__((constructor)) static void enter(void) { pthread_atfork(use, use, use); }
