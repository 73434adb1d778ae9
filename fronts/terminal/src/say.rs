//! The only ways to standard output and standard error: what is printed there may hold text of other processes.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal as _, Write, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Why the first line that could not be written was not.
static FAILED: OnceLock<String> = OnceLock::new();

/// As `println!`, but trouble is told once, at the end, instead of a panic.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::say::text(format_args!("{}\n", format_args!($($words)*))) };
}
pub use say;

/// As `eprintln!`, with characters escaped that a terminal could obey.
#[macro_export]
macro_rules! complain {
    ($($words:tt)*) => { $crate::say::error(format_args!($($words)*)) };
}
pub use complain;

/// The colours that this command uses, and their end.
const COLOURS: [&str; 8] = ["0", "1", "2", "32", "33", "36", "1;31", "1;32"];

/// Prints words of ours, with characters escaped that a terminal could obey.
pub fn text(words: Arguments<'_>) {
    let words = words.to_string();
    let words = if stdout().is_terminal() { coloured(&words) } else { largesse_text::lines(&words) };
    raw(format_args!("{words}"));
}

/// Prints what the user's own program says, as it is.
pub fn raw(words: Arguments<'_>) {
    match stdout().write_fmt(words).and_then(|()| stdout().flush()) {
        // A reader that has seen enough (`| head`) is no trouble.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            FAILED.get_or_init(|| error.to_string());
        }
        _ => {}
    }
}

/// `1 run`, `3 runs`: a count and its noun, whose plural ends in s.
pub fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints one line on standard error, with characters escaped that a terminal could obey.
pub fn error(words: Arguments<'_>) {
    eprintln!("{}", largesse_text::lines(&words.to_string()));
}

/// Escapes everything harmful but the sequences of [`COLOURS`].
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

/// The exit status of a command that would end with `code` had everything been written.
pub fn end(code: ExitCode) -> ExitCode {
    let Some(error) = FAILED.get() else { return code };
    complain!("largesse: standard output: {error}");
    if code == ExitCode::SUCCESS { ExitCode::from(2) } else { code }
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
