/* Writes 16 MiB, or --scale times as much, in order, and then walks through them page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

int main(int argc, char **argv) {
    size_t bytes = 16 << 20;
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--scale")) bytes = (size_t)(atof(argv[i + 1]) * (16 << 20));
    long *all = malloc(bytes), sum = 0;
    struct timespec begin, end;
    for (size_t i = 0; i < bytes / sizeof *all; i++) all[i] = (long)i;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (size_t i = 0; i < bytes / sizeof *all; i += 512) sum += all[i];
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("{\"test\":\"walk\",\"seconds\":%.9f,\"answer\":[%ld],\"bits\":\"%lx\"}\n", seconds, sum, (unsigned long)sum);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"peak_kb\":%ld,\"hugetlb_kb\":0,\"about\":\"C\"}\n", used.ru_maxrss);
    return 0;
}
