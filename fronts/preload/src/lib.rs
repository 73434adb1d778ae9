//! Exports the C names of `liblargesse.so` and serves them from the large-block heap.
//!
//! # Picture
//! ```text
//!   program ──malloc──► exports ──small──► next   (the C library; another allocator has all blocks)
//!      │                   ├─────small, with far memory or a limit──► small ─► SmallHeap
//!      │                   └─────large──► serve ─► Heap<HeapBacking>
//!      ├──mmap────────► mapping (advises large anonymous mappings)
//!      ├──munmap, …───► ranges (far memory)
//!      ├──process_vm_…► process_vm (pins far memory)
//!      ├──functions with a context (NumPy) ─► context_allocator ─► serve, or the allocator below
//!      ├──largesse_ddot, …► kernels (a thread pool shares long vectors)
//!      └──largesse_*──► control          start: options, fork handlers    helper: touches pages ahead
//!   R session ──ISM(TRUE)──► slots (patches libR.so's calls to the exports)
//! ```
//! A file uses those to its right and below it:
//! ```text
//!   start, control                                  called by the dynamic linker and the program
//!   slots::dlopen ─► exports, mapping; fork, report
//!   serve ─► make ─► new_heap ─► far ─► io          the heap, which the first large request makes
//!   serve ─► small ─► small_cache, callers          small blocks in spans of that heap
//!   helper, ranges, record, causes, next
//!   guard ─► heap, routing; settings, message       the state of the process
//! ```
//! # Knows / does not know
//! Knows C names, globals, settings and the dynamic linker. Does not know R, Python or MPI; how a
//! heap works belongs to `heaps/malloc`.
//! # Invariants
//! 1. The library never allocates from itself: Rust allocations come from `private`; a build with
//!    debug assertions aborts when our code enters the exported `malloc`.
//! 2. A pointer that does not belong to the heap is passed to the next allocator unchanged.
//! 3. No function unwinds, and messages go to standard error only.

#![expect(
    clippy::cast_possible_truncation,
    reason = "64-bit only: a u64 of ELF or of the C interface fits a usize"
)]

mod advised;
mod allocator;
mod answer;
mod atfork;
mod backing;
mod callers;
mod causes;
mod change_over;
mod context_allocator;
mod control;
mod coverage;
mod cycles;
mod dense_spans;
mod errno;
mod exhausted;
mod exports;
mod family;
mod far;
mod far_counters;
mod far_fork;
mod far_store;
mod fault_engine;
mod fork;
mod forked;
mod guard;
mod handed_out;
mod heap;
mod helper;
mod hooked;
mod in_progress;
#[cfg_attr(not(target_arch = "x86_64"), path = "io/unsupported.rs")]
mod io;
mod kernels;
mod last_thread;
mod late_filter;
mod leak;
mod limit;
mod limit_state;
mod limited;
mod lost;
mod make;
mod mapping;
mod memory_limit;
mod message;
mod near_again;
mod near_calls;
mod near_mappings;
mod near_statics;
mod new_heap;
mod next;
mod no_filter;
mod notices;
mod options;
mod other_threads;
mod own_stacks;
mod pinned;
mod placement;
mod plain;
mod private;
mod process_vm;
mod ranges;
mod record;
mod refusal;
mod refused;
mod report;
mod rlimit;
mod routing;
mod samples;
mod serve;
mod service_thread;
mod session;
mod settings;
mod shortage;
mod signals;
mod signpost;
mod slots;
mod small;
mod small_cache;
mod small_heap;
mod smaps;
mod spill;
mod start;
mod statics;
mod status;
mod symbol;
#[cfg(target_arch = "x86_64")]
mod symbol_lookup;
#[cfg(target_arch = "x86_64")]
mod thread_stack;
mod thread_start;
mod timeline;
mod topology;
mod tune;
mod user_memory;
mod waits;
mod wanted;
