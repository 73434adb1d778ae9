//! Reads `OMP_NUM_THREADS`. A wrong value only causes a message, because the variable belongs to OpenMP.

use core::fmt;

/// Largest number of threads that is accepted: Linux can have no more in all processes together (`PID_MAX_LIMIT`).
const MOST: usize = 1 << 22;

/// Reads the number of threads of the outermost parallel level: `4`, or the first number of `4,2`.
pub fn threads(text: &str) -> Result<usize, NotThreads<'_>> {
    let mut levels = text.split(',').map(|level| {
        let level = level.trim();
        let digits = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
        level.parse().ok().filter(|threads: &usize| digits && (1..=MOST).contains(threads))
    });
    let first = levels.next().flatten();
    first.filter(|_| levels.all(|level| level.is_some())).ok_or(NotThreads(text))
}

/// A value that is not a number of threads. It prints as a line for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotThreads<'a>(&'a str);

impl fmt::Display for NotThreads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.0.is_empty() || self.0.contains(char::is_whitespace) { "'" } else { "" };
        write!(
            f,
            "OMP_NUM_THREADS={quote}{}{quote} is not understood, so Largesse's kernels use every processor; \
             type a whole number from 1 to {MOST}, such as 4, or a list such as 4,2",
            self.0.escape_debug()
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString as _;

    #[test]
    fn first_level_is_used() {
        for (text, want) in [("4", 4), (" 4 ", 4), ("4,2", 4), ("1 , 8", 1)] {
            assert_eq!(threads(text), Ok(want), "{text}");
        }
        assert_eq!(threads("4194304"), Ok(4_194_304));
        let wrong = ["abc", "", "0", "-1", "+4", "4;2", "4,", "4,x", "4 threads"];
        for text in
            wrong.into_iter().chain(["4194305", "99999999999", "99999999999999999999", "4,99999999999"])
        {
            let message = threads(text).expect_err(text).to_string();
            assert!(message.contains("type a whole number from 1 to 4194304, such as 4"), "{message}");
        }
    }

    #[test]
    fn blank_values_are_quoted() {
        assert!(threads(" ").unwrap_err().to_string().starts_with("OMP_NUM_THREADS=' ' is"));
        assert!(
            threads("a\n\u{1b}").unwrap_err().to_string().starts_with("OMP_NUM_THREADS='a\\n\\u{1b}' is")
        );
    }
}
