//! Describes the page that a table is printed on: its width, and the characters that it can show.
#![expect(clippy::disallowed_methods, reason = "the locale and the terminal are told by the environment")]

use super::fold::folded;
use std::io::IsTerminal as _;
use unicode_width::UnicodeWidthStr as _;

/// The width of the output and the characters that it can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Number of characters in a line; `None` if lines may have any length, as in a pipe or file.
    pub columns: Option<usize>,
    /// Whether all characters of Unicode are shown; otherwise only ASCII is.
    pub unicode: bool,
    /// Whether lines are drawn with box characters.
    pub boxes: bool,
}

impl Paper {
    /// Describes the current standard output. Lines are drawn with `-` unless it is a terminal with a UTF-8 locale and
    /// neither `NO_COLOR` nor `TERM=dumb` asks for plain text.
    pub fn here() -> Paper {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let unicode = is_utf8(&get);
        let plain = get("NO_COLOR").is_some() || get("TERM").as_deref() == Some("dumb");
        let terminal = std::io::stdout().is_terminal();
        Paper { columns: terminal_columns(), unicode, boxes: unicode && terminal && !plain }
    }

    /// Describes a page of `columns` characters in ASCII, for tests.
    #[must_use]
    pub fn plain(columns: Option<usize>) -> Paper {
        Paper { columns, unicode: false, boxes: false }
    }

    /// Replaces the characters of our own messages, such as `…`, that this page cannot show. Other characters are left
    /// alone, since they are parts of names.
    pub fn text(self, text: &str) -> String {
        if self.unicode {
            return text.to_owned();
        }
        let mut plain = String::with_capacity(text.len());
        for letter in text.chars() {
            match letter {
                '─' | '–' => plain.push('-'),
                '…' => plain.push_str("..."),
                '·' => plain.push('|'),
                '±' => plain.push_str("+-"),
                // The micro sign, and the Greek letter that looks the same.
                'µ' | 'μ' => plain.push('u'),
                other => plain.push(other),
            }
        }
        plain
    }

    /// Replaces characters as [`Paper::text`] does, and folds lines that are too wide at spaces.
    pub fn page(self, text: &str) -> String {
        let text = self.text(text);
        let Some(columns) = self.columns else { return text };
        let mut page = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            if line.trim_end().width() <= columns {
                page.push_str(line);
                continue;
            }
            let indent = line.len() - line.trim_start_matches(' ').len();
            for part in folded(line, columns.saturating_sub(indent)) {
                page += &" ".repeat(indent);
                page += &part;
                page.push('\n');
            }
        }
        page
    }

    /// Returns the mark at the end of a text that was cut.
    pub(super) fn cut(self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// Returns a horizontal line of `columns` characters.
    pub(super) fn rule(self, columns: usize) -> String {
        if self.boxes { "─" } else { "-" }.repeat(columns)
    }
}

/// Returns the number of columns of the terminal on standard output; `None` if that is not a terminal.
#[must_use]
pub fn terminal_columns() -> Option<usize> {
    let mut window = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one `winsize`, which is what the pointer points to.
    let rc = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut window) };
    (rc == 0 && window.ws_col > 0).then(|| usize::from(window.ws_col))
}

/// Returns whether the locale's character set is UTF-8. The order of the variables is that of the C library.
fn is_utf8(get: &dyn Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(get).unwrap_or_default();
    let codeset = locale.split('.').nth(1).unwrap_or_default().to_ascii_lowercase();
    codeset.starts_with("utf-8") || codeset.starts_with("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], want: bool) {
        let get =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, it)| (*it).to_owned());
        assert_eq!(is_utf8(&get), want, "UTF-8 in {variables:?}");
    }

    #[test]
    fn only_utf8_locales_get_unicode() {
        check(&[], false);
        check(&[("LANG", "C")], false);
        check(&[("LANG", "POSIX")], false);
        check(&[("LANG", "de_DE.ISO-8859-1")], false);
        check(&[("LANG", "de_DE")], false);
        check(&[("LANG", "en_US.UTF-8")], true);
        check(&[("LANG", "C.utf8")], true);
        check(&[("LANG", "ja_JP.UTF-8@cjk")], true);
        check(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], false);
        check(&[("LC_CTYPE", "C.UTF-8"), ("LANG", "C")], true);
    }

    #[test]
    fn long_lines_are_folded_at_spaces() {
        let page = Paper::plain(Some(20)).page("short\n  may run on processors 262144 to 262200\n");
        assert_eq!(page, "short\n  may run on\n  processors 262144\n  to 262200\n");
        let page = Paper::plain(None).page("as wide as it is, whatever that may be\n");
        assert_eq!(page.lines().count(), 1, "{page}");
    }

    #[test]
    fn plain_pages_have_ascii_only() {
        let text = Paper::plain(None).text("pages auto · ±2.0% – R -f … 3 µs");
        assert_eq!(text, "pages auto | +-2.0% - R -f ... 3 us");
        assert!(Paper::plain(None).rule(3) == "---");
    }
}
