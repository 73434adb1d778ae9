//! Finds the environment variables that have no effect although the user may believe that they have one.

use crate::names::{PREFIX, is_known, nearest};
use crate::threads::{NotThreads, threads};
use core::fmt;

/// The program that reads the environment. Which variables have an effect depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsReader {
    /// `largesse run`, whose program gets all settings.
    Run,
    /// `liblargesse.so` in a program that `largesse run` has not started.
    Library,
    /// `largesse lisp`, whose settings are options.
    Lisp,
    /// A command without a heap. Settings in its environment may be meant for programs that are started later.
    Other,
}

/// A variable without an effect. It prints as a line for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark<'a> {
    /// The name begins with [`PREFIX`], but is not one of Largesse's.
    Unknown(&'a str),
    /// Only `largesse run` can do what the variable says.
    NeedsRun(&'a str),
    /// Only `liblargesse_pin.so`, which is not preloaded, reads the variable.
    NeedsPin(&'a str),
    /// The Lisp has the option `option` instead of the variable, or nothing like it.
    NotForLisp {
        /// Name of the variable.
        name: &'a str,
        /// Name of the option.
        option: Option<&'static str>,
    },
    /// The value of `OMP_NUM_THREADS` is not a number of threads.
    Threads(NotThreads<'a>),
}

impl<'a> Remark<'a> {
    /// Returns the remark about one variable in the environment of `reader`, where `preload` is the value of
    /// `LD_PRELOAD`. Returns `None` if the variable has an effect, is empty, which counts as unset, or is no setting. For
    /// [`Other`](SettingsReader::Other) only unknown names have a remark.
    #[must_use]
    pub fn of(reader: SettingsReader, name: &'a str, value: &'a str, preload: &str) -> Option<Remark<'a>> {
        if value.is_empty() {
            return None;
        }
        let serves = matches!(reader, SettingsReader::Run | SettingsReader::Library);
        match name {
            "OMP_NUM_THREADS" if serves => threads(value).err().map(Remark::Threads),
            "LARGESSE_THREAD_CPUS" if serves => {
                (!preload.contains("liblargesse_pin")).then_some(Remark::NeedsPin(name))
            }
            "LARGESSE_REPORT" if reader == SettingsReader::Library => Some(Remark::NeedsRun(name)),
            "LARGESSE_CHILDREN" if reader == SettingsReader::Library && value == "off" => {
                Some(Remark::NeedsRun(name))
            }
            _ if !name.starts_with(PREFIX) => None,
            _ if !is_known(name) => Some(Remark::Unknown(name)),
            _ if reader == SettingsReader::Lisp => not_for_lisp(name),
            _ => None,
        }
    }
}

/// Returns the remark about a variable of Largesse in the environment of the Lisp; `None` if it is no setting of the
/// library.
fn not_for_lisp(name: &str) -> Option<Remark<'_>> {
    let option = match name {
        "LARGESSE_LOCAL" => Some("--local"),
        "LARGESSE_FAR" => Some("--far"),
        "LARGESSE_PAGE_SIZE" => Some("--page-size"),
        "LARGESSE_PAGES" => Some("--pages"),
        "LARGESSE_AHEAD"
        | "LARGESSE_ALIGN"
        | "LARGESSE_CHILDREN"
        | "LARGESSE_FAULT_ENGINE"
        | "LARGESSE_HEADER"
        | "LARGESSE_ISA"
        | "LARGESSE_LIMIT"
        | "LARGESSE_LOCK"
        | "LARGESSE_MAX_KB"
        | "LARGESSE_MIN_KB"
        | "LARGESSE_NODE"
        | "LARGESSE_PREFETCH"
        | "LARGESSE_REPORT"
        | "LARGESSE_SMALL_BLOCKS"
        | "LARGESSE_STATIC_DATA" => None,
        _ => return None,
    };
    Some(Remark::NotForLisp { name, option })
}

impl fmt::Display for Remark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Unknown(name) => {
                write!(f, "{} is not a variable of Largesse and has no effect", name.escape_debug())?;
                match nearest(name) {
                    Some(known) => write!(f, "; did you mean {known}?"),
                    None => write!(f, "; docs/settings.md lists all variables"),
                }
            }
            Remark::NeedsRun(name) => {
                write!(f, "{name} has an effect only with `largesse run -- PROGRAM`")
            }
            Remark::NeedsPin(name) => {
                write!(f, "{name} has no effect by itself; type `largesse pin --threads LIST -- PROGRAM`")
            }
            Remark::NotForLisp { name, option: Some(option) } => {
                write!(f, "{name} has no effect on the heap of `largesse lisp`; type {option}")
            }
            Remark::NotForLisp { name, option: None } => {
                write!(f, "{name} has no effect on the heap of `largesse lisp`; unset it")
            }
            Remark::Threads(wrong) => wrong.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::VARIABLES;
    use std::string::{String, ToString as _};

    fn words(reader: SettingsReader, name: &str, value: &str) -> String {
        Remark::of(reader, name, value, "").map(|remark| remark.to_string()).unwrap_or_default()
    }

    #[test]
    fn unknown_variables_are_named() {
        for reader in
            [SettingsReader::Run, SettingsReader::Library, SettingsReader::Lisp, SettingsReader::Other]
        {
            let words = |name| words(reader, name, "1");
            assert!(words("LARGESSE_LOCKED").ends_with("has no effect; did you mean LARGESSE_LOCK?"));
            assert!(words("LARGESSE_FOO").contains("LARGESSE_FOO is not a variable of Largesse"));
            assert!(
                words("LARGESSE_\u{1b}[2J").is_ascii() && !words("LARGESSE_\u{1b}[2J").contains('\u{1b}')
            );
            assert_eq!((words("HOME"), super::tests::words(reader, "LARGESSE_FOO", "")), Default::default());
        }
    }

    /// The test fails for a new variable until this table says where it has an effect.
    #[test]
    fn variables_without_effect_are_named() {
        let ours = ["BENCH_TOUCH", "CI_SECONDS", "DEEP", "FORETOLD", "LIBRARY", "PID", "REDIS_PASSWORD"];
        let ours = [&ours[..], &["REDIS_PASSWORD_FILE", "REDIS_USER", "REPORT_FOLDER"]].concat();
        for name in VARIABLES {
            let short = name.trim_start_matches(PREFIX);
            let named = |reader| !words(reader, name, "off").is_empty();
            let want = match short {
                "REPORT" | "CHILDREN" => [false, true, true, false],
                "THREAD_CPUS" => [true, true, false, false],
                _ if ours.contains(&short) || short.starts_with("TESTS_") => [false; 4],
                _ => [false, false, true, false],
            };
            assert_eq!(
                [SettingsReader::Run, SettingsReader::Library, SettingsReader::Lisp, SettingsReader::Other]
                    .map(named),
                want,
                "{name}"
            );
        }
        let pin = "/usr/lib/largesse/liblargesse_pin.so";
        assert_eq!(Remark::of(SettingsReader::Run, "LARGESSE_THREAD_CPUS", "0", pin), None);
        assert_eq!(Remark::of(SettingsReader::Library, "LARGESSE_CHILDREN", "on", ""), None);
        assert!(words(SettingsReader::Lisp, "LARGESSE_LOCAL", "4G").ends_with("type --local"));
    }

    #[test]
    fn bad_numbers_of_threads_are_named_where_they_count() {
        assert!(words(SettingsReader::Run, "OMP_NUM_THREADS", "abc").contains("OMP_NUM_THREADS=abc"));
        assert_eq!(words(SettingsReader::Other, "OMP_NUM_THREADS", "abc"), "");
        assert_eq!(words(SettingsReader::Library, "OMP_NUM_THREADS", "4"), "");
    }
}
