/* Means of four neighbours on two grids of 305 MiB, eight times, by two threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8000, COLUMNS = 5000, STEPS = 8, THREADS = 2 };
static double (*now)[COLUMNS], (*next)[COLUMNS];
static pthread_barrier_t step;

static void *work(void *which) {
    int thread = *(int *)which, first = 1 + (ROWS - 2) / THREADS * thread;
    int last = thread == THREADS - 1 ? ROWS - 1 : first + (ROWS - 2) / THREADS;
    for (int at = 0; at < STEPS; at++) {
        double (*from)[COLUMNS] = at % 2 ? next : now, (*to)[COLUMNS] = at % 2 ? now : next;
        for (int row = first; row < last; row++)
            for (int column = 1; column < COLUMNS - 1; column++)
                to[row][column] = 0.25 * (from[row - 1][column] + from[row + 1][column] + from[row][column - 1] +
                                          from[row][column + 1]);
        pthread_barrier_wait(&step);
    }
    return 0;
}

int main(void) {
    now = malloc(ROWS * sizeof *now), next = malloc(ROWS * sizeof *next);
    if (!now || !next) { puts("no memory"); return 3; }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            now[row][column] = next[row][column] = (row * 31 + column * 17) % 1000;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    pthread_barrier_init(&step, 0, THREADS);
    for (int thread = 0; thread < THREADS; thread++) {
        numbers[thread] = thread;
        pthread_create(&threads[thread], 0, work, &numbers[thread]);
    }
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], 0);
    double sum = 0;
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) sum += now[row][column];
    printf("%.17g %.17g\n", sum, now[ROWS / 2][COLUMNS / 2]);
    return 0;
}
