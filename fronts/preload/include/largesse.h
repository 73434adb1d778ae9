/* largesse.h: the control calls of liblargesse.so.
 *
 * Look the library up, never link a second copy:
 *     int (*stats)(largesse_stats_t *) = dlsym(RTLD_DEFAULT, "largesse_stats");
 * Structs begin with struct_size, which the caller sets to sizeof; they grow only at the end. With a smaller size than the
 * struct's first version had, a call writes nothing and returns LARGESSE_BAD_ARGUMENT, or (size_t)-1 if it returns a count.
 * No call throws, allocates from malloc, or prints. All sizes are bytes. Thread-safe.
 */
#ifndef LARGESSE_H
#define LARGESSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of `not_granted` causes below, and of pages words. */
#define LARGESSE_CAUSES 21
/* Number of `not_granted_more`, whose causes have the numbers from LARGESSE_CAUSES on. */
#define LARGESSE_MORE_CAUSES 2

/* Results of calls that can fail. */
enum {
    LARGESSE_OK = 0,
    LARGESSE_BAD_ARGUMENT = -1,   /* a null pointer, struct_size too small, min above max, below 64 KiB */
    LARGESSE_NOT_SUPPORTED = -2,  /* this process cannot be served; see largesse_why_not() */
};

/* Page kinds. */
enum { LARGESSE_AUTO, LARGESSE_THP, LARGESSE_HUGETLB, LARGESSE_HUGETLB_1G, LARGESSE_64K, LARGESSE_4K };

/* Block kinds. */
enum { LARGESSE_BLOCK_THP = 1, LARGESSE_BLOCK_HUGETLB = 2, LARGESSE_BLOCK_SMALL = 3 };

typedef struct {
    size_t   struct_size;
    uint32_t enabled;            /* 1 while new blocks are taken */
    uint32_t hooked;             /* how calls reach us: 0 not at all, 1 preloaded, 2 patched slots */
    uint32_t pages;              /* LARGESSE_AUTO ... */
    uint32_t header;             /* bytes before the data of a block */
    uint64_t min_bytes, max_bytes;
    uint64_t large_page_bytes;   /* size of the system's large page; 0: it has none */
    uint64_t blocks;             /* live blocks */
    uint64_t live_bytes, peak_bytes;
    uint64_t allocations, frees, reused;
    uint64_t retained_bytes, returned_bytes, populated_bytes;
    uint64_t fresh_bytes, clear_skipped_bytes;
    uint64_t resized_in_place, moved_by_mremap;
    uint64_t advised_mappings, advised_bytes;
    uint64_t not_granted[LARGESSE_CAUSES];
    /* Since interface 1.1: far memory; all 0 without it. `far_local_bytes` is the bound. */
    uint64_t far_local_bytes, far_resident_bytes, far_stored_bytes, far_mapped_bytes, far_set_bytes;
    uint64_t far_faults, far_fills, far_prefetched, far_prefetch_hits, far_evictions, far_write_backs;
    uint64_t far_bytes_in, far_bytes_out, far_wait_ns;
    uint64_t not_granted_more[LARGESSE_MORE_CAUSES];   /* since interface 1.3 */
} largesse_stats_t;

typedef struct {
    size_t   struct_size;
    uint64_t address;            /* what malloc returned */
    uint64_t size;               /* bytes asked for */
    uint64_t large_bytes;        /* bytes really on large pages now */
    uint32_t kind;               /* LARGESSE_BLOCK_... */
    int32_t  node;               /* NUMA node of the first touched page; -1: nothing touched or not known */
    uint32_t exact;              /* 1: large_bytes was read page by page; 0: kernel before 6.7, share of the mapping */
} largesse_block_t;

/* Version of this interface: major << 16 | minor. */
uint32_t largesse_version(void);

/* Fill `out`; LARGESSE_OK or LARGESSE_BAD_ARGUMENT. */
int largesse_stats(largesse_stats_t *out);

/* Copy at most `capacity` live blocks to `out`, ordered by address; returns how many there are.
 * Set out[0].struct_size to sizeof(largesse_block_t). `out` may be NULL when capacity is 0.
 * (size_t)-1: that size is too small. */
size_t largesse_blocks(largesse_block_t *out, size_t capacity);

/* Take new blocks (1) or not (0). Blocks that exist stay valid. In a process that was not started
 * with the library, the first largesse_enable(1) patches the slots of libR.so (malloc, calloc,
 * realloc, free) and of every loaded object (free, realloc, malloc_usable_size, mmap, dlopen).
 * Returns LARGESSE_OK or LARGESSE_NOT_SUPPORTED. */
int largesse_enable(int on);

/* Which sizes are taken from now on. */
int largesse_set_limits(uint64_t min_bytes, uint64_t max_bytes);

/* Return free memory beyond `keep` bytes to the kernel; returns the bytes returned. */
size_t largesse_trim(size_t keep);

/* Around a compute core, the loop nest that a program runs again and again: with far memory
 * (`largesse run --local`), the size of pages is chosen by what the core really uses. One state is
 * kept for each `id`. Programs that do not mark anything are tuned as well, by other means.
 * LARGESSE_OK; LARGESSE_NOT_SUPPORTED without far memory (nothing happens, and nothing needs to);
 * LARGESSE_BAD_ARGUMENT for NULL, or an end without a beginning.
 *
 *     for (int step = 0; step < steps; step++) {
 *         largesse_tune_begin("solve");
 *         solve();
 *         largesse_tune_end("solve");
 *     }
 */
int largesse_tune_begin(const char *id);
int largesse_tune_end(const char *id);

/* Far memory for a session that is running and has no large block yet: at most `local` of its blocks is
 * in memory ("4G", "50%" of what it has), the rest in `store` ("file:PATH"; NULL: a file in $TMPDIR or
 * /var/tmp, removed at once). `page_size`: "auto" (NULL), or "4K" ... "2M". NULL when it is there, else why
 * it is not, in words that say what to do, valid for good. Then call largesse_enable(1). */
const char *largesse_far_memory(const char *local, const char *store, const char *page_size);

/* Reductions, with the same bits on every processor and for any number of threads (docs/kernels.md). Names and
 * arguments are BLAS's: s and d are float and double, c and z complex; n elements, incx apart; a negative
 * incx begins at the far end; 0 is one element again and again. sumsq: the sum of squares. dotc: x conjugated.
 * axpy: y[i] = a * x[i] + y[i], rounded once; x and y are the same or do not overlap. Long vectors
 * are shared among threads: as many as largesse_set_threads or OMP_NUM_THREADS says, else one for each processor of this
 * process. Which processors the calling thread is bound to does not count. */
#ifdef __cplusplus
typedef struct { float re, im; } largesse_float_complex;
typedef struct { double re, im; } largesse_double_complex;
#else
typedef float _Complex largesse_float_complex;
typedef double _Complex largesse_double_complex;
#endif

float  largesse_ssum(size_t n, const float *x, ptrdiff_t incx);
double largesse_dsum(size_t n, const double *x, ptrdiff_t incx);
float  largesse_ssumsq(size_t n, const float *x, ptrdiff_t incx);
double largesse_dsumsq(size_t n, const double *x, ptrdiff_t incx);
float  largesse_snrm2(size_t n, const float *x, ptrdiff_t incx);
double largesse_dnrm2(size_t n, const double *x, ptrdiff_t incx);
float  largesse_sasum(size_t n, const float *x, ptrdiff_t incx);
double largesse_dasum(size_t n, const double *x, ptrdiff_t incx);
float  largesse_sdot(size_t n, const float *x, ptrdiff_t incx, const float *y, ptrdiff_t incy);
double largesse_ddot(size_t n, const double *x, ptrdiff_t incx, const double *y, ptrdiff_t incy);
largesse_float_complex largesse_cdotu(size_t n, const largesse_float_complex *x, ptrdiff_t incx,
                                      const largesse_float_complex *y, ptrdiff_t incy);
largesse_double_complex largesse_zdotu(size_t n, const largesse_double_complex *x, ptrdiff_t incx,
                                       const largesse_double_complex *y, ptrdiff_t incy);
largesse_float_complex largesse_cdotc(size_t n, const largesse_float_complex *x, ptrdiff_t incx,
                                      const largesse_float_complex *y, ptrdiff_t incy);
largesse_double_complex largesse_zdotc(size_t n, const largesse_double_complex *x, ptrdiff_t incx,
                                       const largesse_double_complex *y, ptrdiff_t incy);
void   largesse_saxpy(size_t n, float a, const float *x, ptrdiff_t incx, float *y, ptrdiff_t incy);
void   largesse_daxpy(size_t n, double a, const double *x, ptrdiff_t incx, double *y, ptrdiff_t incy);

/* Since interface 1.3: how many threads the reductions use from now on (0: what OMP_NUM_THREADS says, else the processors of
 * this process), LARGESSE_OK or LARGESSE_BAD_ARGUMENT for a negative number; and how many a long one would use now, at most
 * 256. The number changes no bit of a result. */
int largesse_set_threads(int threads);
int largesse_threads(void);

/* Since interface 1.2: processors, NUMA nodes and time. Those that return int: LARGESSE_OK, or LARGESSE_BAD_ARGUMENT
 * (it has no meaning), LARGESSE_NOT_SUPPORTED (it has one, and was refused); then largesse_refusal() says why, and
 * nothing has changed but what it says.
 *
 * Stay on the processors of a list such as "0-3,8": the calling thread, or with `whole_process` all threads there are.
 * Threads started later inherit it. */
int largesse_pin(const char *cpus, int whole_process);

/* Memory on one NUMA node and nowhere else, on large pages where it is large; NULL when refused. Give it back by
 * munmap(address, bytes). Like all memory it takes pages when they are touched. */
void *largesse_alloc_on_node(size_t bytes, int node);

/* Of the pages that lie wholly in [address, address + bytes): those touched from now on are spread over all nodes;
 * those there are, and those touched from now on, are on `node`. */
int largesse_interleave(void *address, size_t bytes);
int largesse_move(void *address, size_t bytes, int node);

/* nodes[i]: the node of page i of [address, address + bytes), -1 for a page that was not touched, for at most
 * `capacity` pages. Returns how many pages there are (the last ones may be partly outside). `nodes` may be NULL. */
size_t largesse_where(const void *address, size_t bytes, int32_t *nodes, size_t capacity);

/* A reading of the processor's counter (TSC, CNTVCT), with everything before it done and nothing after it begun; of the
 * clock where the counter is none. Differences are time, not core cycles. The first call of a process takes 12 ms. */
uint64_t largesse_cycles_now(void);
double largesse_cycles_to_ns(uint64_t cycles);

/* Ticks of largesse_cycles_now in a second; `name` becomes "TSC", "CNTVCT", or "clock" where the processor's counter is
 * none. `name` may be NULL. */
double largesse_cycles_per_second(const char **name);

/* What the machine is made of. Set out[0].struct_size to the size of the structure; returns how many there are, of which
 * at most `capacity` are written; 0 when the kernel does not say; (size_t)-1 when struct_size is too small. `out` may be
 * NULL when capacity is 0. */
typedef struct {
    size_t   struct_size;
    uint32_t cpu;                /* the kernel's number of a processor that is online */
    uint32_t core, package;      /* those it belongs to, counted from 0; (uint32_t)-1: not known */
    int32_t  node;               /* its NUMA node; -1: none, or not known */
    uint32_t permitted;          /* 1: this process may run there */
} largesse_cpu_t;

typedef struct {
    size_t   struct_size;
    uint32_t node;               /* the kernel's number */
    uint32_t cpus;               /* how many processors; 0: memory alone */
    uint64_t bytes, free_bytes;
} largesse_node_t;

size_t largesse_cpus(largesse_cpu_t *out, size_t capacity);
size_t largesse_nodes(largesse_node_t *out, size_t capacity);

/* From node to node: 10 is local, 20 twice as far; -1: not known. */
int largesse_distance(int from, int to);

/* What the last of these calls in this thread refused and why, in words; NULL when it refused nothing. Valid until the
 * thread's next call. */
const char *largesse_refusal(void);

/* Why this process cannot be served, in words that say what to do; NULL when it can. */
const char *largesse_why_not(void);

/* Name ("thp-never") and advice for one cause; NULL for a number out of range. */
const char *largesse_cause_name(uint32_t cause);
const char *largesse_cause_advice(uint32_t cause);

#ifdef __cplusplus
}
#endif
#endif
