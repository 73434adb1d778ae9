//! Makes texts from other processes harmless for terminals, JSON and XML, and writes sizes.
//!
//! # Picture
//! ```text
//!   command lines, labels                 ─► line  ─► one line of a table or a message
//!   names of files and programs           ─► name  ─► the same
//!   values of options and variables       ─► word  ─► the same, in quotes where they have spaces
//!   a whole message, table, JSON, picture ─► lines ─► standard output and error, files
//!   a number of bytes                     ─► size  ─► `1.5 GiB`, the same in every table, message and picture
//!   a number of things                    ─► counted ─► `1 page`, `3 pages`
//! ```
//! # Knows / does not know
//! Knows which characters are not text. Does not know where a text comes from, nor where it goes.
//! # Invariants
//! 1. No result contains control characters, characters that change the direction of text, or those that XML 1.0
//!    forbids, except ends of lines and tabs from [`lines`].
//! 2. Escapes are those of JSON strings: [`lines`] keeps the meaning of a JSON text.

mod size;

pub use size::size;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;

/// Returns a count and its noun, whose plural ends in s, or in es after an s: `1 run`, `3 runs`, `2 processes`.
#[must_use]
pub fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    let ending = match count {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

/// Returns `bytes` as text on one line. Harmful characters, ends of lines among them, become escapes such as
/// `\u001b` and `\n`, and bytes that are not UTF-8 become escapes such as `\xff`.
#[must_use]
pub fn line(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::new();
    for chunk in bytes.as_ref().utf8_chunks() {
        escape(chunk.valid(), is_harmful, &mut text);
        let _ = write!(text, "{}", chunk.invalid().escape_ascii());
    }
    text
}

/// Returns the name of a file, folder, program or variable as [`line`] does.
#[must_use]
pub fn name(name: impl AsRef<OsStr>) -> String {
    line(name.as_ref().as_encoded_bytes())
}

/// Returns a value that the user typed as [`line`] does, and in quotes if it is empty or has white space, so that the
/// reader of a message sees where it begins and ends.
#[must_use]
pub fn word(value: impl AsRef<OsStr>) -> String {
    let text = name(value);
    if text.is_empty() || text.contains(char::is_whitespace) { format!("'{text}'") } else { text }
}

/// Replaces harmful characters of a text by escapes, except ends of lines and tabs.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    let is_harmful = |letter| !matches!(letter, '\n' | '\t') && is_harmful(letter);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::new();
    escape(text, is_harmful, &mut harmless);
    Cow::Owned(harmless)
}

fn escape(text: &str, is_harmful: impl Fn(char) -> bool, into: &mut String) {
    for letter in text.chars() {
        match letter {
            letter if !is_harmful(letter) => into.push(letter),
            '\n' => into.push_str("\\n"),
            '\t' => into.push_str("\\t"),
            '\r' => into.push_str("\\r"),
            letter => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(into, "\\u{unit:04x}");
                }
            }
        }
    }
}

/// Returns whether a terminal could interpret `letter`, it could deceive a reader, or XML 1.0 forbids it.
fn is_harmful(letter: char) -> bool {
    match letter {
        // The control characters C0 and C1, and delete.
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        // Marks, embeddings, overrides and isolates of the direction of text.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Ends of lines and paragraphs.
        '\u{2028}' | '\u{2029}' => true,
        // Code points that are not characters, and invisible tags.
        '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_characters_are_escaped() {
        let cases: [(&[u8], &str); 10] = [
            (b"R -f a.R", "R -f a.R"),
            ("für é 日本 🦀 <&>\"".as_bytes(), "für é 日本 🦀 <&>\""),
            (b"\x1b[2J\x1b]0;title\x07", "\\u001b[2J\\u001b]0;title\\u0007"),
            (b"one\ntwo\r\tthree", "one\\ntwo\\r\\tthree"),
            ("\u{9b}31m\u{7f}\u{85}".as_bytes(), "\\u009b31m\\u007f\\u0085"),
            ("a\u{202e}b\u{2066}c\u{200f}".as_bytes(), "a\\u202eb\\u2066c\\u200f"),
            ("\u{2028}\u{fffe}\u{ffff}".as_bytes(), "\\u2028\\ufffe\\uffff"),
            ("\u{e0041}".as_bytes(), "\\udb40\\udc41"),
            (b"a\xffb\x9b", "a\\xffb\\x9b"),
            (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        ];
        for (bytes, want) in cases {
            assert_eq!(line(bytes), want, "{bytes:?}");
        }
    }

    #[test]
    fn words_show_where_they_end() {
        let cases = [
            ("4G", "4G"),
            ("", "''"),
            (" ", "' '"),
            ("4 GB", "'4 GB'"),
            ("a\n", "a\\n"),
            ("\u{a0}", "'\u{a0}'"),
        ];
        for (value, want) in cases {
            assert_eq!(word(value), want, "{value:?}");
        }
        assert_eq!(name("a b\nc"), "a b\\nc");
    }

    #[test]
    fn lines_keeps_ends_of_lines() {
        assert_eq!(lines("one\n\ttwo\x1b[0m\n"), "one\n\ttwo\\u001b[0m\n");
        assert!(matches!(lines("nothing\nto do"), Cow::Borrowed(_)));
    }
}
