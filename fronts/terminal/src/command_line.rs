//! Prints help, versions and messages about wrong options, instead of `clap`, which prints the words of the command line
//! as they are and ignores that its output was lost.

use crate::say;
use clap::Error;
use clap::error::{ContextKind, ContextValue};
use std::process::ExitCode;

/// Prints the help or the version that was asked for, or what is wrong with the command line; returns the exit status.
pub fn ended(mut error: Error) -> ExitCode {
    escape(&mut error);
    let printed = error.print();
    if !error.use_stderr() {
        say::note(printed);
    }
    say::end(u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Replaces harmful characters in the words of the command line that an error quotes.
fn escape(error: &mut Error) {
    let mut escaped = Vec::new();
    let mut is_harmful = false;
    let mut line = |text: &String| {
        let line = largesse_text::line(text);
        is_harmful |= line != *text;
        line
    };
    for (kind, value) in error.context() {
        match value {
            ContextValue::String(text) => escaped.push((kind, ContextValue::String(line(text)))),
            ContextValue::Strings(texts) => {
                escaped.push((kind, ContextValue::Strings(texts.iter().map(&mut line).collect())));
            }
            _ => {}
        }
    }
    for (kind, value) in escaped {
        error.insert(kind, value);
    }
    // Suggestions repeat the words in a form that cannot be changed.
    if is_harmful {
        error.remove(ContextKind::Suggested);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    #[test]
    fn quoted_words_are_escaped() {
        let command = Command::new("test").arg(Arg::new("size").long("size").value_parser(["1", "2"]));
        let command = command.arg(Arg::new("name"));
        for words in [["test", "--a\n\u{9b}b"], ["test", "--size=a\n\u{9b}b"]] {
            let mut error = command.clone().try_get_matches_from(words).unwrap_err();
            escape(&mut error);
            let said = error.render().to_string();
            assert!(said.contains("a\\n\\u009bb") && !said.contains("a\n"), "{said}");
        }
    }
}
