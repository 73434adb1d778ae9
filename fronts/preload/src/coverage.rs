//! Measures and reports memory of the program that `--local` does not bound and `--limit` cannot evict, because it is
//! not far memory.

use crate::notices::{Notice, warn_once, warn_uncovered};
use crate::slots::object::each_object;
use crate::{heap, limit_state, record};
use core::fmt::{self, Display};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_machine::unread;
use largesse_pager::Count;
use largesse_pages::own_bytes;
use std::path::Path;

/// Number of bytes outside far memory up to which nothing is reported; a quarter of the bound `--local`, where that is
/// more.
const UNREPORTED: u64 = 64 << 20;

/// Estimate of the bytes outside far memory for which the mappings were read last.
static READ_AT: AtomicU64 = AtomicU64::new(0);

/// Counts resident bytes outside far memory by kind of mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uncovered {
    /// Bytes in private mappings that were made with `MAP_NORESERVE`, and are not far: virtual machines have code there.
    reserved: u64,
    /// Bytes in anonymous shared mappings.
    shared: u64,
    /// Bytes in the C library's heap and the main thread's stack.
    small: u64,
    /// Bytes in static arrays of the program and of libraries, without those of this library.
    statics: u64,
    /// Bytes in other private mappings.
    other: u64,
}

impl Uncovered {
    /// Sums up the mappings in the text of `smaps`. `is_far` returns whether a range is far memory, `own` the resident
    /// bytes in a range that belong to the library. The writable `segments` of objects have their static arrays.
    fn read(
        smaps: &str,
        is_far: impl Fn(&Range<usize>) -> bool,
        own: impl Fn(&Range<usize>) -> u64,
        segments: &[Range<usize>],
    ) -> Uncovered {
        let is_static = |at: &Range<usize>| {
            segments.iter().any(|segment| segment.start < at.end && at.start < segment.end)
        };
        let mut sums = Uncovered::default();
        let mut lines = smaps.lines().peekable();
        let mut end = 0;
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
            // The kernel lists a mapping again that grew while it was read.
            let is_again = mapping.at.start < end;
            end = end.max(mapping.at.end);
            if is_again || is_far(&mapping.at) {
                continue;
            }
            let anonymous = (anonymous << 10).saturating_sub(own(&mapping.at));
            let is_nameless = ["/dev/zero", "/SYSV"].iter().any(|start| mapping.name.starts_with(start));
            match mapping.name {
                _ if mapping.is_shared && is_nameless => sums.shared += resident << 10,
                _ if mapping.is_shared => {}
                "[heap]" | "[stack]" => sums.small += anonymous,
                _ if is_static(&mapping.at) => sums.statics += anonymous,
                "" if flags.split(' ').any(|flag| flag == "nr") => sums.reserved += anonymous,
                _ => sums.other += anonymous,
            }
        }
        sums
    }

    fn all(&self) -> u64 {
        self.reserved + self.shared + self.small + self.statics + self.other
    }
}

impl Display for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bytes, what) in [
            (
                self.reserved,
                "in mappings without reserved memory (code of a virtual machine, stacks, or arenas of the C library)",
            ),
            (self.shared, "in shared mappings"),
            (self.small, "in small requests and the stack"),
            (self.statics, "in static arrays"),
            (self.other, "in other mappings"),
        ] {
            // Parts of less than a sixteenth are omitted.
            if bytes > 0 && bytes >= self.all() / 16 {
                write!(f, "{separator}{} MiB {what}", bytes >> 20)?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// A mapping, as its first line in `smaps` describes it.
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
        // The offset, the device and the inode precede the name.
        let name = rest.splitn(4, ' ').nth(3).unwrap_or("").trim();
        Some(Mapping { at, is_shared: permissions.ends_with('s'), name })
    }
}

/// Returns whether to report `bytes` outside far memory, given a bound of `local` bytes.
fn exceeds_threshold(bytes: u64, local: u64) -> bool {
    bytes > UNREPORTED.max(local / 4)
}

/// Estimates the resident bytes outside far memory, those of the library included, from the text of `/proc/self/status`
/// and from `far`, the resident bytes of far memory. Reading that file costs the kernel no walk through page tables.
fn estimate(status: &str, far: u64) -> u64 {
    let kib = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    let resident: u64 = ["RssAnon:", "RssShmem:"].into_iter().filter_map(kib).sum();
    (resident << 10).saturating_sub(far)
}

/// Returns whether to read the mappings again: `estimate` differs by more than an eighth from `before`, the estimate at
/// the last reading, and the larger of the two exceeds the threshold.
fn must_reread(estimate: u64, before: u64, local: u64) -> bool {
    exceeds_threshold(estimate.max(before), local) && estimate.abs_diff(before) > before / 8
}

/// Returns the writable segments of all loaded objects but this library.
fn segments() -> Vec<Range<usize>> {
    let mut found = Vec::new();
    each_object(|object| {
        if !object.is_own() {
            found.extend(object.writable().map(|segment| segment.memory));
        }
    });
    found
}

/// Returns what takes the memory outside far memory; `None` if it cannot be read, or is little.
pub(crate) fn describe() -> Option<String> {
    let smaps = unread::text(Path::new("/"), "/proc/thread-self/smaps").ok()??;
    let is_far = |at: &Range<usize>| heap::far().is_some_and(|far| far.pager().kernel().touches(at));
    let uncovered = Uncovered::read(&smaps, is_far, own_bytes, &segments());
    (uncovered.all() > 0).then(|| uncovered.to_string())
}

/// Publishes the bytes of the program that `--local` does not bound if they exceed the threshold, and reports them on
/// standard error, again once they have doubled. The helper thread calls it each second, and `exit` once.
pub(crate) fn update() {
    let Some(far) = heap::far() else { return };
    let pager = far.pager();
    let [local, resident] = [Count::LocalBytes, Count::ResidentBytes].map(|count| pager.counters.get(count));
    // `thread-self`: the files of the process are empty once its first thread has ended.
    let read = |name: &str| unread::text(Path::new("/"), &format!("/proc/thread-self/{name}"));
    let read = |name: &str| {
        read(name).unwrap_or_else(|unread| {
            let text = format!("how much memory --local does not cover is not known: {unread}");
            warn_once(Notice::CoverageUnknown, &text);
            None
        })
    };
    let Some(status) = read("status") else { return };
    let estimate = estimate(&status, resident);
    // Relaxed, here and below: at worst the helper and `exit` both print the message.
    if !must_reread(estimate, READ_AT.load(Ordering::Relaxed), local) {
        return;
    }
    let Some(smaps) = read("smaps") else { return };
    READ_AT.store(estimate, Ordering::Relaxed);
    let kernel = pager.kernel();
    let uncovered = Uncovered::read(&smaps, |at| kernel.touches(at), own_bytes, &segments());
    let all = uncovered.all();
    let published = if exceeds_threshold(all, local) { all } else { 0 };
    pager.set_uncovered(published);
    record::set_uncovered(published);
    if published > 0 {
        warn_uncovered(all, || message(&uncovered, local));
    }
}

/// Returns the warning about bytes outside far memory, whose bound is `local` bytes.
fn message(uncovered: &Uncovered, local: u64) -> String {
    let (all, local) = (uncovered.all() >> 20, local >> 20);
    if limit_state::is_watched() {
        format!(
            "{all} MiB of this program's memory cannot be evicted, and --limit leaves {local} MiB for the rest: \
             {uncovered}"
        )
    } else {
        format!(
            "{all} MiB of this program's memory are not covered by --local, which is {local} MiB now: {uncovered}"
        )
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
40000000-48100000 rw-p 00000000 00:00 0                          [heap]
Rss:                9216 kB
Anonymous:          9216 kB
VmFlags: rd wr
";

    #[test]
    fn uncovered_memory_is_summed_by_kind() {
        let uncovered = Uncovered::read(SMAPS, |at| at.start == 0x2000_0000, |_| 0, &[]);
        let want = Uncovered { reserved: 100 * MIB, shared: 20 * MIB, small: 8 * MIB, statics: 0, other: 0 };
        assert_eq!(uncovered, want);
        let words = uncovered.to_string();
        assert!(words.starts_with("100 MiB in mappings without reserved memory"), "{words}");
        assert!(
            words.ends_with("20 MiB in shared mappings, 8 MiB in small requests and the stack"),
            "{words}"
        );
    }

    #[test]
    fn own_tables_are_excluded() {
        let own = |at: &Range<usize>| if at.start == 0x1000_0000 { 60 * MIB } else { 0 };
        let uncovered = Uncovered::read(SMAPS, |at| at.start == 0x2000_0000, own, &[]);
        assert_eq!(uncovered.reserved, 40 * MIB, "bytes besides the library's own 60 MiB");
    }

    #[test]
    fn static_arrays_have_a_sum() {
        let segments = [0x1fff_ff00..0x2fff_0000, 0x4000_0000..0x4000_0001];
        let uncovered = Uncovered::read(SMAPS, |_| false, |_| 0, &segments);
        let sums = (uncovered.statics, uncovered.other, uncovered.small);
        assert_eq!(sums, (400 * MIB + 100 * MIB, 0, 8 * MIB));
        assert!(uncovered.to_string().contains("500 MiB in static arrays"), "{uncovered}");
    }

    #[test]
    fn small_amounts_are_not_reported() {
        for (mib, local_mib, want) in [(64, 64, false), (65, 64, true), (200, 1024, false), (257, 1024, true)]
        {
            assert_eq!(
                exceeds_threshold(mib * MIB, local_mib * MIB),
                want,
                "{mib} MiB with --local {local_mib}M"
            );
        }
    }

    #[test]
    fn estimate_excludes_files_and_far_memory() {
        let status = "VmRSS:\t 900 kB\nRssAnon:\t 500 kB\nRssFile:\t 300 kB\nRssShmem:\t 100 kB\n";
        for (far, want) in [(0, 600 << 10), (200 << 10, 400 << 10), (1 << 30, 0)] {
            assert_eq!(estimate(status, far), want, "bytes besides {far} bytes of far memory");
        }
    }

    #[test]
    fn large_changes_cause_a_reread() {
        for (now, before, want) in
            [(60, 0, false), (70, 0, true), (75, 70, false), (80, 70, true), (10, 70, true), (10, 10, false)]
        {
            assert_eq!(must_reread(now * MIB, before * MIB, 64 * MIB), want, "{now} MiB after {before} MiB");
        }
    }
}
