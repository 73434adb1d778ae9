/* largesse.h: the control calls of liblargesse.so.
 *
 * A program that can do without the library looks it up, and never loads a second copy:
 *     int (*stats)(largesse_stats_t *) = dlsym(RTLD_DEFAULT, "largesse_stats");
 * A program that is always to have it is linked with it (pkg-config --libs largesse; CMake: find_package(largesse)).
 * Its large blocks are then served as under `largesse run`, and under `largesse run` it still has one copy.
 *
 * Structs begin with struct_size, which the caller sets to sizeof; they grow only at the end. With a smaller size
 * than the struct's first version had, a call writes nothing and returns LARGESSE_BAD_ARGUMENT, or (size_t)-1 if it
 * returns a count. No call throws, allocates from malloc, or prints. All sizes are in bytes. All calls are
 * thread-safe.
 */
#ifndef LARGESSE_H
#define LARGESSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of the binary interface: the major version that largesse_version() returns, and the number in the name
 * liblargesse.so.2 that linked programs need. */
#define LARGESSE_ABI 2

/* Results of calls that can fail. */
enum {
    LARGESSE_OK = 0,
    LARGESSE_BAD_ARGUMENT = -1,   /* a null pointer, a struct_size that is too small, min above max or below 64 KiB */
    LARGESSE_NOT_SUPPORTED = -2,  /* this process cannot be served: largesse_why_not() returns the reason */
};

/* Page kinds. */
enum { LARGESSE_AUTO, LARGESSE_THP, LARGESSE_HUGETLB, LARGESSE_HUGETLB_1G, LARGESSE_64K, LARGESSE_4K };

/* Block kinds: pages of 2 MiB, of the pool, and small ones; 5 for parts of several kinds. */
enum { LARGESSE_BLOCK_THP = 1, LARGESSE_BLOCK_HUGETLB = 2, LARGESSE_BLOCK_SMALL = 3, LARGESSE_BLOCK_MIXED = 5 };

typedef struct {
    size_t   struct_size;
    uint32_t enabled;            /* 1 while new blocks are served */
    uint32_t hooked;             /* how calls reach the library: 0 not at all, 1 preloaded, 2 patched slots, 3 functions
                                    of largesse_allocator */
    uint32_t pages;              /* LARGESSE_AUTO ... */
    uint32_t header;             /* bytes before the data of a block */
    uint64_t min_bytes, max_bytes;
    uint64_t large_page_bytes;   /* size of the system's large page; 0 if it has none */
    uint64_t blocks;             /* live blocks */
    uint64_t live_bytes, peak_bytes;
    uint64_t allocations, frees, reused;
    uint64_t retained_bytes, returned_bytes, populated_bytes;
    uint64_t fresh_bytes, clear_skipped_bytes;
    uint64_t resized_in_place, moved_by_mremap;
    uint64_t advised_mappings, advised_bytes;
    /* Far memory; all 0 without it. `far_local_bytes` bounds `far_resident_bytes`. */
    uint64_t far_local_bytes, far_resident_bytes, far_stored_bytes, far_mapped_bytes, far_set_bytes;
    uint64_t far_faults, far_fills, far_prefetched, far_prefetch_hits, far_evictions, far_write_backs;
    uint64_t far_bytes_in, far_bytes_out, far_wait_ns;
} largesse_stats_t;

typedef struct {
    size_t   struct_size;
    uint64_t address;            /* as malloc returned it */
    uint64_t size;               /* as requested */
    uint64_t large_bytes;        /* resident bytes on large pages */
    uint32_t kind;               /* LARGESSE_BLOCK_..., of the whole block, or of the part before rest_bytes */
    int32_t  node;               /* NUMA node of the first touched page; -1 if none is touched, or it is unknown */
    uint32_t exact;              /* 1 if large_bytes was read page by page; 0 if it is unknown (before Linux 6.7) */
    uint32_t rest_kind;          /* LARGESSE_BLOCK_... of the last rest_bytes; 0 if the block is of one kind */
    uint64_t rest_bytes;         /* bytes at the end of a block that is on two kinds of page, else 0 */
} largesse_block_t;

/* Returns the version of this interface, major << 16 | minor. */
uint32_t largesse_version(void);

/* Fills in `out`; returns LARGESSE_OK or LARGESSE_BAD_ARGUMENT. */
int largesse_stats(largesse_stats_t *out);

/* Writes, for the first `capacity` causes, the number of requests that were granted less than they asked for, and
 * returns the number of all causes. counts[i] belongs to largesse_cause_name(i). `counts` may be NULL if `capacity` is
 * 0. */
size_t largesse_not_granted(uint64_t *counts, size_t capacity);

/* Copies at most `capacity` live blocks to `out`, ordered by address, and returns the number of all. Set
 * out[0].struct_size to sizeof(largesse_block_t); if it is too small, the call returns (size_t)-1. `out` may be NULL if
 * `capacity` is 0. */
size_t largesse_blocks(largesse_block_t *out, size_t capacity);

/* Describes the pages of `bytes` bytes from `address` on, also where they are not in a block of
 * the heap; out->kind is 0 then. Set out->struct_size. Returns LARGESSE_OK or LARGESSE_BAD_ARGUMENT. */
int largesse_inspect(const void *address, size_t bytes, largesse_block_t *out);

/* Starts (1) or stops (0) serving new blocks. Existing blocks stay valid. In a process that was not started
 * with the library, the first largesse_enable(1) patches the slots of libR.so (malloc, calloc,
 * realloc, free) and of every loaded object (free, realloc, malloc_usable_size, mmap, dlopen).
 * Returns LARGESSE_OK or LARGESSE_NOT_SUPPORTED. */
int largesse_enable(int on);

/* An allocator as functions with a context, in the layout of NumPy's PyDataMemAllocator. */
typedef struct {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void  (*free)(void *context, void *block, size_t size);
} largesse_allocator_t;

/* Fills in `out` with functions that serve large requests from the heap, once largesse_enable(1)
 * was called, and pass all others to `next`. Blocks of `next` must be those of the C library's malloc, and `next` must
 * never be freed. For programs that accept another allocator while they run, such as NumPy (NEP 49). Returns
 * LARGESSE_OK, LARGESSE_BAD_ARGUMENT for NULL, or LARGESSE_NOT_SUPPORTED: largesse_why_not() returns the reason. */
int largesse_allocator(const largesse_allocator_t *next, largesse_allocator_t *out);

/* Sets the bounds of the sizes that are served from now on; returns LARGESSE_OK or LARGESSE_BAD_ARGUMENT. */
int largesse_set_limits(uint64_t min_bytes, uint64_t max_bytes);

/* Gives free memory beyond `keep` bytes back to the kernel; returns the number of bytes given back. */
size_t largesse_trim(size_t keep);

/* Mark the beginning and the end of a compute core, a loop nest that a program runs again and again. With far memory
 * (`largesse run --local`), the size of transfers is then chosen by the working set of the core. Each `id` has a state
 * of its own. Programs without marks are tuned by trying sizes. The calls return LARGESSE_OK;
 * LARGESSE_NOT_SUPPORTED, which can be ignored, without far memory; LARGESSE_BAD_ARGUMENT for NULL, or an end without a
 * beginning.
 *
 *     for (int step = 0; step < steps; step++) {
 *         largesse_tune_begin("solve");
 *         solve();
 *         largesse_tune_end("solve");
 *     }
 */
int largesse_tune_begin(const char *id);
int largesse_tune_end(const char *id);

/* Gives far memory to a running session that has no large block yet: at most `local` of its blocks is resident
 * ("4G", or "50%" of their bytes), the rest in `store` ("file:PATH"; NULL: a file in $TMPDIR or /var/tmp, unlinked
 * at once). `page_size` is the size of transfers: "auto" (NULL), or "4K" ... "2M". Returns NULL, or a message that
 * stays valid and says what to do. After success, call largesse_enable(1). */
const char *largesse_far_memory(const char *local, const char *store, const char *page_size);

/* Keeps the process below `limit` from now on, also if large blocks exist: "8G", or "auto" for the tightest limit of
 * its control groups and the machine. Near the limit its large blocks become far memory in place: what does not fit is
 * kept in `store` ("file:PATH"; NULL: a file in $TMPDIR or /var/tmp, unlinked at once). A later call changes the limit,
 * with NULL as store. Returns NULL, or a message that stays valid and says what to do. Needs Linux 6.8, and, without the
 * right to handle page faults of system calls, other threads that are idle (docs/limit.md). Since interface 2.1. */
const char *largesse_limit(const char *limit, const char *store);

/* Reductions return the same bits on every processor and for any number of threads (docs/kernels.md). Names and
 * arguments are those of BLAS: s and d are float and double, c and z complex; the n elements are incx apart; a
 * negative incx begins at the last element; 0 uses one element n times. sumsq is the sum of squares, amax and
 * amin are the largest and the smallest absolute value (of no elements: 0 and infinity), and dotc conjugates x. axpy computes y[i] = a * x[i] + y[i], rounded once; x and y are the same or do not overlap. Threads
 * share long vectors; their number is that of largesse_set_threads or OMP_NUM_THREADS, else that of the processors
 * of this process, whichever of them the calling thread is bound to. */
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
float  largesse_samax(size_t n, const float *x, ptrdiff_t incx);
double largesse_damax(size_t n, const double *x, ptrdiff_t incx);
float  largesse_samin(size_t n, const float *x, ptrdiff_t incx);
double largesse_damin(size_t n, const double *x, ptrdiff_t incx);
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

/* Sets the number of threads of reductions (0: the value of OMP_NUM_THREADS, else the number of
 * processors of this process); returns LARGESSE_OK, or LARGESSE_BAD_ARGUMENT for a negative number. No result
 * depends on it. */
int largesse_set_threads(int threads);
/* Returns the number of threads that a reduction of a long vector would use now, at most 256. */
int largesse_threads(void);

/* Processors, NUMA nodes and time. Calls that return a status return LARGESSE_OK,
 * LARGESSE_BAD_ARGUMENT for an argument without a meaning, or LARGESSE_NOT_SUPPORTED for a request that was refused;
 * after the last two, largesse_refusal() returns the reason, and nothing has changed except as it says.
 *
 * Binds the calling thread, or with `whole_process` all present threads, to processors, named as for `largesse pin --cpus`: a
 * list such as "0-3,8" or "0-14:2", a mask such as "0xff", or a group such as "N:0-3". Threads that they start later
 * inherit the binding. */
int largesse_pin(const char *cpus, int whole_process);

/* Maps memory on one NUMA node and nowhere else, on large pages where one fits; returns NULL if that is refused.
 * Free it by munmap(address, bytes). Its pages are allocated when they are touched. */
void *largesse_alloc_on_node(size_t bytes, int node);

/* Spreads the pages that lie wholly in [address, address + bytes) and are touched from now on over all nodes. */
int largesse_interleave(void *address, size_t bytes);
/* Moves the pages that lie wholly in [address, address + bytes) to `node`, and places those touched from now on
 * there. */
int largesse_move(void *address, size_t bytes, int node);

/* Sets nodes[i] to the node of page i of [address, address + bytes), -1 if it is not touched, for at most `capacity`
 * pages. Returns the number of pages, of which the first and the last may be partly outside. `nodes` may be NULL. */
size_t largesse_where(const void *address, size_t bytes, int32_t *nodes, size_t capacity);

/* Reads the processor's counter (TSC, CNTVCT) after all instructions before the call and before all after it, or the
 * clock where the counter is not usable. Differences are time, not core cycles. The first call of a process takes 12
 * ms. */
uint64_t largesse_cycles_now(void);
/* Returns the nanoseconds of a difference of two readings. */
double largesse_cycles_to_ns(uint64_t cycles);

/* Returns the ticks per second of largesse_cycles_now, and sets `name` to "TSC", "CNTVCT", or "clock". `name` may be
 * NULL. */
double largesse_cycles_per_second(const char **name);

/* The next two calls describe the machine. Set out[0].struct_size to the size of the structure. They write at most
 * `capacity` structures and return the number of all; 0 if the kernel does not tell it, (size_t)-1 if struct_size is
 * too small. `out` may be NULL if `capacity` is 0. */
typedef struct {
    size_t   struct_size;
    uint32_t cpu;                /* the kernel's number of an online processor */
    uint32_t core, package;      /* its core and package, counted from 0; (uint32_t)-1 if unknown */
    int32_t  node;               /* its NUMA node; -1 if it has none, or it is unknown */
    uint32_t permitted;          /* 1 if this process may run on it */
} largesse_cpu_t;

typedef struct {
    size_t   struct_size;
    uint32_t node;               /* the kernel's number of an online node */
    uint32_t cpus;               /* number of its processors; 0 if it has only memory */
    uint64_t bytes, free_bytes;  /* its memory; (uint64_t)-1 if unknown */
} largesse_node_t;

size_t largesse_cpus(largesse_cpu_t *out, size_t capacity);
size_t largesse_nodes(largesse_node_t *out, size_t capacity);

/* Returns the distance between two nodes: 10 is local, 20 twice as far, -1 unknown. */
int largesse_distance(int from, int to);

/* Returns the reason why the last of these calls in this thread was refused, NULL if it was not. The text is valid
 * until the thread's next call. */
const char *largesse_refusal(void);

/* Returns the reason why this process cannot be served, and what to do; NULL if it can be served. */
const char *largesse_why_not(void);

/* Return the name ("thp-never") of a cause, and the advice for it; NULL for a number out of range. */
const char *largesse_cause_name(uint32_t cause);
const char *largesse_cause_advice(uint32_t cause);

#ifdef __cplusplus
}
#endif
#endif
