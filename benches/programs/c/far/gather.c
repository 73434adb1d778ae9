/* Reads a list of 128 MiB in order, and for each page of it a table of 128 MiB at a random index.
 *
 * Joins, sparse products and histograms have this pattern: one array in order, the other at random. Large pages suit
 * the list and not the table. Each iteration adds one to the numbers it reads in the table, and to all of the list. */
#include "far.h"

/* Number of elements in a page. */
enum { EACH = 512 };

int main(int argc, char **argv) {
    int times = (int)option(argc, argv, "--times", 8), shown = flag(argc, argv, "--trace");
    size_t count = (size_t)(option(argc, argv, "--scale", 1) * (1 << 24)) / EACH * EACH;
    double *list = room(count, sizeof *list), *table = room(count, sizeof *table);
    for (size_t i = 0; i < count; i++) list[i] = (double)i;
    for (size_t i = 0; i < count; i++) table[i] = 0;
    double begin = now(), sum = 0;
    for (int t = 0; t < times; t++) {
        double start = now();
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            if (i % EACH == 0) table[scramble((size_t)t * count + i) % count] += 1;
            sum += list[i] += 1;
        }
        if (shown) fprintf(stderr, "gather %d: %.3f s\n", t + 1, now() - start);
    }
    double seconds = now() - begin, looks = 0;
    require(sum == (double)count * ((double)count - 1) / 2 + (double)count * times, "gather: the list has another sum");
    for (size_t i = 0; i < count; i++) looks += table[i];
    require(looks == (double)(count / EACH) * times, "gather: the table lost a look");
    result("gather", seconds, sum + looks);
    finish();
}
