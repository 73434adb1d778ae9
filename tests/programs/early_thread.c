/* A library whose constructor starts a thread that maps memory, as OpenBLAS does, while the program is being loaded. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int begun;
/* Volatile, since the compiler takes `mmap` for a function that calls none of this file. */
static _Thread_local volatile int slow;

/* Opening a file takes long in that thread, for example the store of far memory. */
int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    if (slow) {
        begun = 1;
        usleep(100000);
    }
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void *map(void *nothing)
{
    slow = 1;
    void *block = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    slow = 0;
    begun = 1;
    if (block != MAP_FAILED)
        *(volatile char *)block = 1;
    return nothing;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, 0, map, 0) != 0)
        return;
    pthread_detach(thread);
    while (!begun)
        ;
}
