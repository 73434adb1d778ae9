/* Makes calls that far memory refuses, prints their errors, and checks that the contents are unchanged. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LEN = 32 << 20, PAGE = 4096 };

static void say(const char *what, int failed) { printf("%s: %s\n", what, strerror(failed ? errno : 0)); }

int main(void) {
    static char near[PAGE] __attribute__((aligned(4096)));
    uint64_t *far = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (uint64_t w = 0; w < LEN / 8; w++) far[w] = w * 3;
    say("mlock", mlock((char *)far + 100, PAGE));
    say("mlock2", mlock2(far, PAGE, MLOCK_ONFAULT));
    say("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
    say("near", mlock(near, PAGE));
    say("MADV_DONTFORK", madvise(far, PAGE, MADV_DONTFORK));
    say("MREMAP_DONTUNMAP", mremap(far, LEN, LEN, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) == MAP_FAILED);
    size_t wrong = 0;
    for (uint64_t w = 0; w < LEN / 8; w++) wrong += far[w] != w * 3;
    printf("%zu wrong\n", wrong);
    return wrong != 0;
}
