//! Runs programs in turns and reads their output.

use super::settings::{Role, Setting};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// One column of the comparison. The baseline has two, whose distance from each other is the noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contestant<'a> {
    pub(super) setting: &'a Setting,
    pub(super) again: bool,
}

impl<'a> Contestant<'a> {
    /// Returns the contestants in order: the baseline, its second column, the others.
    pub(super) fn line_up(settings: &[&'a Setting]) -> Vec<Contestant<'a>> {
        let once = |again| move |&setting| Contestant { setting, again };
        let is_baseline = |setting: &&&Setting| setting.role == Role::Baseline;
        let baselines: Vec<_> = settings.iter().filter(is_baseline).collect();
        let mut all: Vec<_> = baselines.iter().map(|setting| once(false)(*setting)).collect();
        all.extend(baselines.iter().map(|setting| once(true)(*setting)));
        all.extend(settings.iter().filter(|setting| setting.role != Role::Baseline).map(once(false)));
        all
    }

    pub(super) fn name(&self) -> String {
        if self.again { format!("{} again", self.setting.name) } else { self.setting.name.clone() }
    }
}

/// The result of one test in one run.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    pub(super) test: String,
    pub(super) seconds: f64,
    pub(super) answer: Vec<f64>,
    /// Checksum of the bytes of the result.
    pub(super) bits: String,
    /// Seconds spent in collections, if the program has a collector that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gc_seconds: Option<f64>,
    /// Pauses for collections: pairs of a length in microseconds and the number of pauses of that length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pauses: Vec<(f64, u64)>,
    /// Number of objects that collections marked, and the seconds spent marking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) marked: Option<(f64, f64)>,
}

/// The last line of a run's output.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Peak {
    peak_kb: f64,
    /// KiB of hugetlb pages, which the kernel leaves out of the peak.
    hugetlb_kb: f64,
    /// Names and versions of the language and its libraries.
    pub(super) about: String,
}

impl Peak {
    /// Returns the largest number of KiB that were resident at once.
    pub(super) fn kib(&self) -> f64 {
        self.peak_kb + self.hugetlb_kb
    }
}

/// The output of one run of one program.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct Run {
    pub(super) tests: Vec<Measured>,
    pub(super) peak: Peak,
}

/// Returns the order of `contestants` in `round`. It rotates, so that each is first equally often.
pub(super) fn turns(contestants: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..contestants).map(move |place| (place + round) % contestants)
}

/// Runs `command` to its end. The error has its exit status and last lines.
pub(super) fn run(mut command: Command) -> Result<Run, String> {
    ends_with_us(&mut command);
    let output = command.output().map_err(|error| not_started(&command, &error))?;
    result(&output)
}

/// The reason why a run has no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ended {
    /// The run took too long and was killed.
    Stopped,
    /// The run failed, with this message.
    Failed(String),
}

/// Runs `command` to its end, for `cap` at most. Returns the result and the time of the whole run.
pub(super) fn run_within(mut command: Command, cap: Duration) -> Result<(Run, Duration), Ended> {
    let failed = |error: &std::io::Error| Ended::Failed(error.to_string());
    let began = Instant::now();
    ends_with_us(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Ended::Failed(not_started(&command, &error)))?;
    let (out, err) = (in_full(child.stdout.take()), in_full(child.stderr.take()));
    let Ok(stdout) = out.recv_timeout(cap) else {
        // The child was not waited for, so that its process number is still its own.
        child.kill().and_then(|()| child.wait()).map_err(|error| failed(&error))?;
        return Err(Ended::Stopped);
    };
    let status = child.wait().map_err(|error| failed(&error))?;
    let took = began.elapsed();
    let output = Output { status, stdout, stderr: err.recv().unwrap_or_default() };
    result(&output).map(|run| (run, took)).map_err(Ended::Failed)
}

/// Makes the kernel kill the program when this process dies, since a program left running would disturb the next
/// bench. It requires that the thread that starts the program waits for it.
fn ends_with_us(command: &mut Command) {
    let ask = || {
        // SAFETY: only numbers are passed.
        let done = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec the closure makes one system call and allocates no memory.
    unsafe { command.pre_exec(ask) };
}

/// Starts a thread that reads `from` to its end and sends all bytes.
fn in_full(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.map(|mut from| from.read_to_end(&mut all));
        sender.send(all)
    });
    receiver
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("{}: {error}", command.get_program().display())
}

fn result(output: &Output) -> Result<Run, String> {
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let mut last: Vec<_> = words.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        last.reverse();
        return Err(format!("{}: {}", output.status, last.join(" / ")));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(text: &str) -> Result<Run, String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OutputLine {
        Measured(Measured),
        Peak(Peak),
    }
    let (mut tests, mut peak) = (Vec::new(), None);
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(OutputLine::Measured(measured)) => tests.push(measured),
            Ok(OutputLine::Peak(last)) => peak = Some(last),
            Err(_) => return Err(format!("printed what is not a result: {line}")),
        }
    }
    let peak = peak.ok_or("ended without its last line")?;
    Ok(Run { tests, peak })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a run of one test.
    pub(in super::super) fn run_of(test: &str, seconds: f64, answer: f64, bits: &str) -> Run {
        let (test, bits, answer) = (test.into(), bits.into(), vec![answer]);
        let measured =
            Measured { test, seconds, answer, bits, gc_seconds: None, pauses: Vec::new(), marked: None };
        let peak = Peak { peak_kb: 1000.0 * seconds, hugetlb_kb: 0.0, about: String::new() };
        Run { tests: vec![measured], peak }
    }

    fn shell(script: &str) -> Result<Run, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command)
    }

    #[test]
    fn every_line_of_a_program_is_read() {
        let script = r#"echo '{"test":"a","seconds":0.5,"answer":[1,2.5],"bits":"f0"}'
            echo '{"peak_kb":100,"hugetlb_kb":24,"about":"R"}'"#;
        let run = shell(script).unwrap();
        assert_eq!((run.tests[0].seconds, &run.tests[0].answer[..]), (0.5, &[1.0, 2.5][..]));
        assert_eq!(run.peak.kib(), 124.0);
    }

    #[test]
    fn failed_runs_have_no_result() {
        assert!(shell("echo one >&2; echo two >&2; exit 3").unwrap_err().contains("3: one / two"));
        assert!(shell("kill -9 $$").unwrap_err().contains("signal: 9"));
        assert!(shell("echo hello").unwrap_err().contains("hello"));
        assert!(shell("true").unwrap_err().contains("last line"));
        assert!(run(Command::new("/nowhere/Rscript")).unwrap_err().contains("/nowhere/Rscript"));
    }

    #[test]
    fn runs_over_the_cap_are_stopped() {
        let within = |script: &str, cap| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_within(command, Duration::from_millis(cap))
        };
        assert_eq!(within("exec sleep 60", 50), Err(Ended::Stopped));
        let script = r#"echo '{"peak_kb":1,"hugetlb_kb":0,"about":""}'"#;
        let (run, took) = within(script, 60_000).unwrap();
        assert!(run.tests.is_empty() && took < Duration::from_secs(60));
        assert!(
            matches!(within("echo no >&2; exit 1", 60_000), Err(Ended::Failed(why)) if why.contains("no"))
        );
    }

    #[test]
    fn each_contestant_is_first_once() {
        let firsts: Vec<_> = (0..4).map(|round| turns(4, round).next().unwrap()).collect();
        assert_eq!(firsts, [0, 1, 2, 3]);
        assert_eq!(turns(3, 4).collect::<Vec<_>>(), [1, 2, 0]);
    }
}
