//! Reserves, commits and places memory pages: the only crate that asks the kernel for memory.
//!
//! # Picture
//! ```text
//!   Reserved::new ──► address space ──commit──► usable, zero ──purge──► usable, zero again
//!                          ▲                        │
//!                          └───────decommit─────────┘        drop ──► (kernel)
//! ```
//! # Knows / does not know
//! The crate knows page sizes and system calls: reserving, committing, transparent huge pages, hugetlb, placement on
//! NUMA nodes, locking, and residency by page size. It knows nothing of block sizes, threads, stores or the
//! environment.
//! # Invariants
//! 1. This crate never allocates from the Rust heap (`no_std`, no `alloc`).
//! 2. Every length passed to a system call is a whole number of pages, except in the functions `raw_*`, which pass on
//!    a program's call and the kernel's answer.
//! 3. This crate advises, places or drops only memory that it mapped itself, or that the memory's owner passes in
//!    (`mapping.rs`, [`placement`]).
#![no_std]

mod area;
#[cfg(all(test, not(miri)))]
mod child;
#[cfg(not(miri))]
pub mod descriptors;
mod error;
#[cfg(not(miri))]
pub mod fault;
mod mapping;
mod own;
pub mod placement;
mod range;
#[cfg(not(miri))]
pub mod references;
pub mod residency;
#[cfg(not(miri))]
pub mod shared;
mod signpost;
mod sys;
mod system;
mod table;
mod wait;

pub use area::Area;
pub use error::{MapError, MapOp};
pub use mapping::{
    advise_mapping, each_resident, forget, forget_all, inherited, is_mapped, make_anonymous, map_aligned,
    mapping_at, raw_madvise, raw_mlock, raw_mmap, raw_mprotect, raw_mremap, raw_munmap, raw_pkey_mprotect,
    unmap_own, writable,
};
pub use own::own_bytes;
pub use range::{Reserved, SPAN};
pub use signpost::{publish, share_file};
#[cfg(not(miri))]
pub use sys::{raw_call, system_call};
pub use system::{
    Offer, Thp, base_page, large_page, large_pages, medium_pages, physical_memory, thp_disabled_for_process,
    thp_mode,
};
pub use table::{Table, Zeroed};
pub use wait::{now_seconds, thread_handle, thread_id, wait_while, wait_while_for, wake_one};

/// The kind of pages that back a committed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Transparent huge pages are requested by `madvise`.
    Thp,
    /// 2 MiB pages are taken from the hugetlb pool.
    Hugetlb,
    /// 1 GiB pages are taken from the hugetlb pool.
    Hugetlb1G,
    /// The largest size that multi-size THP offers below 2 MiB is used. The range is advised as for [`PageKind::Thp`].
    Medium,
    /// Only base pages are used.
    Small,
}

/// The NUMA policy of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each page lies on the node of the processor that touches it first.
    FirstTouch,
    /// Pages are distributed round-robin over every node with memory.
    Interleave,
    /// Every page lies on this node, without fallback to others.
    Node(u32),
}
