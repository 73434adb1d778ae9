/* pinned_threads N prints the processors that the main thread and N others may use, one list per line. Each thread ends by
 * pthread_exit, which unwinds through every frame below it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void show(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0, any = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) printf("%s%d", any++ ? "," : "", cpu);
    puts("");
}

static void *work(void *result)
{
    show();
    pthread_exit(result);
}

int main(int count, char **word)
{
    int threads = count > 1 ? atoi(word[1]) : 0;
    show();
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, work, (void *)(i + 1))) return 1;
        pthread_join(thread, &result);
        if (result != (void *)(i + 1)) return 2;
    }
    show();
    const char *openmp = getenv("OMP_NUM_THREADS");
    printf("OMP_NUM_THREADS %s\n", openmp ? openmp : "unset");
    return 0;
}
