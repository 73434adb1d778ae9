//! What a command says on the standard output.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Why the first line that could not be written was not.
static FAILED: OnceLock<String> = OnceLock::new();

/// As `println!`, but trouble is told once, at the end, instead of a panic.
macro_rules! say {
    ($($words:tt)*) => { $crate::say::text(format_args!("{}\n", format_args!($($words)*))) };
}
pub(crate) use say;

pub(crate) fn text(words: Arguments<'_>) {
    match stdout().write_fmt(words).and_then(|()| stdout().flush()) {
        // A reader that has seen enough (`| head`) is no trouble.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            FAILED.get_or_init(|| error.to_string());
        }
        _ => {}
    }
}

/// `1 run`, `3 runs`: a count and its noun, whose plural ends in s.
pub(crate) fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The exit status of a command that would end with `code` had everything been written.
pub(crate) fn end(code: ExitCode) -> ExitCode {
    let Some(error) = FAILED.get() else { return code };
    eprintln!("largesse: standard output: {error}");
    if code == ExitCode::SUCCESS { ExitCode::from(2) } else { code }
}
