//! Folds text at spaces.

use unicode_width::UnicodeWidthStr as _;

/// Folds `text` at spaces into lines of at most `columns` characters. A longer word is not broken.
pub fn folded(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
