/* Finds the C library's pthread_create by its name, starts a thread with it that blocks every signal and waits, as jemalloc
   does, then fills MIB mebibytes in parts of 8 MiB and checks them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int is_over;

static void *wait_for_end(void *nothing) {
    pthread_mutex_lock(&lock);
    while (!is_over) pthread_cond_wait(&over, &lock);
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    void *library = dlopen("libc.so.6", RTLD_LAZY);
    create_function *create = library ? (create_function *)dlsym(library, "pthread_create") : NULL;
    if (!create || dlsym(RTLD_DEFAULT, "no_such_name_anywhere")) return 3;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    if (create(&thread, NULL, wait_for_end, NULL)) return 3;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    size_t count = (size_t)atol(argv[1]) / 8, words = (size_t)1 << 20, wrong = 0;
    uint64_t **blocks = calloc(count, sizeof *blocks);
    for (size_t block = 0; block < count; block++) {
        blocks[block] = malloc(words * 8);
        for (size_t word = 0; word < words; word++) blocks[block][word] = block * 7919 + word;
    }
    for (size_t block = 0; block < count; block++)
        for (size_t word = 0; word < words; word++) wrong += blocks[block][word] != block * 7919 + word;
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_signal(&over);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    printf("%zu wrong\n", wrong);
    return 0;
}
