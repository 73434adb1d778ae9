// The solver of the guides: relaxes a grid and prints a sum. `./solver input.dat` reads the number of rows and columns,
// and of sweeps; without a file it takes small ones.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long n = 1000, sweeps = 10;
    if (argc > 1) {
        FILE *input = fopen(argv[1], "r");
        if (!input || fscanf(input, "%ld %ld", &n, &sweeps) != 2) {
            fprintf(stderr, "solver: %s has no size\n", argv[1]);
            return 1;
        }
    }
    double *old = malloc(n * n * sizeof *old), *new = malloc(n * n * sizeof *new);
    if (!old || !new) {
        fputs("solver: no memory\n", stderr);
        return 1;
    }
    for (long i = 0; i < n * n; i++)
        old[i] = new[i] = i % 7;
    for (long sweep = 0; sweep < sweeps; sweep++) {
        for (long i = 1; i < n - 1; i++)
            for (long j = 1; j < n - 1; j++)
                new[i * n + j] = 0.25 * (old[i * n + j - 1] + old[i * n + j + 1] + old[(i - 1) * n + j] + old[(i + 1) * n + j]);
        double *swap = old;
        old = new, new = swap;
    }
    double sum = 0;
    for (long i = 0; i < n * n; i++)
        sum += old[i];
    printf("sum %.6f\n", sum);
}
