//! Describes the command line, and separates the command's own words from those of the program that it runs:
//! `largesse lisp program.l --flag`.

use crate::memory;
use clap::error::ErrorKind;
use clap::{Parser, ValueEnum};
use std::ffi::OsString;

/// Run Lisp: a dialect of EusLisp whose heap is delegated to threads.
///
/// Files are loaded, then expressions are evaluated; without either, a prompt reads forms. Options after a file that
/// are none of these are the program's, in `lisp::*eustop-argument*`. Exit status: the argument
/// of `(exit n)`, 1 after an error, 130 after Ctrl-C, 74 when far memory is lost.
#[derive(Debug, Parser)]
#[command(name = "largesse-lisp", bin_name = "largesse lisp", version)]
pub(super) struct Args {
    /// Files to load and, as for EusLisp, forms in parentheses to evaluate, in order
    pub(super) files: Vec<String>,
    /// Evaluate this expression after the files; may be repeated
    #[arg(short, long = "eval", value_name = "EXPR")]
    pub(super) expressions: Vec<String>,
    /// Limit the heap to this size, e.g. 512M, 4G [default: half of the machine's memory, or four times
    /// the machine's memory with --local]
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    pub(super) heap: Option<usize>,
    /// Choose how threads that allocate are synchronized with each other
    #[arg(long, value_enum, default_value_t = Synchronisation::Safepoint)]
    pub(super) sync: Synchronisation,
    /// Collect garbage with this many threads [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) gc_threads: Option<u16>,
    /// Choose the page size of the heap
    #[arg(long, value_enum, default_value_t = memory::HeapPages::Thp, conflicts_with = "local")]
    pub(super) pages: memory::HeapPages,
    /// Keep at most this much of the heap in local memory, as 4G, 512M or 50% (of the heap); the rest is
    /// in a store
    #[arg(long, value_name = "SIZE|PERCENT", allow_hyphen_values = true, help_heading = "Far memory")]
    pub(super) local: Option<OsString>,
    /// Keep the rest in this store, named as for `largesse run` [default: a file in $TMPDIR or /var/tmp]
    #[arg(long, value_name = "STORE", allow_hyphen_values = true, help_heading = "Far memory")]
    pub(super) far: Option<OsString>,
    /// Move this many bytes between memory and store at a time: auto, or 4K, 8K and so on to 2M [default: auto]
    #[arg(long, value_name = "auto|SIZE", allow_hyphen_values = true, help_heading = "Far memory")]
    pub(super) page_size: Option<OsString>,
    /// Print what was allocated and how, at the end
    #[arg(long)]
    pub(super) stats: bool,
    /// Collect at every n-th allocation, verify the heap afterwards, and overwrite dead objects: for tests
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    pub(super) stress: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Synchronisation {
    /// One lock around every allocation, without delegation
    Mutex,
    /// Delegation under a read lock, which a collection takes for writing
    Rwlock,
    /// Delegation without any lock; threads stop at safepoints
    Safepoint,
}

/// The parsed command line, and the program's own arguments.
pub(super) struct Words {
    pub(super) args: Args,
    pub(super) program: Vec<String>,
}

/// Parses the words of the command line. The program's arguments begin with the first option after a file that is none
/// of ours; `--help` and `--version` after a file are the program's, too.
pub(super) fn parse(words: &[OsString]) -> Result<Words, clap::Error> {
    let error = match Args::try_parse_from(words) {
        Ok(args) => return Ok(Words { args, program: Vec::new() }),
        Err(error) => error,
    };
    for end in 1..words.len() {
        let Ok(args) = Args::try_parse_from(&words[..end]) else { continue };
        if args.files.is_empty() || !words[end].as_encoded_bytes().starts_with(b"-") {
            continue;
        }
        if let Err(refused) = Args::try_parse_from(&words[..=end])
            && is_foreign(refused.kind())
        {
            let program = words[end..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
            return Ok(Words { args, program });
        }
    }
    Err(error)
}

/// Returns whether an option that parses so is the program's.
fn is_foreign(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnknownArgument | ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<(Vec<String>, usize, Vec<String>), ErrorKind> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        match parse(&words) {
            Ok(words) => Ok((words.args.files, words.args.expressions.len(), words.program)),
            Err(error) => Err(error.kind()),
        }
    }

    #[test]
    fn options_of_a_program_follow_its_file() {
        let files = vec!["a.l".to_owned()];
        assert_eq!(words("lisp a.l -e 1"), Ok((files.clone(), 1, vec![])));
        assert_eq!(words("lisp a.l --help"), Ok((files.clone(), 0, vec!["--help".to_owned()])));
        let all = vec!["--out".to_owned(), "b".to_owned(), "--stats".to_owned()];
        assert_eq!(words("lisp -e 1 a.l --out b --stats"), Ok((files, 1, all)));
    }

    #[test]
    fn options_without_a_file_are_ours() {
        assert_eq!(words("lisp --out"), Err(ErrorKind::UnknownArgument));
        assert_eq!(words("lisp --help"), Err(ErrorKind::DisplayHelp));
        assert_eq!(words("lisp a.l --heap"), Err(ErrorKind::InvalidValue));
    }
}
