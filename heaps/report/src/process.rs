//! Defines the record of one process under `largesse run --report`: words in a file that the process maps and its
//! watcher reads, so that they survive when the process is killed.

/// Number of 64-bit words in a record.
pub const RECORD_WORDS: usize = 256;
/// Version of the layout of [`RecordWord`], which changes with every change of it. Readers skip records of other
/// versions.
pub const RECORD_VERSION: u64 = 1;
/// Number of words of the command line at the end of a record: 512 bytes, padded with zeros.
pub const COMMAND_WORDS: usize = 64;

/// Indices of the words of a record. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordWord {
    /// The value is [`RECORD_VERSION`], written last.
    Version = 0,
    /// The word is the process number.
    Pid = 1,
    /// The word is the process number of the parent when the record was made.
    Parent = 2,
    /// The word is the time at which the record was created.
    Started = 3,
    /// The word is the time at which `exit` was called; 0 before.
    Ended = 4,
    /// The word is the exit status, valid only after `Ended` is set.
    Status = 5,
    /// The word is the highest number of bytes observed on large pages.
    LargePeak = 6,
    /// The word is the number of bytes outside far memory that `--local` does not bound, as last counted.
    Uncovered = 7,
    /// The first of the words with the counters in [`Counters::NAMES`](crate::Counters::NAMES).
    Counters = 8,
    /// The first of the words with the number of occurrences of each cause in [`Cause::ALL`](crate::Cause::ALL).
    NotGranted = 32,
    /// The first of the words with the text of the command line.
    Command = RECORD_WORDS - COMMAND_WORDS,
}

const _: () = {
    assert!(RecordWord::Counters as usize + crate::Counters::NAMES.len() <= RecordWord::NotGranted as usize);
    assert!(RecordWord::NotGranted as usize + crate::CAUSES <= RecordWord::Command as usize);
};

/// Returns the number of bytes on transparent huge pages and hugetlb pages, from the text of `/proc/PID/smaps_rollup`.
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
