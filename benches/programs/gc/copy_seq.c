/* Runs copy-seq of benches/programs/lisp in C, with the collector of Boehm, Demers and Weiser.
 * TIMES=2000 THREADS=2 ./boehm */
#define GC_THREADS
#include <gc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { LENGTH = 1000, MOST = 256 };

struct pair {
    intptr_t car;
    struct pair *cdr;
};

static struct pair *list, *result[MOST];
static long times;
/* The collector holds its lock wherever these are written. */
static double began, collecting;

static double now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void event(GC_EventType type) {
    if (type == GC_EVENT_PRE_STOP_WORLD || type == GC_EVENT_RECLAIM_START)
        began = now();
    else if (type == GC_EVENT_POST_START_WORLD || type == GC_EVENT_RECLAIM_END)
        collecting += now() - began;
}

static struct pair *cons(intptr_t car, struct pair *cdr) {
    struct pair *pair = GC_MALLOC(sizeof *pair);
    if (!pair) abort();
    pair->car = car;
    pair->cdr = cdr;
    return pair;
}

static struct pair *copy(const struct pair *from) {
    struct pair *head = NULL, **end = &head;
    for (; from; from = from->cdr) {
        *end = cons(from->car, NULL);
        end = &(*end)->cdr;
    }
    return head;
}

static void *work(void *place) {
    for (long i = 0; i < times; i++) *(struct pair **)place = copy(list);
    return NULL;
}

static long weighed(const struct pair *list) {
    long sum = 0;
    for (long place = 1; list; list = list->cdr) sum += place++ * list->car;
    return sum;
}

static long setting(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 1;
}

int main(void) {
    static pthread_t worker[MOST];
    GC_INIT();
    GC_set_on_collection_event(event);
    times = setting("TIMES");
    long threads = setting("THREADS");
    if (threads < 1 || threads > MOST) return 2;
    for (long i = 0; i < LENGTH; i++) list = cons(i, list);
    GC_gcollect();
    double before = collecting, start = now();
    for (long i = 0; i < threads; i++)
        if (pthread_create(&worker[i], NULL, work, &result[i])) return 3;
    for (long i = 0; i < threads; i++) pthread_join(worker[i], NULL);
    double seconds = now() - start, collected = collecting - before;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"test\":\"copy-seq\",\"seconds\":%.6f,\"gc_seconds\":%.6f,\"answer\":[%ld", seconds, collected,
           weighed(result[0]));
    for (long i = 1; i < threads; i++) printf(",%ld", weighed(result[i]));
    unsigned version = GC_get_version();
    printf("],\"bits\":\"\"}\n{\"peak_kb\":%ld,\"hugetlb_kb\":0,\"about\":\"%u.%u.%u, gcc %s\"}\n", usage.ru_maxrss,
           version >> 16, version >> 8 & 255, version & 255, __VERSION__);
    return 0;
}
