/* Defines what the C programs share: a clock, and the lines that `largesse bench` reads. */
#ifndef MEASURE_H
#define MEASURE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void result(const char *test, double seconds, double answer) {
    uint64_t bits;
    memcpy(&bits, &answer, 8);
    printf("{\"test\":\"%s\",\"seconds\":%.9f,\"answer\":[%.15g],\"bits\":\"%016llx\"}\n", test, seconds, answer,
           (unsigned long long)bits);
}

static double option(int argc, char **argv, const char *name, double otherwise) {
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name)) return atof(argv[i + 1]);
    return otherwise;
}

static void finish(void) {
    char line[256];
    double peak = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %lf", &peak);
    printf("{\"peak_kb\":%.0f,\"hugetlb_kb\":0,\"about\":\"C %s\"}\n", peak, __VERSION__);
}
#endif
