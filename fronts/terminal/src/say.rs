//! Writes to standard output and standard error, and escapes text of other processes on the way.

use crate::table::Paper;
pub use largesse_text::counted;
use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The error of the first line that could not be written.
static FAILED: OnceLock<String> = OnceLock::new();

/// Prints a line like `println!`, but reports a failed write once, at the end, instead of with a panic.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::say::text(format_args!("{}\n", format_args!($($words)*))) };
}
pub use say;

/// Prints one line on standard error like `eprintln!`, with ends of lines escaped as well as characters that a terminal
/// could obey.
#[macro_export]
macro_rules! complain {
    ($($words:tt)*) => { $crate::say::error(format_args!($($words)*)) };
}
pub use complain;

/// Prints a message of several lines on standard error. Texts from outside must have passed through [`name`](crate::name),
/// [`word`](crate::word) or [`line`](crate::line), since only other harmful characters are escaped here.
#[macro_export]
macro_rules! complain_lines {
    ($($words:tt)*) => { $crate::say::errors(format_args!($($words)*)) };
}
pub use complain_lines;

/// Escape codes of the colours that this command uses, and the code that ends a colour.
const COLOURS: [&str; 8] = ["0", "1", "2", "32", "33", "36", "1;31", "1;32"];

/// Prints our own words, with characters escaped that a terminal could obey.
pub fn text(words: Arguments<'_>) {
    let words = words.to_string();
    let words = if stdout().is_terminal() { coloured(&words) } else { largesse_text::lines(&words) };
    raw(format_args!("{words}"));
}

/// Prints the output of the user's own program unchanged.
pub fn raw(words: Arguments<'_>) {
    note(stdout().write_fmt(words));
}

/// Flushes standard output, to which something was written, and notes the first error for [`end`].
pub fn note(written: io::Result<()>) {
    match written.and_then(|()| stdout().flush()) {
        // A reader that closes the pipe early (`| head`) is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            FAILED.get_or_init(|| error.to_string());
        }
        _ => {}
    }
}

/// Prints one line on standard error, with ends of lines escaped as well as characters that a terminal could obey.
pub fn error(words: Arguments<'_>) {
    complained(&largesse_text::line(words.to_string()));
}

/// Prints lines on standard error, with characters escaped that a terminal could obey.
pub fn errors(words: Arguments<'_>) {
    complained(&largesse_text::lines(&words.to_string()));
}

fn complained(words: &str) {
    let words = Paper::here().text(words);
    // That standard error cannot be written cannot be reported; the exit status is that of an error already.
    let _ = io::stderr().write_all(format!("{words}\n").as_bytes());
}

/// Escapes every control character except the sequences of [`COLOURS`].
fn coloured(words: &str) -> Cow<'_, str> {
    const START: &str = "\x1b[";
    let Some((before, rest)) = words.split_once(START) else { return largesse_text::lines(words) };
    let mut text = largesse_text::lines(before).into_owned();
    for part in rest.split(START) {
        match part.split_once('m').filter(|(code, _)| COLOURS.contains(code)) {
            Some((code, after)) => text += &format!("{START}{code}m{}", largesse_text::lines(after)),
            None => text += &largesse_text::lines(&format!("{START}{part}")),
        }
    }
    text.into()
}

/// Exit status of a command whose output was lost, and that had no other error.
const LOST: u8 = 2;

/// Returns `code`, or the exit status of a failed write if some output was lost.
pub fn end(code: ExitCode) -> ExitCode {
    if is_lost() && code == ExitCode::SUCCESS { ExitCode::from(LOST) } else { code }
}

/// Returns `status` as [`end`] does, for a command that ends with `exit`.
#[must_use]
pub fn end_with(status: i32) -> i32 {
    if is_lost() && status == 0 { LOST.into() } else { status }
}

/// Returns whether some output was lost, and prints why.
fn is_lost() -> bool {
    note(Ok(()));
    let Some(error) = FAILED.get() else { return false };
    complain!("largesse: standard output: {error}");
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_colours_reach_a_terminal() {
        let own = "\x1b[1;32mfine\x1b[0m\nnext\n";
        assert_eq!(coloured(own), own);
        assert_eq!(coloured("\x1b[2Ja\x1b[8mb\x1b[2mc\x1b]0;m"), "\\u001b[2Ja\\u001b[8mb\x1b[2mc\\u001b]0;m");
    }
}
