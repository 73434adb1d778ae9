/* Calls from R to liblargesse.so.
 *
 * This file finds the library (the copy of this process, or one file), calls its C interface, and
 * converts values. It does not know heaps, pages or settings, and is not linked with the library: every
 * function is looked up, so that a process never has two copies.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT, dladdr */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include "largesse.h"

#ifdef __linux__
#include <dlfcn.h>
#endif

static struct {
    int found;
    uint32_t (*version)(void);
    int (*stats)(largesse_stats_t *);
    size_t (*not_granted)(uint64_t *, size_t);
    size_t (*blocks)(largesse_block_t *, size_t);
    int (*enable)(int);
    int (*set_limits)(uint64_t, uint64_t);
    size_t (*trim)(size_t);
    const char *(*why_not)(void);
    const char *(*cause_name)(uint32_t);
    const char *(*cause_advice)(uint32_t);
    int (*tune_begin)(const char *);
    int (*tune_end)(const char *);
    const char *(*far_memory)(const char *, const char *, const char *);
    const char *(*limit)(const char *, const char *);
    double (*of_one[6])(size_t, const double *, ptrdiff_t); /* in the order of `of_one` in R/kernels.R */
    double (*dot)(size_t, const double *, ptrdiff_t, const double *, ptrdiff_t);
    largesse_double_complex (*complex_dot[2])(size_t, const largesse_double_complex *, ptrdiff_t,
                                              const largesse_double_complex *, ptrdiff_t);
    void (*axpy)(size_t, double, const double *, ptrdiff_t, double *, ptrdiff_t);
    int (*set_threads)(int);
    int (*threads)(void);
    int (*pin)(const char *, int);
    const char *(*refusal)(void);
    uint64_t (*cycles_now)(void);
    double (*cycles_to_ns)(uint64_t);
    double (*cycles_per_second)(const char **);
    size_t (*cpus)(largesse_cpu_t *, size_t);
    size_t (*nodes)(largesse_node_t *, size_t);
    int (*distance)(int, int);
} library;

#ifdef __linux__
static void *symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }
#endif

/* Returns NULL if the library of this process was found, FALSE if it has none, else the problem. */
static SEXP find_library(void)
{
    if (library.found) return R_NilValue;
#ifndef __linux__
    return mkString("largesse serves Linux only");
#else
    *(void **)&library.version = symbol("largesse_version");
    if (!library.version) return ScalarLogical(FALSE);
    uint32_t version = library.version();
    if (version >> 16 != LARGESSE_ABI) {
        char words[128];
        snprintf(words, sizeof words, "liblargesse.so has interface %u.%u, this package needs %d.x: "
                 "install both from one release", version >> 16, version & 0xffff, LARGESSE_ABI);
        return mkString(words);
    }
    static const struct { const char *name; void **at; } needed[] = {
        {"largesse_stats", (void **)&library.stats}, {"largesse_not_granted", (void **)&library.not_granted},
        {"largesse_blocks", (void **)&library.blocks},
        {"largesse_enable", (void **)&library.enable}, {"largesse_set_limits", (void **)&library.set_limits},
        {"largesse_trim", (void **)&library.trim}, {"largesse_why_not", (void **)&library.why_not},
        {"largesse_cause_name", (void **)&library.cause_name},
        {"largesse_cause_advice", (void **)&library.cause_advice},
        {"largesse_tune_begin", (void **)&library.tune_begin}, {"largesse_tune_end", (void **)&library.tune_end},
        {"largesse_far_memory", (void **)&library.far_memory}, {"largesse_limit", (void **)&library.limit},
        {"largesse_pin", (void **)&library.pin},
        {"largesse_refusal", (void **)&library.refusal}, {"largesse_cycles_now", (void **)&library.cycles_now},
        {"largesse_cycles_to_ns", (void **)&library.cycles_to_ns},
        {"largesse_cycles_per_second", (void **)&library.cycles_per_second}, {"largesse_cpus", (void **)&library.cpus},
        {"largesse_nodes", (void **)&library.nodes}, {"largesse_distance", (void **)&library.distance},
        {"largesse_dsum", (void **)&library.of_one[0]}, {"largesse_dsumsq", (void **)&library.of_one[1]},
        {"largesse_dnrm2", (void **)&library.of_one[2]}, {"largesse_dasum", (void **)&library.of_one[3]},
        {"largesse_damax", (void **)&library.of_one[4]}, {"largesse_damin", (void **)&library.of_one[5]},
        {"largesse_set_threads", (void **)&library.set_threads}, {"largesse_threads", (void **)&library.threads},
        {"largesse_ddot", (void **)&library.dot}, {"largesse_zdotu", (void **)&library.complex_dot[0]},
        {"largesse_zdotc", (void **)&library.complex_dot[1]}, {"largesse_daxpy", (void **)&library.axpy},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        *needed[i].at = symbol(needed[i].name);
        if (!*needed[i].at)
            return mkString("liblargesse.so lacks a control call: install it and this package from one release");
    }
    library.found = 1;
    return R_NilValue;
#endif
}

/* Loads `path` globally and for good. Returns NULL, or the loader's message. */
static SEXP load_library(SEXP path)
{
#ifdef __linux__
    if (dlopen(translateChar(STRING_ELT(path, 0)), RTLD_NOW | RTLD_GLOBAL)) return R_NilValue;
    return mkString(dlerror());
#else
    (void)path;
    return mkString("largesse serves Linux only");
#endif
}

/* Returns the path of the library in use. */
static SEXP library_path(void)
{
#ifdef __linux__
    Dl_info info;
    void *here;
    memcpy(&here, &library.version, sizeof here);
    if (library.found && dladdr(here, &info) && info.dli_fname) return mkString(info.dli_fname);
#endif
    return ScalarString(NA_STRING);
}

/* Returns the reason why large pages cannot be used in this process, or NULL. */
static SEXP why_not(void)
{
    const char *why = library.why_not();
    return why ? mkString(why) : R_NilValue;
}

static SEXP enable(SEXP on) { return ScalarInteger(library.enable(asLogical(on))); }

/* Converts a size; -1 is the largest one, because R has no 64-bit integer and 2^64 - 1 is not a double. */
static uint64_t bytes(SEXP x)
{
    double value = asReal(x);
    return value < 0 ? UINT64_MAX : (uint64_t)value;
}

static SEXP set_limits(SEXP min, SEXP max) { return ScalarInteger(library.set_limits(bytes(min), bytes(max))); }

static SEXP trim(SEXP keep) { return ScalarReal((double)library.trim((size_t)bytes(keep))); }

/* Marks the beginning or end of the compute core `name`. */
static SEXP tune(SEXP name, SEXP begins)
{
    const char *id = translateCharUTF8(STRING_ELT(name, 0));
    return ScalarInteger(asLogical(begins) ? library.tune_begin(id) : library.tune_end(id));
}

/* Returns the string, or NULL for the library's default. */
static const char *text(SEXP x) { return isNull(x) ? NULL : translateChar(STRING_ELT(x, 0)); }

/* Starts far memory. Returns NULL, or the reason why it cannot. */
static SEXP far_memory(SEXP local, SEXP store, SEXP page_size)
{
    const char *why = library.far_memory(text(local), text(store), text(page_size));
    return why ? mkString(why) : R_NilValue;
}

/* Sets a limit on the memory of the process. Returns NULL, or the reason why it cannot. */
static SEXP memory_limit(SEXP limit, SEXP store)
{
    const char *why = library.limit(text(limit), text(store));
    return why ? mkString(why) : R_NilValue;
}

/* Sets the number of threads unless it is NULL, and returns the number that a long vector would use. */
static SEXP threads(SEXP number)
{
    if (!isNull(number)) library.set_threads(asInteger(number));
    return ScalarInteger(library.threads());
}

/* Binds the process, or this thread, to processors. Returns NULL, or the reason why it cannot. */
static SEXP pin(SEXP cpus, SEXP process)
{
    if (library.pin(translateChar(STRING_ELT(cpus, 0)), asLogical(process)) == LARGESSE_OK) return R_NilValue;
    const char *why = library.refusal();
    return mkString(why ? why : "liblargesse.so refused");
}

/* Evaluates `expr` in `frame` and returns ticks and nanoseconds of each evaluation, and the last value. */
static SEXP cycles(SEXP expr, SEXP frame, SEXP times)
{
    static const char *const names[] = {"ticks", "ns", "value"};
    R_xlen_t n = (R_xlen_t)asReal(times);
    SEXP ticks = PROTECT(allocVector(REALSXP, n)), ns = PROTECT(allocVector(REALSXP, n));
    SEXP value = R_NilValue;
    PROTECT_INDEX at;
    PROTECT_WITH_INDEX(value, &at);
    library.cycles_now(); /* the first call of a process calibrates */
    for (R_xlen_t i = 0; i < n; i++) {
        uint64_t began = library.cycles_now();
        value = eval(expr, frame);
        uint64_t spent = library.cycles_now() - began;
        REPROTECT(value, at);
        REAL(ticks)[i] = (double)spent;
        REAL(ns)[i] = library.cycles_to_ns(spent);
    }
    SEXP list = PROTECT(allocVector(VECSXP, 3)), labels = PROTECT(allocVector(STRSXP, 3));
    for (int i = 0; i < 3; i++) SET_STRING_ELT(labels, i, mkChar(names[i]));
    setAttrib(list, R_NamesSymbol, labels);
    SET_VECTOR_ELT(list, 0, ticks), SET_VECTOR_ELT(list, 1, ns), SET_VECTOR_ELT(list, 2, value);
    UNPROTECT(5);
    return list;
}

static SEXP named(const char *const *names, int n)
{
    SEXP list = PROTECT(allocVector(VECSXP, n)), labels = PROTECT(allocVector(STRSXP, n));
    for (int i = 0; i < n; i++) SET_STRING_ELT(labels, i, mkChar(names[i]));
    setAttrib(list, R_NamesSymbol, labels);
    UNPROTECT(2);
    return list;
}

/* Returns largesse_stats as a list: numbers, then the causes with their counts and advice. */
static SEXP stats(void)
{
    largesse_stats_t now;
    memset(&now, 0, sizeof now);
    now.struct_size = sizeof now;
    int result = library.stats(&now);
    if (result != LARGESSE_OK) return ScalarInteger(result);

    const struct { const char *name; double value; } field[] = {
        {"version", library.version()}, {"enabled", now.enabled}, {"hooked", now.hooked},
        {"pages", now.pages}, {"header", now.header},
        {"min_bytes", now.min_bytes}, {"max_bytes", now.max_bytes},
        {"large_page_bytes", now.large_page_bytes}, {"blocks", now.blocks},
        {"live_bytes", now.live_bytes}, {"peak_bytes", now.peak_bytes},
        {"allocations", now.allocations}, {"frees", now.frees}, {"reused", now.reused},
        {"retained_bytes", now.retained_bytes}, {"returned_bytes", now.returned_bytes},
        {"far_local_bytes", now.far_local_bytes}, {"far_resident_bytes", now.far_resident_bytes},
        {"far_stored_bytes", now.far_stored_bytes}, {"far_mapped_bytes", now.far_mapped_bytes},
        {"far_set_bytes", now.far_set_bytes}, {"far_faults", now.far_faults}, {"far_fills", now.far_fills},
        {"far_prefetched", now.far_prefetched}, {"far_prefetch_hits", now.far_prefetch_hits}, {"far_evictions", now.far_evictions},
        {"far_write_backs", now.far_write_backs}, {"far_bytes_in", now.far_bytes_in},
        {"far_bytes_out", now.far_bytes_out}, {"far_wait_seconds", 1e-9 * now.far_wait_ns},
    };
    enum { FIELDS = sizeof field / sizeof *field };
    const char *names[FIELDS + 3];
    for (int i = 0; i < FIELDS; i++) names[i] = field[i].name;
    names[FIELDS] = "cause", names[FIELDS + 1] = "count", names[FIELDS + 2] = "advice";

    SEXP list = PROTECT(named(names, FIELDS + 3));
    for (int i = 0; i < FIELDS; i++) SET_VECTOR_ELT(list, i, ScalarReal(field[i].value));
    size_t causes = library.not_granted(NULL, 0);
    uint64_t *counts = (uint64_t *)R_alloc(causes, sizeof *counts);
    library.not_granted(counts, causes);
    SEXP cause = allocVector(STRSXP, (R_xlen_t)causes);
    SET_VECTOR_ELT(list, FIELDS, cause);
    SEXP count = allocVector(REALSXP, (R_xlen_t)causes);
    SET_VECTOR_ELT(list, FIELDS + 1, count);
    SEXP advice = allocVector(STRSXP, (R_xlen_t)causes);
    SET_VECTOR_ELT(list, FIELDS + 2, advice);
    for (uint32_t i = 0; i < causes; i++) {
        const char *name = library.cause_name(i), *words = library.cause_advice(i);
        SET_STRING_ELT(cause, i, name ? mkChar(name) : NA_STRING);
        SET_STRING_ELT(advice, i, words ? mkChar(words) : NA_STRING);
        REAL(count)[i] = (double)counts[i];
    }
    UNPROTECT(1);
    return list;
}

static const char *kind_word(uint32_t kind)
{
    static const char *const words[] = {"unknown", "thp", "hugetlb", "small", "unknown", "mixed"};
    return kind < sizeof words / sizeof *words ? words[kind] : words[0];
}

/* Returns every live block as the columns of a data frame, or NULL if there is none. */
static SEXP blocks(void)
{
    size_t room = 0, there = library.blocks(NULL, 0);
    largesse_block_t *block = NULL;
    while (there > room) { /* allocating the columns may add a block */
        room = there + 8;
        block = (largesse_block_t *)R_alloc(room, sizeof *block);
        block[0].struct_size = sizeof *block;
        there = library.blocks(block, room);
        if (there == (size_t)-1) {
            error("the library refused the request for its blocks: install it and this package from one release");
        }
    }
    if (there == 0) return R_NilValue;

    const char *names[] = {"address", "size", "kind", "large_bytes", "node", "exact"};
    R_xlen_t n = (R_xlen_t)there;
    SEXP list = PROTECT(named(names, 6));
    SEXP address = allocVector(STRSXP, n); SET_VECTOR_ELT(list, 0, address);
    SEXP size = allocVector(REALSXP, n);   SET_VECTOR_ELT(list, 1, size);
    SEXP kind = allocVector(STRSXP, n);    SET_VECTOR_ELT(list, 2, kind);
    SEXP large = allocVector(REALSXP, n);  SET_VECTOR_ELT(list, 3, large);
    SEXP node = allocVector(INTSXP, n);    SET_VECTOR_ELT(list, 4, node);
    SEXP exact = allocVector(LGLSXP, n);   SET_VECTOR_ELT(list, 5, exact);
    for (R_xlen_t i = 0; i < n; i++) {
        char hex[2 + 16 + 1];
        snprintf(hex, sizeof hex, "0x%llx", (unsigned long long)block[i].address);
        SET_STRING_ELT(address, i, mkChar(hex));
        REAL(size)[i] = (double)block[i].size;
        char both[2 * sizeof "hugetlb+"];
        snprintf(both, sizeof both, block[i].rest_bytes ? "%s+%s" : "%s", kind_word(block[i].kind),
                 kind_word(block[i].rest_kind));
        SET_STRING_ELT(kind, i, mkChar(both));
        REAL(large)[i] = (double)block[i].large_bytes;
        INTEGER(node)[i] = block[i].node < 0 ? NA_INTEGER : block[i].node;
        LOGICAL(exact)[i] = block[i].exact != 0;
    }
    UNPROTECT(1);
    return list;
}

/* Applies kernel number `which` to a double vector. */
static SEXP of_one(SEXP which, SEXP x)
{
    return ScalarReal(library.of_one[asInteger(which)]((size_t)XLENGTH(x), REAL(x), 1));
}

/* Returns the inner product of two double or two complex vectors of the same length. */
static SEXP dot(SEXP x, SEXP y, SEXP conjugate)
{
    size_t n = (size_t)XLENGTH(x);
    if (TYPEOF(x) != CPLXSXP) return ScalarReal(library.dot(n, REAL(x), 1, REAL(y), 1));
    largesse_double_complex sum = library.complex_dot[asLogical(conjugate) != 0](
        n, (const largesse_double_complex *)COMPLEX(x), 1, (const largesse_double_complex *)COMPLEX(y), 1);
    Rcomplex result;
    memcpy(&result, &sum, sizeof result);
    return ScalarComplex(result);
}

/* Returns a * x + y as a new vector with the attributes of `y`. */
static SEXP axpy(SEXP a, SEXP x, SEXP y)
{
    SEXP result = PROTECT(duplicate(y));
    library.axpy((size_t)XLENGTH(x), asReal(a), REAL(x), 1, REAL(result), 1);
    UNPROTECT(1);
    return result;
}

/* Returns the columns of two data frames, the distances of all pairs of nodes, and the counter. */
static SEXP machine(void)
{
    static const char *const parts[] = {"cpu", "core", "package", "node", "permitted", "nodes", "cpus", "bytes",
                                        "free_bytes", "distances", "counter", "hertz"};
    size_t cpus = library.cpus(NULL, 0), nodes = library.nodes(NULL, 0);
    largesse_cpu_t *cpu = (largesse_cpu_t *)R_alloc(cpus + 1, sizeof *cpu);
    largesse_node_t *node = (largesse_node_t *)R_alloc(nodes + 1, sizeof *node);
    cpu[0].struct_size = sizeof *cpu, node[0].struct_size = sizeof *node;
    size_t now = library.cpus(cpu, cpus); /* processors may have gone offline */
    R_xlen_t m = (R_xlen_t)(now < cpus ? now : cpus);
    now = library.nodes(node, nodes);
    R_xlen_t n = (R_xlen_t)(now < nodes ? now : nodes);

    SEXP list = PROTECT(named(parts, 12)), column[10];
    for (int i = 0; i < 10; i++) {
        column[i] = allocVector(i == 4 ? LGLSXP : i == 7 || i == 8 ? REALSXP : INTSXP, i < 5 ? m : i < 9 ? n : n * n);
        SET_VECTOR_ELT(list, i, column[i]);
    }
    for (R_xlen_t i = 0; i < m; i++) {
        INTEGER(column[0])[i] = (int)cpu[i].cpu;
        /* UINT32_MAX: the kernel does not say. */
        INTEGER(column[1])[i] = cpu[i].core == UINT32_MAX ? NA_INTEGER : (int)cpu[i].core;
        INTEGER(column[2])[i] = cpu[i].package == UINT32_MAX ? NA_INTEGER : (int)cpu[i].package;
        INTEGER(column[3])[i] = cpu[i].node < 0 ? NA_INTEGER : cpu[i].node;
        LOGICAL(column[4])[i] = cpu[i].permitted != 0;
    }
    for (R_xlen_t i = 0; i < n; i++) {
        INTEGER(column[5])[i] = (int)node[i].node;
        INTEGER(column[6])[i] = (int)node[i].cpus;
        REAL(column[7])[i] = node[i].bytes == UINT64_MAX ? NA_REAL : (double)node[i].bytes;
        REAL(column[8])[i] = node[i].free_bytes == UINT64_MAX ? NA_REAL : (double)node[i].free_bytes;
        for (R_xlen_t j = 0; j < n; j++) {
            int distance = library.distance((int)node[i].node, (int)node[j].node);
            INTEGER(column[9])[i + j * n] = distance < 0 ? NA_INTEGER : distance;
        }
    }
    const char *counter = "";
    double hertz = library.cycles_per_second(&counter);
    SET_VECTOR_ELT(list, 10, mkString(counter));
    SET_VECTOR_ELT(list, 11, ScalarReal(hertz));
    UNPROTECT(1);
    return list;
}

#define CALL(name, arguments) {#name, (DL_FUNC)&name, arguments}
static const R_CallMethodDef calls[] = {
    CALL(find_library, 0), CALL(load_library, 1), CALL(library_path, 0), CALL(why_not, 0),
    CALL(enable, 1), CALL(set_limits, 2), CALL(trim, 1), CALL(tune, 2), CALL(far_memory, 3),
    CALL(memory_limit, 2), CALL(stats, 0),
    CALL(blocks, 0), CALL(of_one, 2), CALL(dot, 3), CALL(axpy, 3), CALL(threads, 1),
    CALL(pin, 2), CALL(cycles, 3), CALL(machine, 0), {NULL, NULL, 0}
};

void R_init_largesse(DllInfo *dll)
{
    R_registerRoutines(dll, NULL, calls, NULL, NULL);
    R_useDynamicSymbols(dll, FALSE);
    R_forceSymbols(dll, TRUE);
}
