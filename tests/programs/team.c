/* `team SCENARIO` prints how many threads a long call of a kernel would use, how many worker threads exist, and how many of
 * these are bound to one processor. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "largesse.h"

enum { N = 2200000 };
static double *x, first;

static cpu_set_t only(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return set;
}

/* Binds this thread, which the library tells from confining the process. */
static void bind_to(cpu_set_t set)
{
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set)) exit(3);
}

static void confine_to(cpu_set_t set)
{
    if (sched_setaffinity(0, sizeof set, &set)) exit(8);
}

/* Makes one long call and prints the numbers after it. */
static void call(const char *when)
{
    double sum = largesse_dsum(N, x, 1);
    if (first == 0) first = sum;
    int workers = 0, narrow = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(name, sizeof name, file) && !strcmp(name, "largesse\n") && atoi(task->d_name) != getpid()) {
            cpu_set_t set;
            CPU_ZERO(&set);
            sched_getaffinity(atoi(task->d_name), sizeof set, &set);
            workers++;
            narrow += CPU_COUNT(&set) == 1;
        }
        fclose(file);
    }
    closedir(tasks);
    printf("%s: %d threads, %d workers, %d on one processor%s\n", when, largesse_threads(), workers, narrow,
           sum == first ? "" : ", another sum");
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "";
    x = malloc(N * sizeof *x);
    for (int i = 0; i < N; i++) x[i] = 1.0 / (i + 1);
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    if (!strcmp(scenario, "bound")) {
        bind_to(only(sched_getcpu()));
        call("bound");
        bind_to(all);
        call("free again");
    } else if (!strcmp(scenario, "pinned")) {
        if (largesse_pin(argv[2], 0)) return 6;
        call("pinned");
    } else if (!strcmp(scenario, "moved")) {
        call("before");
        confine_to(only(atoi(argv[2])));
        call("confined");
        largesse_set_threads(2);
        call("two threads");
        largesse_set_threads(0);
        char command[99];
        snprintf(command, sizeof command, "taskset --pid --cpu-list %s %d > /dev/null", argv[3], getpid());
        if (system(command)) return 9;
        call("by taskset");
    } else if (!strcmp(scenario, "forked")) {
        call("parent");
        fflush(stdout);
        pid_t child = fork();
        if (child) {
            waitpid(child, NULL, 0);
            call("parent");
        } else {
            confine_to(only(atoi(argv[2])));
            call("child");
        }
    } else if (!strcmp(scenario, "set")) {
        if (largesse_set_threads(-1) != LARGESSE_BAD_ARGUMENT) return 4;
        int numbers[] = {1, 3, 2, 5, 0, 1000};
        for (int i = 0; i < 6; i++) {
            if (largesse_set_threads(numbers[i]) != LARGESSE_OK) return 5;
            char text[20];
            snprintf(text, sizeof text, "%d", numbers[i]);
            if (numbers[i] > 256) printf("%s: %d threads\n", text, largesse_threads());
            else call(text);
        }
    } else if (!strcmp(scenario, "confined")) {
        if (largesse_pin(argv[2], 1)) return 6;
        call("confined");
    } else {
        call("plain");
    }
    return 0;
}
