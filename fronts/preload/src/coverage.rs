//! Memory of the program that `--local` does not bound, because it is not far memory.

use crate::serve;
use crate::start::{self, warn};
use core::fmt::{self, Display};
use core::ops::Range;
use largesse_pager::Count;

/// Less than this is not spoken of, nor less than a quarter of the bound.
const WORTH_A_LINE: u64 = 64 << 20;

/// Resident bytes outside far memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uncovered {
    /// In private mappings made without reserving memory, as allocators and virtual machines make theirs.
    reserved: u64,
    /// In anonymous shared mappings.
    shared: u64,
    /// In the C library's heap and the main thread's stack.
    small: u64,
    /// In other private mappings.
    other: u64,
}

impl Uncovered {
    /// Reads the text of `/proc/self/smaps`; `is_far` says which addresses are far memory.
    fn read(smaps: &str, is_far: impl Fn(&Range<usize>) -> bool) -> Uncovered {
        let mut sums = Uncovered::default();
        let mut lines = smaps.lines().peekable();
        while let Some(header) = lines.next() {
            let Some(mapping) = Mapping::parse(header) else { continue };
            let (mut anonymous, mut resident, mut flags) = (0, 0, "");
            while let Some(line) = lines.next_if(|line| Mapping::parse(line).is_none()) {
                let kib =
                    |name: &str| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok();
                anonymous = kib("Anonymous:").unwrap_or(anonymous);
                resident = kib("Rss:").unwrap_or(resident);
                flags = line.strip_prefix("VmFlags:").unwrap_or(flags);
            }
            if is_far(&mapping.at) {
                continue;
            }
            let is_nameless = ["/dev/zero", "/SYSV"].iter().any(|start| mapping.name.starts_with(start));
            match mapping.name {
                _ if mapping.is_shared && is_nameless => sums.shared += resident << 10,
                _ if mapping.is_shared => {}
                "[heap]" | "[stack]" => sums.small += anonymous << 10,
                "" if flags.split(' ').any(|flag| flag == "nr") => sums.reserved += anonymous << 10,
                _ => sums.other += anonymous << 10,
            }
        }
        sums
    }

    fn all(&self) -> u64 {
        self.reserved + self.shared + self.small + self.other
    }

    /// Whether the sum is worth a line, given a bound of `local` bytes.
    fn is_much(&self, local: u64) -> bool {
        self.all() > WORTH_A_LINE.max(local / 4)
    }
}

impl Display for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bytes, what) in [
            (
                self.reserved,
                "in mappings that were only reserved (an allocator of its own, such as jemalloc, or a virtual machine)",
            ),
            (self.shared, "in shared mappings"),
            (self.small, "in small requests and the stack"),
            (self.other, "in other mappings"),
        ] {
            // A part of less than a sixteenth, such as the library's own tables, is left out.
            if bytes > 0 && bytes >= self.all() / 16 {
                write!(f, "{separator}{} MiB {what}", bytes >> 20)?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// The first line of a mapping.
struct Mapping<'a> {
    at: Range<usize>,
    is_shared: bool,
    name: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Mapping<'a>> {
        let (addresses, rest) = line.split_once(' ')?;
        let (start, end) = addresses.split_once('-')?;
        let at = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        let (permissions, rest) = rest.split_once(' ')?;
        // The offset, the device and the inode come before the name.
        let name = rest.splitn(4, ' ').nth(3).unwrap_or("").trim();
        Some(Mapping { at, is_shared: permissions.ends_with('s'), name })
    }
}

/// Says at the end of the program how much of its memory was not bounded, if that is much.
pub(crate) fn say() {
    let (Some(far), true) = (serve::far(), start::is_launched()) else { return };
    let Ok(smaps) = std::fs::read("/proc/self/smaps") else { return };
    let kernel = far.pager().kernel();
    let uncovered = Uncovered::read(&String::from_utf8_lossy(&smaps), |at| kernel.touches(at));
    let local = far.pager().counters.get(Count::LocalBytes);
    if uncovered.is_much(local) {
        warn(&format!(
            "{} MiB of this program's memory are not covered by --local, which is {} MiB now: {uncovered}",
            uncovered.all() >> 20,
            local >> 20
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SMAPS: &str = "\
00400000-00401000 r-xp 00000000 08:01 11 /usr/bin/a b
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd ex
10000000-20000000 rw-p 00000000 00:00 0 
Rss:              102400 kB
Anonymous:        102400 kB
VmFlags: rd wr mr nr
20000000-30000000 rw-p 00000000 00:00 0 
Rss:              409600 kB
Anonymous:        409600 kB
VmFlags: rd wr
30000000-38000000 rw-s 00000000 00:01 5 /dev/zero (deleted)
Rss:               20480 kB
Anonymous:             0 kB
VmFlags: rd wr sh
40000000-48000000 rw-p 00000000 00:00 0                          [heap]
Rss:                8192 kB
Anonymous:          8192 kB
VmFlags: rd wr
";

    #[test]
    fn memory_outside_of_far_ranges_is_counted_by_kind() {
        let uncovered = Uncovered::read(SMAPS, |at| at.start == 0x2000_0000);
        let want = Uncovered { reserved: 100 * MIB, shared: 20 * MIB, small: 8 * MIB, other: 0 };
        assert_eq!(uncovered, want);
        let words = uncovered.to_string();
        assert!(words.starts_with("100 MiB in mappings that were only reserved"), "{words}");
        assert!(
            words.ends_with("20 MiB in shared mappings, 8 MiB in small requests and the stack"),
            "{words}"
        );
    }

    #[test]
    fn little_is_not_worth_a_line() {
        let reserved = |mib: u64| Uncovered { reserved: mib * MIB, ..Uncovered::default() };
        for (mib, local_mib, want) in [(64, 64, false), (65, 64, true), (200, 1024, false), (257, 1024, true)]
        {
            assert_eq!(reserved(mib).is_much(local_mib * MIB), want, "{mib} MiB beside {local_mib} MiB");
        }
    }
}
