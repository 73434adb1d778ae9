/* Publishes a report as the library does, with two blocks that are touched in known parts. Prints "ready", then waits
* for the end of its input. The test defines REPORT_VERSION and REPORT_SIZE. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <poll.h>
#include <unistd.h>

#define CAUSES 23
#define ADVISED 512
#define MIB (1024UL * 1024)

struct signpost { char magic[8]; uint32_t version, report_size; uint64_t report; };
struct block { uint64_t address, size; uint32_t kind, rest; };
struct report {
    uint64_t generation, blocks, slots, range_start, range_len, min_bytes, max_bytes;
    uint32_t header, pages, enabled, locked, patched;
    int32_t node;
    uint64_t far, far_segments, far_store, limit[5], small_bytes, counters[14], not_granted[CAUSES], advised[ADVISED][2];
};

_Static_assert(sizeof(struct report) == REPORT_SIZE, "the layout is that of HeapReport (heaps/report)");

static struct block blocks[3];
static struct report report;

int main(int n, char **words) {
    const char *mode = n > 1 ? words[1] : "good";
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where kernel.yama.ptrace_scope is 1 */
    char *range = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start = (char *)(((uintptr_t)range + 2 * MIB - 1) & ~(2 * MIB - 1));
    madvise(start, 4 * MIB, MADV_HUGEPAGE);
    madvise(start + 4 * MIB, 8 * MIB, MADV_NOHUGEPAGE);
    memset(start, 1, 4 * MIB);
    memset(start + 4 * MIB, 1, MIB);

    blocks[0] = (struct block){(uintptr_t)start, 4 * MIB, 1, 0};
    blocks[1] = (struct block){0, 0, 0, 0};
    blocks[2] = (struct block){(uintptr_t)start + 4 * MIB, 2 * MIB, 3, 0};
    report = (struct report){.generation = 2, .blocks = (uintptr_t)blocks, .slots = 3,
        .range_start = (uintptr_t)range, .range_len = 16 * MIB, .min_bytes = 256 * 1024,
        .max_bytes = 1UL << 50, .header = 48, .enabled = 1, .node = -1};
    report.counters[0] = 10;
    report.counters[1] = 8;
    report.counters[2] = 6 * MIB;
    report.counters[4] = 5;
    report.not_granted[2] = 3;
    report.advised[0][0] = (uintptr_t)start + 4 * MIB;
    report.advised[0][1] = 2 * MIB;
    report.advised[1][0] = 4096; /* gone: nothing is mapped there */
    report.advised[1][1] = 2 * MIB;
    if (!strcmp(mode, "lying")) {
        report.slots = UINT64_MAX;
    }

    static struct { uint64_t agent; char name[248]; } store = {0, "file:/x\033[2J\033]0;title\a\nProcess 1: fine\302\233\342\200\256"};
    static uint64_t far_words[512];
    if (!strcmp(mode, "escapes")) {
        report.far = report.far_segments = (uintptr_t)far_words;
        report.far_store = (uintptr_t)&store;
    }
    if (!strcmp(mode, "many") || !strcmp(mode, "restless")) {
        /* All records describe the same memory; half of them are free. */
        report.slots = 1UL << 22;
        struct block *all = mmap(NULL, report.slots * sizeof *all, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (uint64_t i = 0; i < report.slots; i += 2) {
            all[i] = (struct block){(uintptr_t)start, 12 * MIB, 1, 0};
        }
        report.blocks = (uintptr_t)all;
    }

    struct signpost post = {"LARGESSE", REPORT_VERSION, sizeof(struct report), (uintptr_t)&report};
    memcpy(post.magic, "LARGESSE", 8);
    if (!strcmp(mode, "newer")) {
        post.version = 99;
    }
    int file = memfd_create("largesse", MFD_CLOEXEC);
    if (write(file, &post, sizeof post) != sizeof post) {
        return 1;
    }
    if (strcmp(mode, "quiet")) {
        mmap(NULL, sizeof post, PROT_READ, MAP_SHARED, file, 0);
    }
    close(file);
    puts("ready");
    fflush(stdout);
    for (volatile uint64_t *generation = &report.generation; !strcmp(mode, "restless");) {
        *generation += 2;
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (*generation % (1 << 16) == 0 && poll(&input, 1, 0) > 0) {
            break;
        }
    }
    return getchar() == EOF ? 0 : 1;
}
