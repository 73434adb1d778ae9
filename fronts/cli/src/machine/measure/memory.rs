//! Allocates memory to measure, on one kind of page and one node.

use largesse_pages::residency::{Answer, Inspector};
use largesse_pages::{MapError, Offer, PageKind, Placement, Reserved, SPAN, placement};
use serde::Serialize;

/// A kind of page to measure, from small to large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Rung {
    #[serde(rename = "4k")]
    Small,
    #[serde(rename = "64k")]
    Medium,
    #[serde(rename = "thp")]
    Thp,
    #[serde(rename = "hugetlb")]
    Hugetlb,
    #[serde(rename = "hugetlb-1g")]
    Hugetlb1G,
}

impl Rung {
    pub(crate) const ALL: [Rung; 5] = [Rung::Small, Rung::Medium, Rung::Thp, Rung::Hugetlb, Rung::Hugetlb1G];

    /// Returns the value of `--pages` that asks for this kind of page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Rung::Small => "4k",
            Rung::Medium => "64k",
            Rung::Thp => "thp",
            Rung::Hugetlb => "hugetlb",
            Rung::Hugetlb1G => "hugetlb-1g",
        }
    }

    /// Returns whether the kernel reports such pages as large.
    pub(crate) fn is_large(self) -> bool {
        matches!(self, Rung::Thp | Rung::Hugetlb | Rung::Hugetlb1G)
    }

    fn kind(self) -> PageKind {
        match self {
            Rung::Small => PageKind::Small,
            Rung::Medium => PageKind::Medium,
            Rung::Thp => PageKind::Thp,
            Rung::Hugetlb => PageKind::Hugetlb,
            Rung::Hugetlb1G => PageKind::Hugetlb1G,
        }
    }

    fn unit(self) -> usize {
        if self == Rung::Hugetlb1G { 1 << 30 } else { SPAN }
    }

    /// Returns whether the kernel's settings grant such pages to programs that ask; hugetlb pools have no such setting.
    pub(crate) fn offer(self) -> Offer {
        match self {
            Rung::Small | Rung::Hugetlb | Rung::Hugetlb1G => Offer::Given,
            Rung::Medium => largesse_pages::medium_pages(),
            Rung::Thp => largesse_pages::large_pages(),
        }
    }

    /// Returns the available bytes on such pages, at most `most`, or why there are none and which setting decides.
    /// `free` returns the number of free pages of a hugetlb pool, given the bytes of a page.
    pub(crate) fn room(self, most: u64, offer: Offer, free: impl Fn(u64) -> u64) -> Result<u64, String> {
        let pool = |size: u64, name: &str, folder: &str| match free(size) * size {
            0 => Err(format!(
                "the pool of {name} pages is empty (/sys/kernel/mm/hugepages/{folder}/nr_hugepages)"
            )),
            bytes => Ok(bytes.min(most)),
        };
        let refused = |pages: &str, file: &str| {
            Err(format!(
                "the system gives no {pages} to programs that ask (/sys/kernel/mm/transparent_hugepage/{file})"
            ))
        };
        match (self, offer) {
            (Rung::Medium, Offer::Refused) => refused("pages of 64 KiB", "hugepages-64kB/enabled"),
            (Rung::Thp, Offer::Refused) => refused("large pages", "enabled"),
            (Rung::Small | Rung::Medium | Rung::Thp, _) => Ok(most),
            (Rung::Hugetlb, _) => pool(2 << 20, "2 MiB", "hugepages-2048kB"),
            (Rung::Hugetlb1G, _) => pool(1 << 30, "1 GiB", "hugepages-1048576kB"),
        }
    }
}

/// A range of memory to measure.
#[derive(Debug)]
pub(crate) struct TestMemory {
    range: Reserved,
}

impl TestMemory {
    /// Maps at least `bytes` on pages of kind `rung`, placed on `node` if given, without touching them.
    pub(crate) fn new(bytes: usize, rung: Rung, node: Option<u32>) -> Result<TestMemory, MapError> {
        let len = bytes.next_multiple_of(rung.unit());
        let range = Reserved::new(len, rung.unit())?;
        range.commit(0, len, rung.kind())?;
        if let Some(node) = node {
            range.place(0, len, Placement::Node(node))?;
        }
        Ok(TestMemory { range })
    }

    /// Returns the whole range as words.
    pub(crate) fn words(&mut self) -> &mut [u64] {
        let count = self.range.len() / size_of::<u64>();
        // SAFETY: the whole range was committed (readable, writable, zero), it is aligned to a page, and it is borrowed
        // as long as the slice.
        unsafe { core::slice::from_raw_parts_mut(self.range.start().as_ptr().cast(), count) }
    }

    /// Returns the share of the range that is on large pages, or `None` if the kernel cannot tell.
    pub(crate) fn large_share(&self) -> Option<f64> {
        let seen = match Inspector::open(None).ok()?.ask(self.start() as u64, self.range.len() as u64) {
            Answer::Exact(seen) => seen,
            Answer::NotPerAddress => return None,
        };
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        Some(seen.large as f64 / self.range.len() as f64)
    }

    /// Returns whether every page of the first `bytes` is in memory, on `node` if given. Pages that were never written
    /// share one page of zeros, so that reads of them run at the speed of a cache.
    pub(crate) fn is_there(&self, bytes: usize, node: Option<u32>) -> bool {
        let mut there = true;
        let look = &mut |_, on: Option<u32>| there &= on.is_some() && (node.is_none() || on == node);
        let address = self.range.start().as_ptr().cast();
        // A filter of system calls may forbid the query.
        placement::each_node(address, bytes, look).is_err() || there
    }

    fn start(&self) -> usize {
        self.range.start().as_ptr().addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_resident_after_writes() {
        let mut memory = TestMemory::new(3 << 20, Rung::Small, None).unwrap();
        assert_eq!(memory.words().len() * 8, 4 << 20);
        assert_eq!(memory.words()[1000], 0);
        assert!(!memory.is_there(4 << 20, None), "a read does not count");
        memory.words().fill(1);
        assert!(memory.is_there(4 << 20, None) && memory.is_there(4 << 20, Some(0)));
        assert!(!memory.is_there(4 << 20, Some(7)));
    }

    #[track_caller]
    fn check(rung: Rung, offer: Offer, free: u64, want: Result<u64, &str>) {
        let room = rung.room(1 << 30, offer, |_| free);
        assert_eq!(room.as_ref().map_err(String::as_str).copied(), want, "{rung:?}");
    }

    #[test]
    fn refused_pages_name_the_setting() {
        check(Rung::Small, Offer::Given, 0, Ok(1 << 30));
        check(Rung::Medium, Offer::Given, 0, Ok(1 << 30));
        let why = "the system gives no pages of 64 KiB to programs that ask \
                   (/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled)";
        check(Rung::Medium, Offer::Refused, 0, Err(why));
        check(Rung::Thp, Offer::Given, 0, Ok(1 << 30));
        let why = "the system gives no large pages to programs that ask \
                   (/sys/kernel/mm/transparent_hugepage/enabled)";
        check(Rung::Thp, Offer::Refused, 0, Err(why));
    }

    #[test]
    fn pool_limits_room() {
        let why = "the pool of 2 MiB pages is empty (/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)";
        check(Rung::Hugetlb, Offer::Given, 0, Err(why));
        check(Rung::Hugetlb, Offer::Given, 8, Ok(16 << 20));
        let why =
            "the pool of 1 GiB pages is empty (/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)";
        check(Rung::Hugetlb1G, Offer::Given, 0, Err(why));
        check(Rung::Hugetlb1G, Offer::Given, 2, Ok(1 << 30));
    }
}
