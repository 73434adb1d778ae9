/* placement CHECK [ARGUMENTS]: exits with 0 if memory is on the requested nodes, otherwise with 1 and a message.
 *
 * The preloaded liblargesse.so places the memory. The program checks it with system calls of its own: move_pages gives
 * the node of each page, and get_mempolicy the policy. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "largesse.h"

enum { BIND = 2, INTERLEAVE = 3, OF_ADDRESS = 2, MOST_NODES = 64 };
static const size_t MIB = 1 << 20;

static void fail(const char *what, long got, long wanted)
{
    printf("FAIL: %s: %ld, not %ld\n", what, got, wanted);
    exit(1);
}

static void same(const char *what, long got, long wanted) { if (got != wanted) fail(what, got, wanted); }

static void *call(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) { printf("FAIL: no %s: is the library preloaded?\n", name); exit(1); }
    return found;
}
#define CALL(name) ((__typeof__(&name))call(#name))

static char *map(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) { perror("mmap"); exit(1); }
    return at;
}

/* Counts the pages on each node. count[MOST_NODES] is the number of pages that are not resident. */
static void look(char *at, size_t bytes, long *count)
{
    size_t page = sysconf(_SC_PAGESIZE), pages = bytes / page;
    void **address = malloc(pages * sizeof *address);
    int *node = malloc(pages * sizeof *node);
    for (size_t i = 0; i < pages; i++) address[i] = at + i * page;
    /* Linux 6.1 does not report pages that NUMA balancing has marked, which may happen at any time. A read removes the
     * mark, and does no harm because all pages have been written before. */
    for (int unreported = 1; unreported;) {
        for (size_t i = 0; i < pages; i++) *(volatile char *)address[i];
        if (syscall(SYS_move_pages, 0, pages, address, NULL, node, 0)) { perror("move_pages"); exit(1); }
        unreported = 0;
        for (size_t i = 0; i < pages; i++) unreported |= node[i] == -ENOENT;
    }
    memset(count, 0, (MOST_NODES + 1) * sizeof *count);
    for (size_t i = 0; i < pages; i++) count[node[i] < 0 ? MOST_NODES : node[i]]++;
    int32_t *told = malloc(pages * sizeof *told);
    same("pages told", CALL(largesse_where)(at, bytes, told, pages), pages);
    for (size_t i = 0; i < pages; i++) same("node told", told[i], node[i] < 0 ? -1 : node[i]);
    free(told), free(node), free(address);
}

/* Checks that every page is resident and on one node. */
static void all_on(const char *what, char *at, size_t bytes, int node)
{
    long count[MOST_NODES + 1];
    look(at, bytes, count);
    same(what, count[node], bytes / sysconf(_SC_PAGESIZE));
}

static void policy(char *at, int mode, unsigned long nodes)
{
    int is = -1;
    unsigned long mask[16] = {0};
    /* The kernel decrements maxnode. */
    if (syscall(SYS_get_mempolicy, &is, mask, sizeof mask * 8 + 1, at, OF_ADDRESS)) { perror("get_mempolicy"); exit(1); }
    same("mode", is, mode);
    if (nodes) same("nodes", mask[0], nodes);
}

static char *on_node(size_t bytes, int node)
{
    char *at = CALL(largesse_alloc_on_node)(bytes, node);
    if (!at) { printf("FAIL: node %d: %s\n", node, CALL(largesse_refusal)()); exit(1); }
    memset(at, 0x77, bytes);
    return at;
}

static void says(const char *words)
{
    const char *why = CALL(largesse_refusal)();
    if (!why || !strstr(why, words)) { printf("FAIL: refused with '%s', not '%s'\n", why ? why : "", words); exit(1); }
}

static void bind_to(int node)
{
    char *at = on_node(16 * MIB, node);
    all_on("pages on the node", at, 16 * MIB, node);
    policy(at, BIND, 1UL << node);
    munmap(at, 16 * MIB);
}

/* This is the negative control: it makes the same check on memory that is bound to another node, and must fail. */
static void wrong(int node, int other)
{
    all_on("pages on the node", on_node(16 * MIB, other), 16 * MIB, node);
}

static void interleave(int nodes)
{
    char *at = map(16 * MIB);
    madvise(at, 16 * MIB, MADV_NOHUGEPAGE); /* small pages, so that the interleaved pages can be counted */
    same("interleave", CALL(largesse_interleave)(at + 1, 16 * MIB - 1), LARGESSE_OK);
    memset(at, 1, 16 * MIB);
    long count[MOST_NODES + 1], pages = 16 * MIB / sysconf(_SC_PAGESIZE);
    size_t page = sysconf(_SC_PAGESIZE);
    look(at + page, 16 * MIB - page, count); /* the range does not contain the whole first page */
    for (int i = 0; i < nodes; i++)
        if (labs(count[i] - pages / nodes) > 1) fail("pages on each node", count[i], pages / nodes);
    policy(at + page, INTERLEAVE, 0);
}

static void move(int from, int to)
{
    char *at = on_node(16 * MIB, from);
    all_on("pages before", at, 16 * MIB, from);
    same("move", CALL(largesse_move)(at, 16 * MIB, to), LARGESSE_OK);
    all_on("pages after", at, 16 * MIB, to);
    for (size_t i = 0; i < 16 * MIB; i++) same("byte", at[i], 0x77);
}

static void first_touch(int cpus)
{
    for (int cpu = 0; cpu < cpus; cpu++) {
        char name[16], *at = map(4 * MIB);
        snprintf(name, sizeof name, "%d", cpu);
        same("pin", CALL(largesse_pin)(name, cpu % 2), LARGESSE_OK);
        same("processor", sched_getcpu(), cpu);
        memset(at, 1, 4 * MIB);
        unsigned here;
        syscall(SYS_getcpu, NULL, &here, NULL);
        all_on("pages of the one who touched", at, 4 * MIB, here);
        munmap(at, 4 * MIB);
    }
}

static void absent(int node, int cpu, const char *nodes)
{
    char words[64], list[32];
    snprintf(words, sizeof words, "NUMA node %d does not exist, or has no memory; with memory: %s", node, nodes);
    if (CALL(largesse_alloc_on_node)(MIB, node)) fail("memory on an absent node", 1, 0);
    says(words);
    char *at = map(MIB);
    memset(at, 1, MIB);
    same("move to an absent node", CALL(largesse_move)(at, MIB, node), LARGESSE_NOT_SUPPORTED);
    says(words);
    same("move to no node", CALL(largesse_move)(at, MIB, -1), LARGESSE_BAD_ARGUMENT);
    same("no whole page", CALL(largesse_interleave)(at + 1, 100), LARGESSE_BAD_ARGUMENT);
    says("no whole page");
    snprintf(list, sizeof list, "0,%d", cpu);
    snprintf(words, sizeof words, "processor %d does not exist, or is offline; this machine has 0-", cpu);
    same("pin", CALL(largesse_pin)(list, 0), LARGESSE_NOT_SUPPORTED);
    says(words);
    same("pin", CALL(largesse_pin)("0-x", 0), LARGESSE_BAD_ARGUMENT);
    says("'0-x' is not a list of processors");
    same("pin", CALL(largesse_pin)("N:8000", 0), LARGESSE_NOT_SUPPORTED);
    says("so there is no place 8000");
    same("pin", CALL(largesse_pin)("0", 0), LARGESSE_OK);
    if (CALL(largesse_refusal)()) fail("words after a success", 1, 0);
}

/* Checks a node at the end of the mask: the kernel subtracts one from maxnode, so that the exact number of bits would
 * lose the last one. */
static void maxnode(int last)
{
    unsigned long mask = 1UL << last;
    char *at = map(MIB);
    same("mbind with the number of bits", syscall(SYS_mbind, at, MIB, BIND, &mask, last + 1, 0), -1);
    same("errno", errno, EINVAL);
    same("mbind with one more", syscall(SYS_mbind, at, MIB, BIND, &mask, last + 2, 0), 0);
    bind_to(last);
}

/* Touches memory under `largesse pin`, and checks that at least `least` of `mib` MiB are on the node. */
static void spread(int node, int mib, int least)
{
    char *at = map(mib * MIB);
    memset(at, 1, mib * MIB);
    long count[MOST_NODES + 1], page = sysconf(_SC_PAGESIZE);
    look(at, mib * MIB, count);
    if (count[node] < (long)(least * MIB / page)) {
        for (int i = 0; i < MOST_NODES; i++) if (count[i]) printf("node %d has %ld pages\n", i, count[i]);
        fail("pages on the node", count[node], least * MIB / page);
    }
    if (count[MOST_NODES]) fail("pages that are nowhere", count[MOST_NODES], 0);
}

static void cycles(void)
{
    uint64_t before = CALL(largesse_cycles_now)();
    usleep(20000);
    double ns = CALL(largesse_cycles_to_ns)(CALL(largesse_cycles_now)() - before);
    if (ns < 19e6 || ns > 20e9) fail("nanoseconds of 20 ms", ns, 20e6);
}

/* Compares the library's description of the machine with that of the C library. */
static void topology(int nodes)
{
    largesse_cpu_t cpu[64] = {{.struct_size = sizeof cpu[0]}};
    largesse_node_t node[64] = {{.struct_size = sizeof node[0]}};
    size_t cpus = CALL(largesse_cpus)(cpu, 64);
    same("processors", cpus, sysconf(_SC_NPROCESSORS_ONLN));
    same("nodes", CALL(largesse_nodes)(node, 64), nodes);
    unsigned long bytes = 0, owned = 0;
    for (int i = 0; i < nodes; i++) {
        same("number", node[i].node, i);
        same("distance to itself", CALL(largesse_distance)(i, i), 10);
        bytes += node[i].bytes, owned += node[i].cpus;
    }
    same("processors of nodes", owned, cpus);
    unsigned long all = (unsigned long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (bytes < all * 9 / 10 || bytes > all * 11 / 10) fail("bytes of nodes", bytes, all);
    same("permitted", cpu[0].permitted, 1);
    same("distance to nowhere", CALL(largesse_distance)(0, 900), -1);
    if (nodes == 4) same("distance to the opposite", CALL(largesse_distance)(1, 3), 22);
    const char *name = NULL;
    if (CALL(largesse_cycles_per_second)(&name) < 1e6 || !name) fail("ticks in a second", 0, 1000000);
}

int main(int count, char **word)
{
    int number[3] = {0};
    for (int i = 0; i < 3 && i + 2 < count; i++) number[i] = atoi(word[i + 2]);
    const char *check = count > 1 ? word[1] : "";
    if (!strcmp(check, "bind")) bind_to(number[0]);
    else if (!strcmp(check, "wrong")) wrong(number[0], number[1]);
    else if (!strcmp(check, "interleave")) interleave(number[0]);
    else if (!strcmp(check, "move")) move(number[0], number[1]);
    else if (!strcmp(check, "touch")) first_touch(number[0]);
    else if (!strcmp(check, "absent") && count > 4) absent(number[0], number[1], word[4]);
    else if (!strcmp(check, "maxnode")) maxnode(number[0]);
    else if (!strcmp(check, "spread")) spread(number[0], number[1], number[2]);
    else if (!strcmp(check, "cycles")) cycles();
    else if (!strcmp(check, "topology")) topology(number[0]);
    else { printf("FAIL: no check '%s'\n", check); return 1; }
    printf("placement %s: as asked\n", check);
    return 0;
}
