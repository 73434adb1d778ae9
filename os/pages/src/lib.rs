//! Pages: the only crate that asks the kernel for memory.
//!
//! # Picture
//! ```text
//!   Reserved::new ──► address space ──commit──► usable, zero ──purge──► usable, zero again
//!                          ▲                        │
//!                          └───────decommit─────────┘        drop ──► (kernel)
//! ```
//! # Knows / does not know
//! Knows page sizes and system calls: reserve, commit, transparent huge pages, hugetlb, placement on
//! nodes, locking, what is really resident and on which page size. Does not know block sizes,
//! threads, stores or the environment.
//! # Invariants
//! 1. This crate never allocates from the Rust heap (`no_std`, no `alloc`).
//! 2. Every length that reaches a system call is a whole number of pages, but for `raw_*`, which answer as
//!    the kernel does.
//! 3. Nothing is advised, placed or dropped that this crate did not map, except what its owner hands in
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
pub mod shared;
mod signpost;
mod sys;
mod system;
mod table;
pub mod residency;
mod wait;

pub use area::Area;
pub use error::{MapError, MapOp};
pub use mapping::{
    advise_mapping, each_resident, forget, forget_all, inherited, is_mapped, make_anonymous, map_aligned,
    mapping_at, raw_madvise, raw_mlock, raw_mmap, raw_mprotect, raw_mremap, raw_munmap, unmap_own, writable,
};
pub use own::own_bytes;
pub use range::{Reserved, SPAN};
pub use signpost::{publish, share_file};
#[cfg(not(miri))]
pub use sys::raw_call;
pub use system::{
    Offer, Thp, base_page, large_page, large_pages, medium_pages, physical_memory, thp_disabled_for_process,
    thp_mode,
};
pub use table::{Table, Zeroed};
pub use wait::{now_seconds, thread_handle, thread_id, wait_while, wait_while_for, wake_one};

/// How a committed range gets its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Transparent huge pages, by advice.
    Thp,
    /// 2 MiB pages of the hugetlb pool.
    Hugetlb,
    /// 1 GiB pages of the hugetlb pool.
    Hugetlb1G,
    /// Whatever multi-size THP offers below 2 MiB: advised like [`PageKind::Thp`].
    Medium,
    /// Base pages only.
    Small,
}

/// Where memory is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the node of the processor that touches it first.
    FirstTouch,
    /// Page by page over every node.
    Interleave,
    /// On one node, and nowhere else.
    Node(u32),
}
