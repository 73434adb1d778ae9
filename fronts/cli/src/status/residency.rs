//! Reads the residency of ranges of another process: bytes in memory, bytes on large pages, NUMA node. Linux 6.7 and
//! later count by page; on earlier kernels a range gets its share of the bytes of its mapping.

use super::process::{MOST_MAPPINGS, each_line, mapping};
use core::ops::Range;
use largesse_pages::residency::{Answer, Inspector};
use std::cell::OnceCell;
use std::fs::File;
use std::io;

/// The residency of one range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RangeResidency {
    /// Bytes in memory, or `None` if unknown.
    pub(super) resident: Option<u64>,
    /// Bytes on large pages, or `None` if unknown.
    pub(super) large: Option<u64>,
    /// NUMA node of the first page in memory.
    pub(super) node: Option<u32>,
    /// Whether the bytes were counted by page.
    pub(super) exact: bool,
}

/// Reads the residency of ranges of one process.
#[derive(Debug)]
pub(super) struct ResidencyReader {
    pid: u32,
    inspector: Option<Inspector>,
    shares: OnceCell<Vec<Share>>,
    /// Why the bytes in memory of the mappings are unknown.
    unread: OnceCell<String>,
}

/// A mapping with its bytes in memory and on large pages.
#[derive(Debug, PartialEq, Eq)]
struct Share {
    at: Range<u64>,
    resident: u64,
    large: u64,
}

impl ResidencyReader {
    pub(super) fn on(pid: u32) -> ResidencyReader {
        ResidencyReader {
            pid,
            inspector: Inspector::open(Some(pid)).ok(),
            shares: OnceCell::new(),
            unread: OnceCell::new(),
        }
    }

    /// Returns why the residency of ranges is unknown, if a file could not be read.
    pub(super) fn unread(self) -> Option<String> {
        self.unread.into_inner()
    }

    /// Returns the residency of `[start, start + len)`, which must lie in user space.
    pub(super) fn look(&self, start: u64, len: u64) -> RangeResidency {
        match self.inspector.as_ref().map(|inspector| inspector.ask(start, len)) {
            Some(Answer::Exact(found)) => RangeResidency {
                resident: Some(found.resident),
                large: Some(found.large),
                node: found.node,
                exact: true,
            },
            _ => spread(self.shares.get_or_init(|| self.shares()), start, len),
        }
    }
}

impl ResidencyReader {
    fn shares(&self) -> Vec<Share> {
        let file = format!("/proc/{}/smaps", self.pid);
        File::open(&file).and_then(shares).unwrap_or_else(|error| {
            // This function is called once, so that the cell is empty.
            let _ = self.unread.set(format!("{file} cannot be read ({error})"));
            Vec::new()
        })
    }
}

/// Estimates the residency of a range from its mappings, as if their bytes in memory and on large pages were spread
/// evenly.
fn spread(shares: &[Share], start: u64, len: u64) -> RangeResidency {
    let end = start.saturating_add(len);
    let mut seen = RangeResidency::default();
    // The kernel lists mappings by address.
    let first = shares.partition_point(|share| share.at.end <= start);
    for share in shares[first..].iter().take_while(|share| share.at.start < end) {
        let overlap = share.at.end.min(end).saturating_sub(share.at.start.max(start));
        if overlap > 0 {
            let whole = share.at.end - share.at.start;
            seen.resident =
                Some(seen.resident.unwrap_or(0).saturating_add(part(share.resident, overlap, whole)));
            seen.large = Some(seen.large.unwrap_or(0).saturating_add(part(share.large, overlap, whole)));
        }
    }
    seen
}

fn part(bytes: u64, overlap: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(overlap) / u128::from(whole)).unwrap_or(u64::MAX)
}

/// Reads the file `smaps` line by line. At most [`MOST_MAPPINGS`] mappings are kept.
fn shares(smaps: impl io::Read) -> io::Result<Vec<Share>> {
    let mut shares: Vec<Share> = Vec::new();
    let mut is_full = false;
    each_line(smaps, |line| {
        if let Some((at, _)) = mapping(line) {
            is_full = shares.len() == MOST_MAPPINGS;
            if !is_full {
                shares.push(Share { at, resident: 0, large: 0 });
            }
        } else if let Some(share) = shares.last_mut().filter(|_| !is_full)
            && let Some((name, value)) = line.split_once(':')
        {
            share.add(name, value);
        }
    })?;
    Ok(shares)
}

impl Share {
    /// Adds the value of a line of `smaps`, which has this name.
    fn add(&mut self, name: &str, value: &str) {
        let kb: u64 = value.trim().trim_end_matches("kB").trim().parse().unwrap_or(0);
        let bytes = kb.saturating_mul(1024);
        match name {
            "Rss" => self.resident = self.resident.saturating_add(bytes),
            "AnonHugePages" => self.large = self.large.saturating_add(bytes),
            // Rss excludes hugetlb pages.
            "Private_Hugetlb" | "Shared_Hugetlb" => {
                self.resident = self.resident.saturating_add(bytes);
                self.large = self.large.saturating_add(bytes);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
10000000-10400000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\n\
Rss:                4096 kB\n\
AnonHugePages:      2048 kB\n\
VmFlags: rd wr mr mw me ac hg\n\
20000000-20200000 rw-p 00000000 00:0f 7                  /anon_hugepage (deleted)\n\
Rss:                   0 kB\n\
Private_Hugetlb:    2048 kB\n";

    #[track_caller]
    fn check(start: u64, len: u64, resident: Option<u64>, large: Option<u64>) {
        let seen = spread(&shares(SMAPS.as_bytes()).expect("text"), start, len);
        assert_eq!((seen.resident, seen.large, seen.exact), (resident, large, false));
    }

    #[test]
    fn old_kernels_give_mapping_share() {
        let mib = |count: u64| Some(count << 20);
        check(0x1000_0000, 4 << 20, mib(4), mib(2));
        check(0x1020_0000, 2 << 20, mib(2), mib(1));
        check(0x2000_0000, 2 << 20, mib(2), mib(2));
        check(0x1030_0000, 0x1000_0000, Some(3 << 20), Some((2 << 20) + (1 << 19)));
        check(0x5000_0000, 1 << 20, None, None);
        check(u64::MAX, u64::MAX, None, None);
    }
}
