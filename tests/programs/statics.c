/* Writes and checks every word of static arrays that are larger than local memory. Some have initial values. */
#include <stdint.h>
#include <stdio.h>

#define WORDS (4u << 20)
static uint64_t zeros[WORDS];
static uint64_t given[1u << 19] = {11, 22, 33};
static uint64_t more[WORDS];
static int small = 5;

int main(void) {
    uint64_t wrong = given[0] != 11 || given[1] != 22 || given[2] != 33 || small != 5;
    for (unsigned i = 3; i < 1u << 19; i++) wrong += given[i] != 0;
    for (unsigned i = 0; i < WORDS; i++) wrong += zeros[i] | more[i];
    for (int lap = 1; lap <= 2; lap++) {
        for (unsigned i = 0; i < WORDS; i++) zeros[i] += i, more[i] += 2 * i;
        for (unsigned i = 0; i < 1u << 19; i++) given[i] += i;
    }
    for (unsigned i = 0; i < WORDS; i++) wrong += zeros[i] != 2ull * i || more[i] != 4ull * i;
    for (unsigned i = 3; i < 1u << 19; i++) wrong += given[i] != 2ull * i;
    printf("%llu wrong\n", (unsigned long long)wrong);
    return wrong != 0;
}
