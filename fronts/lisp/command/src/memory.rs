//! Chooses size, page kind and address range of the Lisp's heap.

use clap::ValueEnum;
use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use largesse_paging::{Amount, FarConfig};
use largesse_terminal::word;

/// The kind of pages that the heap asks for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum HeapPages {
    /// Transparent huge pages
    Thp,
    /// 2 MiB pages of the hugetlb pool
    Hugetlb,
    /// 64 KiB pages, where the kernel has them
    #[value(name = "64k")]
    Medium,
    /// Base pages only, for comparisons
    #[value(name = "4k", hide = true)]
    Small,
}

/// Reads `--heap`, in bytes. The error is the rest of a sentence that begins with `text`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    largesse_settings::heap_size(text).map_err(|why| format!("{} {why}", word(text)))
}

/// Returns the default limit of the heap in bytes: half of physical memory, or with far memory four
/// times physical memory.
pub(super) fn default_limit(far: bool) -> usize {
    let machine = largesse_pages::physical_memory();
    if far { machine * 4 } else { machine / 2 }
}

/// Bytes of garbage after which the first collection begins, so that the memory of a small program does not double.
pub(super) const FLOOR: usize = 24 << 20;

/// Returns the least number of bytes allocated between two collections: an eighth of local memory, so that new
/// objects stay resident. `None` leaves the heap's default.
pub(super) fn floor(far: &FarConfig) -> Option<usize> {
    match far.local {
        Amount::Bytes(bytes) => Some((bytes / 8).clamp(1 << 20, GcSettings::default().floor)),
        Amount::Percent(_) => None,
    }
}

/// Reserves address space for a heap of at most `limit` bytes.
pub(super) fn reserve(limit: usize) -> Result<Reserved, String> {
    let bytes = limit.next_multiple_of(SPAN) + 16 * SPAN;
    Reserved::new(bytes, SPAN).map_err(|cause| format!("no address space for {bytes} bytes: {cause:?}"))
}

/// Makes `range` a backing that is wholly in local memory.
pub(super) fn near(range: Reserved, pages: HeapPages) -> NearMemory {
    let kind = match pages {
        HeapPages::Thp => PageKind::Thp,
        HeapPages::Hugetlb => PageKind::Hugetlb,
        HeapPages::Medium => PageKind::Medium,
        HeapPages::Small => PageKind::Small,
    };
    NearMemory::new(range, kind, Placement::FirstTouch, false)
}
