//! Runs programs, with and without the library.

use crate::skip::skipped;
use crate::stage::Stage;
use crate::user::{User, users};
use crate::wait::{poll, wait_for};
use serde_json::Value;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time after which a program is considered hung. It allows for other work on the same processors.
const DEADLINE: Duration = Duration::from_secs(300);

/// The way in which a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program exited with this status.
    Code(i32),
    /// The program was killed by this signal.
    Signal(i32),
    /// The program did not end by itself, and was killed at the deadline.
    Hung,
}

/// The result of a run: status, output, messages and report.
#[derive(Debug)]
pub struct Ran {
    /// The way in which the program ended.
    pub exit: Exit,
    /// The program's standard output.
    pub stdout: String,
    /// The lines on standard error that are the program's own.
    pub stderr: String,
    /// The lines on standard error that the launcher and the library wrote.
    pub hints: String,
    /// The JSON object that `--report` wrote, or null if there was none.
    pub report: Value,
}

impl Ran {
    /// Returns a counter of the report, or 0 if there was no report.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.report["counters"][name].as_u64().unwrap_or(0)
    }

    /// Returns how often the report counts this cause of a request that was not granted.
    #[must_use]
    pub fn not_granted(&self, cause: &str) -> u64 {
        self.report["not_granted"][cause]["count"].as_u64().unwrap_or(0)
    }

    /// Checks that the program exited with status 0.
    #[track_caller]
    #[must_use]
    pub fn succeeded(self) -> Ran {
        assert_eq!(self.exit, Exit::Code(0), "{self:#?}");
        self
    }
}

/// A program to run, with its arguments, user, environment and launcher.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    stage: &'a Stage,
    words: Vec<OsString>,
    user: User,
    under: Option<Vec<String>>,
    input: String,
    variables: Vec<(String, OsString)>,
    launcher: Vec<OsString>,
}

impl<'a> Run<'a> {
    /// Describes a run of a program with its arguments: as the current user, and without the library unless options
    /// say otherwise.
    pub fn new<S: Into<OsString> + Clone>(stage: &'a Stage, words: &[S]) -> Run<'a> {
        Run {
            stage,
            words: words.iter().cloned().map(Into::into).collect(),
            user: User::Current,
            under: None,
            input: String::new(),
            variables: Vec::new(),
            launcher: Vec::new(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Run<'a> {
        self.words.push(word.into());
        self
    }

    /// Runs the program as this user.
    #[must_use]
    pub fn as_user(mut self, user: User) -> Run<'a> {
        self.user = user;
        self
    }

    /// Runs the program by `largesse run` with these options.
    #[must_use]
    pub fn under(mut self, options: &[&str]) -> Run<'a> {
        self.under = Some(options.iter().map(ToString::to_string).collect());
        self
    }

    /// Passes this text to the program's standard input.
    #[must_use]
    pub fn input(mut self, text: &str) -> Run<'a> {
        self.input = text.to_owned();
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Run<'a> {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Limits the address space to this number of bytes, as `ulimit -v` does.
    #[must_use]
    pub fn address_space(self, bytes: u64) -> Run<'a> {
        self.started_by(&["prlimit".into(), format!("--as={bytes}"), "--".into()])
    }

    /// Runs the command by another program, such as `sh`, which gets the command as its last arguments.
    #[must_use]
    pub fn started_by<S: Into<OsString> + Clone>(mut self, words: &[S]) -> Run<'a> {
        self.launcher = words.iter().cloned().map(Into::into).collect();
        self
    }

    /// Starts the program, with pipes as its standard input, output and error.
    #[must_use]
    pub fn start(&self) -> Child {
        spawn(&mut self.command(&self.report_path()))
    }

    /// Runs the program until it ends, or kills it at the deadline.
    #[must_use]
    pub fn finish(&self) -> Ran {
        let report = self.report_path();
        let mut child = spawn(&mut self.command(&report));
        // A failure to write is ignored, because the program need not read its input.
        let input = self.input.clone();
        let mut pipe = child.stdin.take();
        let writer = std::thread::spawn(move || pipe.as_mut().map(|pipe| pipe.write_all(input.as_bytes())));
        let out = collect(child.stdout.take());
        let err = collect(child.stderr.take());
        let exit = wait(&mut child);
        let _ = writer.join();
        let (stdout, messages) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        let (hints, stderr) = messages.split_inclusive('\n').partition(|line| line.starts_with("largesse: "));
        let text = std::fs::read_to_string(&report).unwrap_or_default();
        for left in [report.clone(), report.with_extension("svg")] {
            let _ = std::fs::remove_file(left);
        }
        Ran { exit, stdout, stderr, hints, report: serde_json::from_str(&text).unwrap_or(Value::Null) }
    }

    fn report_path(&self) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The name does not end in `.json`, so that no picture is drawn.
        self.stage.scratch().join(format!("report-{number}"))
    }

    fn command(&self, report: &Path) -> Command {
        let mut words: Vec<OsString> = self.user.prefix().iter().map(OsString::from).collect();
        words.extend(self.launcher.iter().cloned());
        if let Some(options) = &self.under {
            words.extend([self.stage.command().into(), "run".into(), "--report".into(), report.into()]);
            words.extend(options.iter().map(OsString::from));
            words.push("--".into());
        }
        words.extend(self.words.iter().cloned());
        let scratch = self.stage.scratch();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&scratch).process_group(0);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["LARGESSE_", "LD_", "CARGO_", "R_"].iter().any(|start| text.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        command.env("LARGESSE_LIBRARY", self.stage.library());
        for name in ["HOME", "TMPDIR"] {
            command.env(name, &scratch);
        }
        command.env("LC_ALL", "C.UTF-8");
        for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
            command.env(name, "1");
        }
        command.envs(self.variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Checks that the program prints the same bytes with and without the library, as every user. Also checks that the
/// library served at least `blocks` blocks, because the comparison would mean nothing if it served none.
#[track_caller]
pub fn same_output(program: &Run<'_>, options: &[&str], blocks: u64) {
    for user in users() {
        let without = program.clone().as_user(user).finish();
        let with = program.clone().as_user(user).under(options).finish();
        assert_eq!(without.exit, with.exit, "{user:?}\n{without:#?}\n{with:#?}");
        assert_eq!(without.stderr, with.stderr, "{user:?}");
        assert!(without.stdout == with.stdout, "{user:?}\n{}\n---\n{}", without.stdout, with.stdout);
        assert!(!without.stdout.is_empty(), "a program that prints nothing compares nothing: {without:#?}");
        let taken = with.counter("allocations");
        assert!(taken >= blocks, "{user:?}: only {taken} blocks were taken\n{:#}", with.report);
        if !with.hints.is_empty() {
            skipped(&format!("large pages, in part: {}", with.hints.trim()));
        }
    }
}

/// Starts a program whose file may just have been written. While a child of another thread still has that file open
/// for writing, the start fails and is repeated.
fn spawn(command: &mut Command) -> Child {
    // The program counts its descriptors: those inherited from the test runner are closed.
    let hide = || {
        // SAFETY: numbers only. An older kernel refuses, and nothing is hidden.
        unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) };
        Ok(())
    };
    // SAFETY: one system call, between fork and exec.
    unsafe { command.pre_exec(hide) };
    let started = wait_for("no other process has the program's file open", DEADLINE, || {
        let started = command.spawn();
        let busy = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
        (!started.as_ref().is_err_and(busy)).then_some(started)
    });
    started.expect("a program that starts")
}

fn collect(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child) -> Exit {
    if let Some(status) = poll(DEADLINE, || child.try_wait().expect("a child of this process")) {
        return exit_of(status);
    }
    let group = i32::try_from(child.id()).unwrap_or(0);
    // SAFETY: plain numbers; the group is the child's own, made at its start.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    let _ = child.wait();
    Exit::Hung
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Hung,
    }
}
