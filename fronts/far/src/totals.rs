//! Formats the counters of far memory as a table for the user.

use largesse_store::Mechanism;
use largesse_terminal::size;
use largesse_terminal::table::{Paper, facts};
use std::collections::BTreeMap;
use std::io;

/// Values of counters, by the counters' names.
pub type Words = BTreeMap<&'static str, u64>;

/// Returns the value of a counter by its name; 0 if there is no such counter.
#[must_use]
pub fn word(words: &Words, name: &str) -> u64 {
    words.get(name).copied().unwrap_or(0)
}

/// Formats a counter that is in nanoseconds as seconds.
#[must_use]
pub fn seconds(words: &Words, name: &str) -> String {
    format!("{:.2} s", word(words, name) as f64 * 1e-9)
}

/// Formats the transfer sizes in force: the smallest and the largest size if regions have different ones.
#[must_use]
pub fn transfer_sizes(words: &Words) -> String {
    let [least, most] = ["least_set_bytes", "most_set_bytes"].map(|name| size(word(words, name)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// Returns the number of faults that were not handled by the on-CPU handler, but on another CPU or by a signal handler.
fn on_another_cpu(words: &Words) -> String {
    word(words, "faults").saturating_sub(word(words, "beside")).to_string()
}

/// Returns the name of the mechanism by which transfers run while the threads that started them continue.
fn mechanism(words: &Words) -> &'static str {
    Mechanism::from_number(word(words, "mechanism")).map_or("blocking calls", Mechanism::name)
}

/// Formats a quotient by `show`; returns a dash if the divisor is 0.
fn quotient(dividend: u64, divisor: u64, show: impl Fn(f64) -> String) -> String {
    if divisor == 0 { "–".to_owned() } else { show(dividend as f64 / divisor as f64) }
}

/// Formats the mean number of transfers in flight while there were any (by Little's law), and the largest number.
fn in_flight(words: &Words, direction: &str) -> String {
    let [sum, busy] = ["ns", "busy_ns"].map(|name| word(words, &format!("{direction}_{name}")));
    let most = word(words, &format!("most_{direction}s"));
    quotient(sum, busy, |mean| format!("{mean:.1}, most {most}"))
}

/// Formats a percentile of the times from the start of a transfer to its end; returns a dash if there were no
/// transfers.
fn latency(words: &Words, percentile: &str) -> String {
    quotient(word(words, percentile), 1000, |us| {
        if us == 0.0 { "–".to_owned() } else { format!("{us:.*} µs", usize::from(us < 100.0)) }
    })
}

/// Returns a line that says why transfers are not made in the fastest way; an empty text if they are.
fn refusal(words: &Words) -> String {
    let Some(errno) = i32::try_from(word(words, "refusal")).ok().filter(|&errno| errno > 0) else {
        return String::new();
    };
    let error = io::Error::from_raw_os_error(errno);
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "a container's seccomp filter or `sysctl kernel.io_uring_disabled` forbids it"
        }
        io::ErrorKind::Unsupported => "the kernel lacks it, or a container hides it",
        io::ErrorKind::OutOfMemory => "raise the limit on locked memory, `ulimit -l`",
        _ => "the kernel gave no better reason",
    };
    let why = match Mechanism::from_number(word(words, "mechanism")) {
        Some(Mechanism::IoUring) => {
            "io_uring pins memory for each transfer, as its buffers could not be registered"
        }
        _ => "threads make the transfers, as io_uring could not be used",
    };
    format!("  {why}: {advice} ({error})\n")
}

/// Formats the bandwidth of transfers while any were in flight.
fn speed(words: &Words, bytes: &str, direction: &str) -> String {
    let [bytes, busy] = [bytes, &format!("{direction}_busy_ns")].map(|name| word(words, name));
    quotient(bytes, busy, |speed| format!("{speed:.2} GB/s"))
}

/// Formats the share of the time of reads in which no thread waited for them; returns a dash if reads are calls that
/// block.
fn hidden(words: &Words) -> String {
    if word(words, "mechanism") == 0 {
        return "–".to_owned();
    }
    let [hidden, all] = ["hidden_ns", "read_ns"].map(|name| word(words, name));
    quotient(hidden, all, |share| format!("{:.0} %", share * 100.0))
}

/// Returns the table of all counters of far memory.
#[must_use]
pub fn totals(words: &Words, paper: Paper) -> String {
    let count = |name| word(words, name).to_string();
    let bytes = |name| size(word(words, name));
    let mut pairs = vec![
        ("in all", bytes("mapped_bytes")),
        ("transfer size", transfer_sizes(words)),
        ("resident", bytes("resident_bytes")),
        ("local limit", bytes("local_bytes")),
        ("in the store", bytes("stored_bytes")),
        ("pinned by a device", count("pinned")),
        ("faults handled", count("faults")),
        ("to write only", count("write_faults")),
        ("on the faulting CPU", count("beside")),
        ("on another CPU", on_another_cpu(words)),
        ("pages from the store", count("fills")),
        ("new, zero", count("zero_fills")),
        ("pages evicted", count("evictions")),
        ("written to the store", count("write_backs")),
        ("read from the store", bytes("bytes_in")),
        ("written", bytes("bytes_out")),
        ("threads waited", seconds(words, "wait_ns")),
        ("for room", seconds(words, "room_ns")),
        ("dropped unwritten", count("dropped")),
        ("segments", count("segments")),
        ("over the limit", count("over_limit")),
        ("no room in the store", count("no_room")),
        ("prefetched", count("prefetched")),
        ("of these in time", count("prefetch_hits")),
    ];
    pairs.extend([
        ("store transfers by", mechanism(words).to_owned()),
        ("read waits hidden", hidden(words)),
        ("reads in flight", in_flight(words, "read")),
        ("read speed", speed(words, "bytes_in", "read")),
        ("half of reads within", latency(words, "read_median_ns")),
        ("99 % within", latency(words, "read_p99_ns")),
        ("writes in flight", in_flight(words, "write")),
        ("write speed", speed(words, "bytes_out", "write")),
        ("half of writes within", latency(words, "write_median_ns")),
        ("99 % within", latency(words, "write_p99_ns")),
    ]);
    // Memory outside of far memory is only shown if it is large.
    if word(words, "uncovered_bytes") > 0 {
        pairs.push(("not covered by --local", bytes("uncovered_bytes")));
    }
    facts(&pairs, paper) + &refusal(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_described_by_littles_law() {
        let words = Words::from([
            ("mechanism", 1),
            ("reads", 4),
            ("read_ns", 400_000),
            ("read_median_ns", 93_500),
            ("read_p99_ns", 2_100_000),
            ("read_busy_ns", 100_000),
            ("hidden_ns", 300_000),
            ("most_reads", 7),
            ("bytes_in", 200_000),
        ]);
        assert_eq!(in_flight(&words, "read"), "4.0, most 7");
        let percentiles = ["read_median_ns", "read_p99_ns", "write_p99_ns"].map(|name| latency(&words, name));
        assert_eq!(percentiles, ["93.5 µs", "2100 µs", "–"]);
        assert_eq!(
            (speed(&words, "bytes_in", "read").as_str(), hidden(&words).as_str()),
            ("2.00 GB/s", "75 %")
        );
        assert_eq!(in_flight(&words, "write"), "–");
    }

    #[test]
    fn refused_io_uring_is_explained() {
        let check = |mechanism, errno, start: &str, reason: &str| {
            let words = Words::from([("mechanism", mechanism), ("refusal", errno)]);
            let table = totals(&words, Paper::plain(None));
            let line = table.lines().last().unwrap_or_default();
            assert!(line.contains(start) && line.contains(reason), "{table}");
        };
        check(2, 1, "threads make the transfers", "seccomp");
        check(2, 38, "threads make the transfers", "lacks it");
        check(1, 12, "io_uring pins memory", "ulimit -l");
        let fastest = totals(&Words::from([("mechanism", 1)]), Paper::plain(None));
        assert!(!fastest.contains("could not"), "{fastest}");
    }
}
