//! Implements the files of `compile-file`: expanded forms, which `load` evaluates and compiles.
//!
//! # Picture
//! ```text
//!   header line    ;largesse-lisp FORMAT VERSION
//!   then, for each form of the source,   (form . its definitions that have machine code)
//! ```
//! A value is a tag and its contents; numbers are encoded with seven bits per byte, least significant first. Objects
//! are numbered in order of appearance, and further occurrences are written as numbers, which preserves sharing and
//! cycles. Symbols are package and name. Machine code is not in the file, as it holds addresses of this process.
//! # Invariant
//! Reading any file, whatever its origin, ends in values or in an error.

mod read;
mod tag;
mod write;

use crate::builtin::{Args, Builtin, builtin};
use crate::builtins::stream::path_of;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{Value, symbol};
use read::Reader;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::SystemTime;
use write::Writer;

pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("LARGESSE::STORE", 2, 2, store),
    builtin("LARGESSE::SOURCE-FILE", 1, 1, source_file),
    builtin("FILE-NEWER", 2, 2, |cx, args| {
        let (new, old) = (path_of(cx, args[0])?, path_of(cx, args[1])?);
        let is = cx.blocked(|| match (changed(&new), changed(&old)) {
            (Some(new), Some(old)) => new > old,
            _ => true,
        });
        Ok(cx.truth(is))
    }),
];

const START: &[u8] = b";largesse-lisp ";
/// The header of a file contains the version, as expansions call functions of the library.
const HEADER: &str = concat!(";largesse-lisp 1 ", env!("CARGO_PKG_VERSION"), "\n");

/// Returns the path of a source file, which may be given without its `.l`.
fn source_file(cx: &mut Context, args: Args<'_>) -> Answer {
    let name = path_of(cx, args[0])?;
    let all = [name.clone(), format!("{name}.l")];
    match cx.blocked(|| all.into_iter().find(|path| Path::new(path).is_file())) {
        Some(path) => cx.string(&path),
        None => {
            cx.error_about(ErrorClass::Io, format!("{name}: no such file, also not as {name}.l"), args[0])
        }
    }
}

/// Implements `(largesse::store path entries)`, which writes the whole file or leaves the old one.
fn store(cx: &mut Context, args: Args<'_>) -> Answer {
    let path = path_of(cx, args[0])?;
    let mut bytes = HEADER.as_bytes().to_vec();
    for entry in args[1].iter() {
        Writer::new(&mut bytes).value(cx, entry)?;
    }
    let written = cx.blocked(|| replace(&path, &bytes));
    cx.io(written, &path)?;
    Ok(args[0])
}

/// Gives the file `path` new contents in one step. They are first written to a new file in the same folder, which is
/// made under a random name: other users of a shared folder can neither guess it nor put a link there.
fn replace(path: &str, bytes: &[u8]) -> io::Result<()> {
    let new = format!("{path}.{:016x}", RandomState::new().build_hasher().finish());
    let mut file = File::create_new(&new)?;
    let done = file.write_all(bytes).and_then(|()| std::fs::rename(&new, path));
    done.inspect_err(|_| _ = std::fs::remove_file(&new))
}

/// Returns whether a text was written by `compile-file`.
pub(crate) fn is_stored(text: &[u8]) -> bool {
    text.starts_with(START)
}

fn changed(path: &str) -> Option<SystemTime> {
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    about.modified().ok()
}

/// Returns which of a compiled file and its source to load: the newer, or the one that exists.
pub(crate) fn newer<'a>(compiled: &'a str, source: &'a str) -> Option<&'a str> {
    match (changed(compiled), changed(source)) {
        (Some(compiled_at), Some(source_at)) if compiled_at < source_at => Some(source),
        (Some(_), _) => Some(compiled),
        (None, Some(_)) => Some(source),
        (None, None) => None,
    }
}

impl Context {
    /// Evaluates every form of a compiled file and compiles its definitions to machine code.
    pub(crate) fn load_stored(&mut self, path: &str, text: &[u8]) -> Result<(), Exit> {
        let Some(bytes) = text.strip_prefix(HEADER.as_bytes()) else {
            let source = Path::new(path).with_extension("l");
            let message =
                format!("{path} was compiled by another version: (compile-file \"{}\")", source.display());
            return self.error(ErrorClass::Io, message);
        };
        let compile = self.installed_name("COMPILE")?.get(symbol::FUNCTION);
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let mark = self.mark();
            let entry = reader.entry(self, path)?;
            self.push(entry)?;
            self.eval(entry.car())?;
            for defined in entry.cdr().iter() {
                // The name of a function, or (class . selector).
                if defined.is_cons() {
                    let class = self.eval(defined.car())?;
                    self.apply(compile, &[class, defined.cdr()])?;
                } else {
                    self.apply(compile, &[defined])?;
                }
            }
            self.release(mark);
            self.poll()?;
        }
        Ok(())
    }

    /// Signals that a value cannot be stored.
    fn not_stored<T>(&mut self, value: Value) -> Result<T, Exit> {
        let shown = self.show_short(value);
        self.error_about(ErrorClass::Type, format!("{shown} cannot be written to a compiled file"), value)
    }
}
