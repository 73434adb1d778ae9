//! Reads `/proc/PID/smaps`, in which the kernel describes each mapping of a process.

use core::ops::Range;

/// One mapping. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MappingUse {
    pub(crate) at: Range<usize>,
    pub(crate) resident: u64,
    /// Changed pages that another process has, too: the kernel makes a copy when either writes to them.
    pub(crate) shared: u64,
    /// Pages that were used since they were last made old.
    pub(crate) young: u64,
}

/// Returns the mappings of the calling process; `None` if they cannot be read.
pub(crate) fn own() -> Option<Vec<MappingUse>> {
    // `thread-self`: the files of the process are empty once its first thread has ended.
    std::fs::read_to_string("/proc/thread-self/smaps").ok().map(|text| mappings(&text))
}

fn mappings(text: &str) -> Vec<MappingUse> {
    let (mut all, mut mapping) = (Vec::new(), MappingUse::default());
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        match name {
            "Rss:" => mapping.resident = bytes(rest),
            "Shared_Dirty:" => mapping.shared = bytes(rest),
            "Referenced:" => {
                mapping.young = bytes(rest);
                all.push(core::mem::take(&mut mapping));
            }
            _ => {
                if let Some(at) = addresses(name) {
                    mapping.at = at;
                }
            }
        }
    }
    all
}

fn bytes(text: &str) -> u64 {
    text.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn addresses(text: &str) -> Option<Range<usize>> {
    let (from, to) = text.split_once('-')?;
    Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_their_sizes() {
        let text = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
            Size:               4096 kB\nRss:                2048 kB\nShared_Dirty:        512 kB\n\
            Referenced:         1024 kB\nVmFlags: rd wr mr mw me ac rr hg \n\
            7fff00000000-7fff00001000 r-xp 00000000 fe:00 99 /usr/lib/a file-7.so\n\
            Size:                  4 kB\nRss:                   4 kB\nReferenced:            0 kB\n";
        let first = 0x7f00_0000_0000..0x7f00_0040_0000;
        let want = [
            MappingUse { at: first, resident: 2 << 20, shared: 512 << 10, young: 1 << 20 },
            MappingUse { at: 0x7fff_0000_0000..0x7fff_0000_1000, resident: 4 << 10, shared: 0, young: 0 },
        ];
        assert_eq!(mappings(text), want);
    }

    #[test]
    fn own_mappings_are_read() {
        let here = (&raw const ANY).addr();
        static ANY: [u8; 1] = [1];
        assert!(own().expect("proc is mounted").iter().any(|mapping| mapping.at.contains(&here)));
    }
}
