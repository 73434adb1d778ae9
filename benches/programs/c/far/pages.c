/* Passes through 1 GiB with one thread, page by page, and prints the cost of a touch.
 *
 * Under `largesse run --local 256M` each touch beyond the first quarter fills a page and evicts one; without it
 * the first line is an ordinary first touch. Each line has microseconds a 4 KiB page, and GB/s. --only sequential
 * leaves out random reads; --times N reads N times as many, with a line for each time. */
#include "far.h"

enum { PAGE = 4096, WORDS = PAGE / 8 };

static uint64_t (*pages)[WORDS];
static size_t count;
static uint64_t wrong;

static void line(const char *way, double seconds, size_t touched) {
    printf("%-14s %9.3f us a page %8.3f GB/s\n", way, seconds / touched * 1e6, touched * (double)PAGE / seconds * 1e-9);
    fflush(stdout);
}

static uint64_t value(size_t page, size_t word) { return scramble(page * WORDS + word); }

/* Each end of a page has a word that shows whether the page is unchanged; filling all of it would be timed, too. */
static void write_page(size_t page, uint64_t turn) {
    pages[page][0] = value(page, 0) + turn;
    pages[page][WORDS - 1] = value(page, 1) + turn;
}

static void check_page(size_t page, uint64_t turn) {
    wrong += (pages[page][0] != value(page, 0) + turn) + (pages[page][WORDS - 1] != value(page, 1) + turn);
}

int main(int argc, char **argv) {
    count = (size_t)(option(argc, argv, "--scale", 1) * (1 << 30)) / PAGE;
    /* The start is aligned: a unit that spans two pages of the machine would take two faults. */
    pages = aligned_alloc(PAGE, count * PAGE);
    require(pages != 0, "no memory");
    double begin = now();
    for (size_t page = 0; page < count; page++) write_page(page, 0);
    line("first write", now() - begin, count);
    begin = now();
    for (size_t page = 0; page < count; page++) check_page(page, 0), write_page(page, 1);
    line("read and write", now() - begin, count);
    begin = now();
    for (size_t page = 0; page < count; page++) check_page(page, 1);
    line("read", now() - begin, count);
    if (strstr(word(argc, argv, "--only", "sequential,random"), "random")) {
        size_t times = (size_t)option(argc, argv, "--times", 1);
        for (size_t t = 0; t < times; t++) {
            begin = now();
            for (size_t i = 0; i < count; i++) check_page(scramble(t * count + i) % count, 1);
            line("random read", now() - begin, count);
        }
    }
    require(wrong == 0, "a page came back with other words");
    return 0;
}
