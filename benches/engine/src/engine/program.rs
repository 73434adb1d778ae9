//! Runs a program, reads the results that it prints, and checks its answers.

use super::{Bench, Ended, Result, Samples};
use largesse_terminal::name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The result of one test in one run.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    pub(crate) test: String,
    pub(crate) seconds: f64,
    pub(crate) answer: Vec<f64>,
    /// Checksum of the bytes of the answer.
    pub(crate) bits: String,
    /// Seconds spent in collections, if the program has a collector that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gc_seconds: Option<f64>,
    /// Pauses for collections: pairs of a length in microseconds and the number of pauses of that length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pauses: Vec<(f64, u64)>,
    /// Number of objects that collections marked, and the seconds spent marking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) marked: Option<(f64, f64)>,
}

/// The last line of a run's output: peaks of resident memory and of hugetlb pages, which the kernel does not count as
/// resident, both in KiB; names and versions of the language and its libraries.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peak {
    pub(crate) peak_kb: f64,
    pub(crate) hugetlb_kb: f64,
    pub(crate) about: String,
}

impl Peak {
    /// Returns the peak of all resident memory in bytes, hugetlb pages included.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "memory of one machine")]
    pub(crate) fn bytes(&self) -> u64 {
        (self.peak_kb + self.hugetlb_kb) as u64 * 1024
    }
}

/// The output of one run of a program, the time of the whole run, and further keys of its JSON object.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub(crate) struct Run {
    pub(crate) tests: Vec<Measured>,
    pub(crate) peak: Peak,
    #[serde(skip)]
    pub(crate) took: Duration,
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

impl Run {
    /// Returns the result of `test` if its answer is within the tolerance of `expected`. The error says why it is not.
    pub(crate) fn answered(&self, test: &str, expected: Option<(&[f64], f64)>) -> Result<&Measured> {
        let found = self.tests.iter().find(|measured| measured.test == test);
        let measured = found.ok_or("the program did not report this test")?;
        match expected {
            Some((expected, tolerance)) if !agrees(&measured.answer, expected, tolerance) => {
                Err(format!("the answer is {:?}, expected {expected:?}", measured.answer))
            }
            _ => Ok(measured),
        }
    }
}

impl Samples<Run> {
    /// Returns the seconds of `test` in each run if all answers are right: within the tolerance of the expected
    /// answer, and equal to the bit to that of `baseline`.
    pub(crate) fn seconds(&self, bench: &Bench, test: &str, scale: f64, baseline: &Run) -> Result<Vec<f64>> {
        let same = baseline.tests.iter().find(|measured| measured.test == test);
        let judge = |run: &Run| {
            let measured = run.answered(test, bench.expected(test, scale))?;
            let (bits, baseline) = (&measured.bits, same.map_or(&measured.bits, |same| &same.bits));
            if bits != baseline {
                return Err(format!("the result's bytes differ from the baseline's ({bits}, {baseline})"));
            }
            Ok(measured.seconds)
        };
        self.runs.iter().map(judge).collect()
    }

    /// Returns the program's description of its language and libraries.
    pub(crate) fn about(&self) -> &str {
        self.runs.first().map_or("", |run| &run.peak.about)
    }
}

fn agrees(got: &[f64], expected: &[f64], tolerance: f64) -> bool {
    let near = |(got, expected): (&f64, &f64)| (got - expected).abs() <= tolerance * expected.abs();
    got.len() == expected.len() && got.iter().zip(expected).all(near)
}

/// Runs `command` to its end, for `cap` at most. The error of a program that fails has its exit status and the last
/// lines of its output.
pub(crate) fn run(mut command: Command, cap: Duration) -> Result<Run, Ended> {
    let failed = |error: std::io::Error| Ended::Failed(error.to_string());
    let not_started = format!("{}: ", name(command.get_program()));
    let began = Instant::now();
    let ask = || {
        // SAFETY: only numbers are passed.
        let done = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // The kernel kills the program when this process dies, since a program left running would disturb the next bench.
    // It requires that the thread that starts the program waits for it.
    // SAFETY: between fork and exec the closure makes one system call and allocates no memory.
    unsafe { command.pre_exec(ask) };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Ended::Failed(format!("{not_started}{error}")))?;
    let (out, err) = (in_full(child.stdout.take()), in_full(child.stderr.take()));
    let Ok(stdout) = out.recv_timeout(cap) else {
        // The child was not waited for, so that its process number is still its own.
        child.kill().and_then(|()| child.wait()).map_err(failed)?;
        return Err(Ended::Stopped);
    };
    let (status, took) = (child.wait().map_err(failed)?, began.elapsed());
    let output = Output { status, stdout, stderr: err.recv().unwrap_or_default() };
    result(&output).map(|run| Run { took, ..run }).map_err(Ended::Failed)
}

/// Starts a thread that reads `from` to its end and then sends all bytes to the receiver.
fn in_full(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.map(|mut from| from.read_to_end(&mut all));
        sender.send(all)
    });
    receiver
}

fn result(output: &Output) -> Result<Run> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OutputLine {
        Measured(Measured),
        Peak(Peak),
    }
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last: Vec<_> = words.lines().filter(|line| !line.trim().is_empty()).collect();
        return Err(format!("{}: {}", output.status, last[last.len().saturating_sub(3)..].join(" / ")));
    }
    let (mut run, mut ended) = (Run::default(), false);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match serde_json::from_str(line) {
            Ok(OutputLine::Measured(measured)) => run.tests.push(measured),
            Ok(OutputLine::Peak(peak)) => (run.peak, ended) = (peak, true),
            Err(_) => return Err(format!("printed what is not a result: {line}")),
        }
    }
    if ended { Ok(run) } else { Err("ended without its last line".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_agree_within_a_relative_tolerance() {
        let check = |got: &[f64], expected: &[f64]| agrees(got, expected, 1e-8);
        assert!(check(&[1e15, 2.0], &[1e15 + 1.0, 2.0]) && check(&[0.0], &[0.0]));
        assert!(!check(&[1.0 + 1e-7], &[1.0]) && !check(&[1e-300], &[0.0]));
        assert!(!check(&[1.0], &[1.0, 2.0]) && !check(&[f64::NAN], &[1.0]));
    }
}
