/* Sweeps a matrix of 8000 x 8000 numbers (488 MiB) along its rows and along its columns; each visit adds one.
 *
 * Both do the same work: along rows a page is finished before the next, along columns each number lies on
 * another page, and one column needs a page of every row. --only rows or --only columns does one of them. */
#include "far.h"

static long rows, columns;
static double *matrix;

/* Checks that every line's sum is that of its start values (their column numbers) and its visits. */
static double sweep(long lines, long length, long line_step, long step, double visits) {
    double all = 0;
    for (long line = 0; line < lines; line++) {
        double *x = matrix + line * line_step, sum = 0, first = (double)line * line_step;
        for (long i = 0; i < length; i++) sum += x[i * step] += 1;
        require(sum == length * (first + visits + 0.5 * step * (length - 1)), "sweep: a line has another sum");
        all += sum;
    }
    return all;
}

int main(int argc, char **argv) {
    int times = (int)option(argc, argv, "--times", 4);
    const char *only = word(argc, argv, "--only", "rows,columns");
    rows = columns = lround(8000 * sqrt(option(argc, argv, "--scale", 1)));
    matrix = room((size_t)rows * columns, sizeof *matrix);
    for (long i = 0; i < rows * columns; i++) matrix[i] = i;
    double visits = 0, all = 0;
    if (strstr(only, "rows")) {
        double begin = now();
        for (int t = 0; t < times; t++) all = sweep(rows, columns, columns, 1, ++visits);
        result("rows", now() - begin, all);
    }
    if (strstr(only, "columns")) {
        double begin = now();
        for (int t = 0; t < times; t++) all = sweep(columns, rows, 1, columns, ++visits);
        result("columns", now() - begin, all);
    }
    finish();
}
