//! Runs `far_trouble.c` step by step. The program reads commands from its standard input and answers each.

use crate::{Run, Stage, User};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout};

/// A program that waits for the next command between two steps.
#[derive(Debug)]
pub struct Steps {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Steps {
    /// Starts a program that reads commands.
    #[must_use]
    pub fn start(run: &Run<'_>) -> Steps {
        let mut child = run.start();
        let said = BufReader::new(child.stdout.take().expect("piped"));
        Steps { child, said }
    }

    /// Starts `far_trouble.c` under `largesse run` with these options, and lets it write its 24 MiB.
    #[must_use]
    pub fn under(options: &[&str], user: User, stage: &Stage) -> Option<Steps> {
        let program = stage.compiled("far_trouble.c", &["-lpthread", "-O2"])?;
        let run = Run::new(stage, &[program]).arg("steps").arg("24").as_user(user);
        let mut steps = Steps::start(&run.under(options));
        assert_eq!(steps.does("write 1"), "written");
        Some(steps)
    }

    /// Starts `far_trouble.c` with a file as its store. All but 8 MiB of its 24 MiB are evicted before this returns.
    #[must_use]
    pub fn written(user: User, stage: &Stage) -> Option<Steps> {
        Steps::under(&["--local=8M", "--far", &stage.store()], user, stage)
    }

    /// Returns the number of the program's process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command and returns the program's answer, which is empty if the program has ended.
    pub fn does(&mut self, step: &str) -> String {
        self.is_told(step);
        self.says()
    }

    /// Sends a command without waiting for the answer.
    pub fn is_told(&mut self, step: &str) {
        let _ = writeln!(self.child.stdin.as_mut().expect("piped"), "{step}");
    }

    /// Returns the next line of the program's output.
    pub fn says(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Returns the path under `/proc` of the store: a file without a name, which only threads of the library have
    /// open.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("a process of ours");
        let files = threads.flatten().filter_map(|thread| std::fs::read_dir(thread.path().join("fd")).ok());
        let mut files = files.flat_map(|files| files.flatten().map(|file| file.path()));
        let is_store = |file: &PathBuf| {
            // `FOLDER/#INODE (deleted)`, or a random name where the file system has no files without one.
            let shown = std::fs::read_link(file).unwrap_or_default().to_string_lossy().into_owned();
            shown.ends_with(" (deleted)") && (shown.contains("/#") || shown.contains("/.largesse-"))
        };
        files.find(is_store).expect("a store")
    }

    /// Closes the program's standard input.
    pub fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Kills the program by SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
    }

    /// Closes the program's input and waits for its end. Returns the exit status, if it has one, and its messages.
    #[must_use]
    pub fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut messages = String::new();
        let mut pipe = self.child.stderr.take().expect("piped");
        pipe.read_to_string(&mut messages).expect("text");
        (self.child.wait().expect("a child of ours").code(), messages)
    }

    /// Checks that the program ends with status 74 and a message that its far memory is lost, with the reason `why`.
    #[track_caller]
    pub fn ends_lost(self, why: &str) {
        let (status, messages) = self.end();
        assert_eq!(status, Some(74), "{messages}");
        assert!(messages.contains("far memory is lost") && messages.contains(why), "{messages}");
    }
}

impl Drop for Steps {
    /// Kills the program if a failed test has left it running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
