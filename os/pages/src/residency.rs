//! Reads which of a process's pages are resident, and how large they are.
//!
//! `PAGEMAP_SCAN` (Linux 6.7) answers for each page, and needs no privilege for the own process. Without it the answer
//! is [`Answer::NotPerAddress`], and the caller may fall back to `/proc/PID/smaps`, which answers for each mapping.

use crate::sys;

/// Number of resident bytes of a range, in total and on large pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Number of resident bytes, at most the range's length.
    pub resident: u64,
    /// Number of those resident bytes that are on large pages (THP or hugetlb).
    pub large: u64,
    /// NUMA node of the first resident page; `None` if no page is resident or the kernel does not say.
    pub node: Option<u32>,
}

/// The residency of a range of addresses, as far as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The residency was read page by page.
    Exact(Residency),
    /// The residency is not known page by page, because this kernel has no `PAGEMAP_SCAN`.
    NotPerAddress,
}

/// An open `/proc/PID/pagemap`, from which the residency of a process's pages is read.
#[derive(Debug)]
pub struct Inspector {
    file: sys::Descriptor,
    pid: i32,
}

impl Inspector {
    /// Opens the page tables of process `pid`, or of this process for `None`. The error is an errno: `EACCES` or
    /// `EPERM` if this process may not trace the other, `ENOENT` if there is no such process.
    pub fn open(pid: Option<u32>) -> Result<Inspector, i32> {
        let file = sys::open_pagemap(pid)?;
        Ok(Inspector { file, pid: pid.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0) })
    }

    /// Reads the residency of `[start, start + len)`, rounded outwards to base pages. No count exceeds `len`.
    #[must_use]
    pub fn ask(&self, start: u64, len: u64) -> Answer {
        let page = sys::base_page() as u64;
        let from = start & !(page - 1);
        let to = start.saturating_add(len).saturating_add(page - 1) & !(page - 1);
        let Ok((resident, large, first)) = sys::scan(&self.file, from, to) else {
            return Answer::NotPerAddress;
        };
        let node = first.and_then(|address| {
            let mut node = [-1];
            sys::nodes_of(self.pid, &[address], &mut node).ok()?;
            u32::try_from(node[0]).ok()
        });
        Answer::Exact(Residency { resident: resident.min(len), large: large.min(len), node })
    }

    /// Calls `f` with the start and the length of each part of `[start, start + len)` whose pages have contents, in
    /// memory or swapped out by the kernel. Both bounds must be whole pages. The error is an errno, `ENOTTY` before
    /// Linux 6.7.
    pub fn each_populated(&self, start: u64, len: u64, f: &mut dyn FnMut(u64, u64)) -> Result<(), i32> {
        sys::each_populated(&self.file, start, start.saturating_add(len), &mut |from, to| f(from, to - from))
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{PageKind, Reserved, SPAN};

    #[test]
    fn only_touched_pages_are_resident() {
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(0, 4 * SPAN, PageKind::Small).unwrap();
        let base = crate::base_page();
        // SAFETY: the range was committed above.
        unsafe {
            range.start().add(SPAN).write(1);
            range.start().add(SPAN + base).write(1);
        }
        let start = range.start().as_ptr() as u64;
        match Inspector::open(None).unwrap().ask(start, 4 * SPAN as u64) {
            Answer::Exact(seen) => {
                assert_eq!(seen.resident, 2 * base as u64);
                assert_eq!(seen.large, 0);
            }
            Answer::NotPerAddress => extern_print("skipped: no PAGEMAP_SCAN (kernel before 6.7)"),
        }
    }

    #[test]
    fn populated_parts_are_listed() {
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(0, 4 * SPAN, PageKind::Small).unwrap();
        let base = crate::base_page();
        for page in [0, 1, 512, 700] {
            // SAFETY: the range was committed above.
            unsafe { range.start().add(page * base).write(1) };
        }
        let start = range.start().as_ptr() as u64;
        let (mut parts, mut count) = ([(0, 0); 4], 0);
        let asked =
            Inspector::open(None).unwrap().each_populated(start, 4 * SPAN as u64, &mut |from, len| {
                parts[count] = ((from - start) / base as u64, len / base as u64);
                count += 1;
            });
        if asked.is_err() {
            return extern_print("skipped: no PAGEMAP_SCAN (kernel before 6.7)");
        }
        assert_eq!(parts[..count], [(0, 2), (512, 1), (700, 1)]);
    }

    fn extern_print(text: &str) {
        extern crate std;
        #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
        {
            std::println!("{text}");
        }
    }
}
