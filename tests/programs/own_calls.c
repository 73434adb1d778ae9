/* Passes blocks from malloc to functions that only the loaded allocator has: jemalloc, tcmalloc or mimalloc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
static void *(*volatile get)(size_t) = malloc;
static void *find(const char *n) { return dlsym(RTLD_DEFAULT, n); }
#define HAVE(T, n) T n = (T)find(#n)
typedef size_t (*sized)(const void *); typedef size_t (*sized2)(const void *, int);
typedef void (*fr)(void *); typedef void (*fr2)(void *, int); typedef void (*fr3)(void *, size_t, int); typedef void (*frs)(void*, size_t);
typedef void *(*re)(void *, size_t); typedef void *(*re3)(void *, size_t, int); typedef size_t (*xa)(void *, size_t, size_t, int);
static unsigned char *fresh(size_t n) { unsigned char *p = get(n); for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(i * 31 >> 3); return p; }
static int same(unsigned char *p, size_t n) { if (!p) return 0; for (size_t i = 0; i < n; i++) if (p[i] != (unsigned char)(i * 31 >> 3)) return 0; return 1; }
int main(void) {
    size_t sizes[] = {100, 300000, 1 << 20, 5 << 20}; 
    for (int i = 0; i < 4; i++) {
        size_t n = sizes[i]; unsigned char *p;
        printf("%zu:", n);
        { HAVE(sized2, sallocx); if (sallocx) { p = fresh(n); printf(" sallocx %d", sallocx(p, 0) >= n); free(p); } }
        { HAVE(fr2, dallocx); if (dallocx) { p = fresh(n); dallocx(p, 0); printf(" dallocx"); } }
        { HAVE(fr3, sdallocx); if (sdallocx) { p = fresh(n); sdallocx(p, n, 0); printf(" sdallocx"); } }
        { HAVE(re3, rallocx); if (rallocx) { p = rallocx(fresh(n), 2 * n, 0); printf(" rallocx %d", same(p, n)); free(p); } }
        { HAVE(xa, xallocx); if (xallocx) { p = fresh(n); printf(" xallocx %d", xallocx(p, n, 0, 0) >= n); free(p); } }
        const char *us[] = {"tc_malloc_size", "malloc_size", "mi_usable_size", "mi_malloc_size", "mi_malloc_usable_size", "MallocExtension_GetAllocatedSize"};
        for (int k = 0; k < 6; k++) { sized f = (sized)find(us[k]); if (f) { p = fresh(n); printf(" %s %d", us[k], f(p) >= n); free(p); } }
        const char *fs[] = {"tc_free", "tc_cfree", "cfree", "tc_delete", "mi_free", "mi_cfree", "vfree"};
        for (int k = 0; k < 7; k++) { fr f = (fr)find(fs[k]); if (f) { f(fresh(n)); printf(" %s", fs[k]); } }
        { frs f = (frs)find("tc_free_sized"); if (f) { f(fresh(n), n); printf(" tc_free_sized"); } }
        { frs f = (frs)find("mi_free_size"); if (f) { f(fresh(n), n); printf(" mi_free_size"); } }
        const char *rs[] = {"tc_realloc", "mi_realloc", "mi_rezalloc", "mi_reallocf", "reallocf"};
        for (int k = 0; k < 5; k++) { re f = (re)find(rs[k]); if (f) { p = f(fresh(n), 2 * n); printf(" %s %d", rs[k], same(p, n)); free(p); } }
        { re f = (re)find("mi_expand"); if (f) { p = fresh(n); void *q = f(p, n); printf(" mi_expand %d", q == p); free(p); } }
        p = reallocarray(fresh(n), 2, n); printf(" reallocarray %d", same(p, n)); free(p);
        puts("");
    }
    return 0;
}
