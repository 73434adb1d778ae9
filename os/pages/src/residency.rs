//! Reads which of a process's pages are resident, and how large they are.
//!
//! `PAGEMAP_SCAN` (kernel 6.7) answers per page and needs no privilege for the own process. Without it the answer is
//! [`Answer::NotPerAddress`], and the caller may fall back to `/proc/PID/smaps`, which answers per mapping.

use crate::sys;

/// Number of resident bytes of a range, in total and on large pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Number of resident bytes, at most the range's length.
    pub resident: u64,
    /// Number of these bytes on pages mapped as large ones (THP or hugetlb).
    pub large: u64,
    /// NUMA node of the first resident page; `None` if no page is resident or the kernel does not say.
    pub node: Option<u32>,
}

/// Holds the result of [`Inspector::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The residency was read page by page.
    Exact(Residency),
    /// This kernel has no `PAGEMAP_SCAN`.
    NotPerAddress,
}

/// Reads one process's page tables through its open `/proc/PID/pagemap`.
#[derive(Debug)]
pub struct Inspector {
    file: sys::Descriptor,
    pid: i32,
}

impl Inspector {
    /// Opens the page tables of process `pid`, or of this process for `None`. The error is an errno: `EACCES` or
    /// `EPERM` under ptrace rules, `ENOENT` if there is no such process.
    pub fn open(pid: Option<u32>) -> Result<Inspector, i32> {
        let file = sys::open_pagemap(pid)?;
        Ok(Inspector { file, pid: pid.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0) })
    }

    /// Reads the residency of `[start, start + len)`, rounded outwards to base pages; no count exceeds `len`.
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

    fn extern_print(text: &str) {
        extern crate std;
        #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
        {
            std::println!("{text}");
        }
    }
}
