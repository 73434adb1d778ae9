//! What is really resident, and on which page size.
//!
//! `PAGEMAP_SCAN` (kernel 6.7) answers per address and needs no privilege for one's own process.
//! Where it is missing the answer is [`Answer::NotPerAddress`], and the caller may fall back to
//! `/proc/PID/smaps`, which speaks per mapping.

use crate::sys;

/// Bytes of a range that are resident, and that are on large pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// In memory.
    pub resident: u64,
    /// Of these, on pages mapped as large ones (THP or hugetlb).
    pub large: u64,
    /// NUMA node of the first resident page.
    pub node: Option<u32>,
}

/// The result of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Read page by page.
    Exact(Residency),
    /// This kernel cannot say per address.
    NotPerAddress,
}

/// An open view of one process's page tables.
#[derive(Debug)]
pub struct Inspector {
    file: sys::Descriptor,
    pid: i32,
}

impl Inspector {
    /// Look at process `pid`, or at this process when `None`. The error is an errno: `EACCES` or
    /// `EPERM` under ptrace rules, `ENOENT` when there is no such process.
    pub fn open(pid: Option<u32>) -> Result<Inspector, i32> {
        let file = sys::open_pagemap(pid)?;
        Ok(Inspector { file, pid: pid.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0) })
    }

    /// Ask about `[start, start + len)`; both are rounded outwards to base pages, and the result
    /// never exceeds `len`.
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
    fn touched_pages_are_resident_and_the_rest_is_not() {
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(0, 4 * SPAN, PageKind::Small).unwrap();
        let base = crate::base_page();
        // SAFETY: committed above.
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
