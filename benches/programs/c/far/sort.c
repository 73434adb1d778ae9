/* Sorts 32 Mi keys of 64 bits, byte by byte from the lowest (radix): 256 MiB, and as much work space.
 *
 * Each of the eight passes reads one half from start to end and writes the other in up to 256 streams. */
#include "far.h"

static uint64_t key(size_t i) { return scramble(i + 1); }

static void sort(uint64_t *keys, uint64_t *spare, size_t n) {
    static size_t count[8][256];
    memset(count, 0, sizeof count);
    for (size_t i = 0; i < n; i++)
        for (int byte = 0; byte < 8; byte++) count[byte][keys[i] >> 8 * byte & 255]++;
    for (int byte = 0; byte < 8; byte++) {
        size_t start[256], sum = 0;
        for (int b = 0; b < 256; b++) start[b] = sum, sum += count[byte][b];
        for (size_t i = 0; i < n; i++) spare[start[keys[i] >> 8 * byte & 255]++] = keys[i];
        uint64_t *swap = keys; /* An even number of times: the result is where the keys were. */
        keys = spare;
        spare = swap;
    }
}

int main(int argc, char **argv) {
    size_t n = (size_t)(option(argc, argv, "--scale", 1) * (32 << 20));
    int times = (int)option(argc, argv, "--times", 2);
    uint64_t *keys = room(n, sizeof *keys), *spare = room(n, sizeof *spare), sum = 0, mixed = 0;
    double seconds = 0;
    memset(spare, 0, n * sizeof *spare); /* Every page is touched before the clock starts. */
    for (size_t i = 0; i < n; i++) sum += key(i), mixed += scramble(key(i));
    for (int turn = 0; turn < times; turn++) {
        for (size_t i = 0; i < n; i++) keys[i] = key(i);
        double begin = now();
        sort(keys, spare, n);
        seconds += now() - begin;
        uint64_t found = 0, found_mixed = 0;
        for (size_t i = 0; i < n; i++) {
            require(i == 0 || keys[i - 1] <= keys[i], "sort: not in order");
            found += keys[i], found_mixed += scramble(keys[i]);
        }
        require(found == sum && found_mixed == mixed, "sort: other keys than were given");
    }
    result("sort", seconds, (double)keys[n / 2] * 0x1p-64);
    finish();
}
