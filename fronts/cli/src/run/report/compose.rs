//! Composes the report from the records of the processes and the watcher's observations.
//!
//! The time line is copied line by line and never read whole: the watcher is in the program's control group, which may
//! have little memory left.

use super::clock::now;
use super::end::{End, signal_name};
use largesse_machine::Unread;
use largesse_report::{CAUSES, COMMAND_WORDS, Cause, Counters, RECORD_VERSION, RECORD_WORDS, RecordWord};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::Path;

/// The watcher's observations of one process.
#[derive(Debug)]
pub(super) struct Observation {
    pub(super) pid: u32,
    /// Nanoseconds of `CLOCK_MONOTONIC` when the watcher began to watch the process; the largest number if it did not.
    pub(super) seen_at: u64,
    /// When the process ended, or 0 if that is not known.
    pub(super) ended_at: u64,
    /// How the process ended, or `None` while it runs.
    pub(super) end: Option<End>,
    /// Highest number of bytes on large pages that was read, if any was.
    pub(super) large_bytes: Option<u64>,
    /// Why the bytes on large pages could not be read.
    pub(super) unread: Option<Unread>,
}

/// The record that a process wrote, as words of `largesse_report::RecordWord`.
struct Record([u64; RECORD_WORDS]);

impl Record {
    fn read(folder: &Path, pid: u32) -> Option<Record> {
        let bytes = std::fs::read(folder.join(pid.to_string())).ok()?;
        let mut words = [0; RECORD_WORDS];
        let (whole, _) = bytes.as_chunks::<8>();
        words.iter_mut().zip(whole).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
        let record = Record(words);
        (record.word(RecordWord::Version) == RECORD_VERSION).then_some(record)
    }

    fn word(&self, word: RecordWord) -> u64 {
        self.0[word as usize]
    }

    fn counters(&self) -> [u64; Counters::NAMES.len()] {
        std::array::from_fn(|place| self.0[RecordWord::Counters as usize + place])
    }

    fn not_granted(&self) -> [u64; CAUSES] {
        std::array::from_fn(|place| self.0[RecordWord::NotGranted as usize + place])
    }

    fn command(&self) -> Vec<String> {
        let words = &self.0[RecordWord::Command as usize..][..COMMAND_WORDS];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes[..end].split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }
}

/// A process with the library, and its JSON object in the report.
struct Process {
    pid: u32,
    counters: [u64; Counters::NAMES.len()],
    not_granted: [u64; CAUSES],
    large_bytes: Option<u64>,
    uncovered: u64,
    shown: Value,
}

/// Size in bytes of the block that every process with far memory has for its small requests.
const SMALL_BLOCKS: u64 = 2 << 20;

/// Returns the report. The figures at its top level are those of the launched process, if it had a large block.
/// Otherwise, and with far memory, they are those of the process with the highest peak beyond its [`SMALL_BLOCKS`], or of
/// the launched one if none has more.
pub(super) fn report(folder: &Path, seen: &[Observation]) -> Value {
    let processes: Vec<Process> = seen.iter().filter_map(|one| process(folder, one)).collect();
    let launched = seen.first().map_or(0, |one| one.pid);
    let peak = Counters::NAMES.iter().position(|name| *name == "peak_bytes").unwrap_or(0);
    let served = |one: &&Process| one.pid == launched && one.counters[0] > 0 && !has_far(folder, launched);
    let first = processes.iter().find(served);
    let more = |one: &Process| one.counters[peak].saturating_sub(SMALL_BLOCKS);
    let main = first.or_else(|| processes.iter().max_by_key(|one| (more(one), one.pid == launched)));
    let main_pid = main.map_or(launched, |one| one.pid);
    let mut report = own_report(folder, main_pid);
    if let Some(main) = main
        && let Value::Object(shown) = &main.shown
    {
        report.extend(shown.clone());
        // The process writes its JSON at the start and at `exit`: if it was killed, the record is newer.
        if let Some(far) = report.get_mut("far").and_then(Value::as_object_mut) {
            far.insert("uncovered_bytes".into(), json!(main.uncovered));
        }
    }
    let tree = json!({
        "processes": processes.len(),
        "counters": named(&sums(processes.iter().map(|one| one.counters))),
        "not_granted": causes(&sums(processes.iter().map(|one| one.not_granted))),
        "large_peak_bytes": processes.iter().map(|one| one.large_bytes).sum::<Option<u64>>(),
    });
    let fact = |file: &str| std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
    report.insert("host".into(), json!(fact("/proc/sys/kernel/hostname")));
    report.insert("kernel".into(), json!(fact("/proc/sys/kernel/osrelease")));
    report.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    report.insert("launched_pid".into(), json!(launched));
    report.insert("tree".into(), tree);
    report.insert("processes".into(), processes.into_iter().map(|one| one.shown).collect());
    Value::Object(report)
}

/// Returns the JSON object that a process wrote, at its start or at `exit`; an empty one if there is none.
fn own_report(folder: &Path, pid: u32) -> Map<String, Value> {
    let text = std::fs::read_to_string(folder.join(format!("{pid}.json"))).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns whether a process had far memory, according to what it wrote.
fn has_far(folder: &Path, pid: u32) -> bool {
    own_report(folder, pid).get("far").is_some_and(Value::is_object)
}

fn sums<const N: usize>(all: impl Iterator<Item = [u64; N]>) -> [u64; N] {
    all.fold([0; N], |sum, one| std::array::from_fn(|place| sum[place].saturating_add(one[place])))
}

fn named(counters: &[u64; Counters::NAMES.len()]) -> Map<String, Value> {
    Counters::NAMES.iter().zip(counters).map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

/// Returns the causes with counts above 0, each with its count and advice.
fn causes(counts: &[u64; CAUSES]) -> Map<String, Value> {
    let counted = Cause::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let entry = |(cause, count): (Cause, &u64)| {
        (text(cause.name()), json!({ "count": count, "advice": text(cause.advice()) }))
    };
    counted.map(entry).collect()
}

/// Returns a process of the report, or `None` for one that wrote no record since it lacks the library.
fn process(folder: &Path, seen: &Observation) -> Option<Process> {
    let record = Record::read(folder, seen.pid)?;
    // The kernel's status comes first, then the status with which the process called `exit`.
    let said = match record.word(RecordWord::Ended) {
        0 => None,
        at => Some((End::Exited(i32::try_from(record.word(RecordWord::Status)).unwrap_or(0)), at)),
    };
    let end = seen.end.filter(|end| *end != End::Unknown).map(|end| (end, seen.ended_at));
    let end = end.or(said).or(seen.end.map(|end| (end, seen.ended_at)));
    let (state, status, signal) = match end {
        None => ("running", Value::Null, Value::Null),
        Some((End::Exited(status), _)) => ("finished", json!(status), Value::Null),
        Some((End::Killed(signal), _)) => ("killed", Value::Null, json!(signal_name(signal))),
        Some((End::Unknown, _)) => ("ended", Value::Null, Value::Null),
    };
    let began = record.word(RecordWord::Started).min(seen.seen_at.max(1));
    let ended = end.map_or_else(now, |(_, at)| at);
    // The process reads the same file, and records 0 if it cannot or need not.
    let recorded = record.word(RecordWord::LargePeak);
    let unread = seen.unread.as_ref().filter(|_| recorded == 0 && seen.large_bytes.is_none());
    let large_bytes = unread.is_none().then(|| recorded.max(seen.large_bytes.unwrap_or(0)));
    let (counters, not_granted) = (record.counters(), record.not_granted());
    let mut shown = json!({
        "pid": seen.pid,
        "parent": record.word(RecordWord::Parent),
        "command": record.command(),
        "state": state,
        "status": status,
        "signal": signal,
        "seconds": (ended > 0).then(|| ended.saturating_sub(began) as f64 * 1e-9),
        "large_peak_bytes": large_bytes,
        "counters": named(&counters),
        "not_granted": causes(&not_granted),
    });
    if let Some(unread) = unread {
        shown["unread"] = json!(unread.to_string());
    }
    let uncovered = record.word(RecordWord::Uncovered);
    Some(Process { pid: seen.pid, counters, not_granted, large_bytes, uncovered, shown })
}

/// Returns the intervals of the time line, as JSON, that the process of a report wrote; `None` if it wrote none. A line
/// that is cut off, because the process was killed while it wrote, is left out.
pub(super) fn timeline(folder: &Path, report: &Value) -> Option<impl Iterator<Item = String>> {
    let file = File::open(folder.join(format!("{}.timeline", report["pid"]))).ok()?;
    Some(BufReader::new(file).lines().map_while(Result::ok).filter(|row| row.ends_with('}')))
}

/// Writes a report, with each interval of the time line on one line.
pub(super) fn write(
    report: &Value,
    timeline: Option<impl Iterator<Item = String>>,
    to: &mut impl Write,
) -> io::Result<()> {
    let text = format!("{report:#}");
    let text = largesse_text::lines(&text);
    let Some(rows) = timeline else { return writeln!(to, "{text}") };
    write!(to, "{},\n  \"timeline\": [", text.strip_suffix("\n}").unwrap_or(&text))?;
    rows.enumerate().try_for_each(|(place, row)| {
        let comma = if place == 0 { "" } else { "," };
        write!(to, "{comma}\n    {row}")
    })?;
    writeln!(to, "\n  ]\n}}")
}
