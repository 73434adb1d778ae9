//! The record of one process of a tree that `largesse run --report` watches: words in a file that the process maps
//! and its watcher reads, so that they outlive a process that is killed.

/// Words of a record.
pub const RECORD_WORDS: usize = 256;
/// Changes with every change of the layout below; a reader passes over another one.
pub const RECORD_VERSION: u64 = 1;
/// Words of the command line at the end of a record: 512 bytes, zeros after the text.
pub const COMMAND_WORDS: usize = 64;

/// Places of the words of a record. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordWord {
    /// [`RECORD_VERSION`], written last.
    Version = 0,
    /// The process number.
    Pid = 1,
    /// The process number of the parent when the record was made.
    Parent = 2,
    /// When the record was made.
    Started = 3,
    /// When `exit` was called; 0 before.
    Ended = 4,
    /// The exit status; only after `Ended` is set.
    Status = 5,
    /// Highest number of bytes on large pages that was seen.
    LargePeak = 6,
    /// Bytes outside far memory that `--local` does not bound, as they were counted last.
    Uncovered = 7,
    /// The first of [`Counters::NAMES`](crate::Counters::NAMES).
    Counters = 8,
    /// The first count of [`Cause::ALL`](crate::Cause::ALL).
    NotGranted = 32,
    /// The first word of the command line.
    Command = RECORD_WORDS - COMMAND_WORDS,
}

const _: () = {
    assert!(RecordWord::Counters as usize + crate::Counters::NAMES.len() <= RecordWord::NotGranted as usize);
    assert!(RecordWord::NotGranted as usize + crate::CAUSES <= RecordWord::Command as usize);
};

/// Bytes on transparent huge pages and pages of a hugetlb pool, in the text of `/proc/PID/smaps_rollup`.
#[must_use]
pub fn large_bytes(rollup: &str) -> u64 {
    const FIELDS: [&str; 3] = ["AnonHugePages", "Private_Hugetlb", "Shared_Hugetlb"];
    let kib = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let number = value.trim().strip_suffix("kB")?.trim();
        if FIELDS.contains(&name) { number.parse::<u64>().ok() } else { None }
    };
    rollup.lines().filter_map(kib).fold(0, |sum, kib| sum.saturating_add(kib.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_of_every_kind_count() {
        let text = "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nAnonHugePages:   4096 kB\n\
                    ShmemPmdMapped: 8 kB\nShared_Hugetlb: 0 kB\nPrivate_Hugetlb: 2048 kB\n";
        assert_eq!(large_bytes(text), 6 << 20);
        assert_eq!(large_bytes(""), 0);
    }
}
