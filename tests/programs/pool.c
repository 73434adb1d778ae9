/* Forks a process with hugetlb pages. The child must have its parent's contents, and counts the blocks that it moved to
 * other pages. pool.bin [writer]: with `writer` a thread writes during the fork. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "largesse.h"

static size_t (*refused)(uint64_t *, size_t);
static size_t (*list)(largesse_block_t *, size_t);
static const char *(*name)(uint32_t);
static volatile int stop;
static char *shared;

static unsigned long count(const char *cause) {
    static uint64_t counts[100];
    size_t causes = refused(counts, 100);
    for (uint32_t i = 0; i < causes; i++) if (!strcmp(name(i), cause)) return counts[i];
    return 0;
}
static int of_kind(uint32_t kind) {
    static largesse_block_t blocks[100];
    blocks[0].struct_size = sizeof blocks[0];
    size_t n = list(blocks, 100); int found = 0;
    for (size_t i = 0; i < n && i < 100; i++) found += blocks[i].kind == kind;
    return found;
}
static void *writer(void *argument) {
    for (unsigned i = 0; !stop; i++) shared[(size_t)i * 4096 % (4 << 20)] = 9;
    return argument;
}
int main(int argc, char **argv) {
    refused = dlsym(RTLD_DEFAULT, "largesse_not_granted"); list = dlsym(RTLD_DEFAULT, "largesse_blocks");
    name = dlsym(RTLD_DEFAULT, "largesse_cause_name");
    if (!refused || !list || !name) { puts("not under the library"); return 1; }
    char *block[6];
    for (int i = 0; i < 6; i++) { block[i] = malloc(4 << 20); memset(block[i], i + 1, 4 << 20); }
    shared = block[0];
    printf("parent: %d hugetlb, %d thp, pool empty %s\n", of_kind(LARGESSE_BLOCK_HUGETLB), of_kind(LARGESSE_BLOCK_THP),
           count("hugetlb-pool-empty") ? "yes" : "no");
    fflush(stdout);
    pthread_t thread; int with = argc > 1 && !strcmp(argv[1], "writer");
    if (with && pthread_create(&thread, NULL, writer, NULL)) return 1;
    int bad = 0;
    for (int round = 0; round < (with ? 40 : 2); round++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            for (int i = with; i < 6; i++) for (int k = 0; k < 4 << 20; k += 4096) { if (block[i][k] != i + 1) _exit(2); block[i][k] = 77; }
            if (of_kind(LARGESSE_BLOCK_HUGETLB)) _exit(3);
            if (!count("demoted-in-child")) _exit(4);
            char *more = malloc(6 << 20); memset(more, 1, 6 << 20); free(more);
            for (int i = 0; i < 6; i++) free(block[i]);
            _exit(0);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (status) { printf("child: status %x\n", status); bad++; break; }
        for (int i = with; i < 6; i++) for (int k = 0; k < 4 << 20; k += 4096) if (block[i][k] != i + 1) { puts("parent changed"); bad++; break; }
    }
    stop = 1;
    if (with) pthread_join(thread, NULL);
    for (int i = 0; i < 6; i++) { memset(block[i], 0, 4 << 20); free(block[i]); }
    puts(bad ? "failed" : "both went on");
    return bad != 0;
}
