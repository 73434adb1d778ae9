//! Files that `compile-file` writes: forms that are read and expanded, which `load` evaluates and compiles.
//!
//! # Picture
//! ```text
//!   header line    ;largesse-lisp FORMAT VERSION
//!   then, for each form of the source,   (form . what it defines that has machine code)
//! ```
//! A value is a tag and what belongs to it; numbers are written as seven bits a byte, least first. Objects are numbered
//! as they are met, and the second time a number stands for one: what was shared, or led back to itself, does so again.
//! Symbols are package and name. Machine code itself is not in the file: it holds addresses of this process.
//! # Invariant
//! Whoever made the file, reading it ends in values or in an error.

mod read;
mod write;

use crate::builtin::{Args, Builtin, builtin};
use crate::builtins::stream::path_of;
use crate::context::{Answer, Context};
use crate::error::{Class, Exit};
use crate::value::{Value, symbol};
use read::Reader;
use std::io::Write as _;
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
/// Expansions call functions of the library, so a file belongs to one version.
const HEADER: &str = concat!(";largesse-lisp 1 ", env!("CARGO_PKG_VERSION"), "\n");

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Nil,
    Fixnum,
    Float,
    /// One that was met before: its number.
    Again,
    Cons,
    Symbol,
    /// Without a package.
    Uninterned,
    String,
    Vector,
    Floats,
    Integers,
    Bits,
    Array,
    Bignum,
    Ratio,
}

const TAGS: [Tag; 15] = [
    Tag::Nil,
    Tag::Fixnum,
    Tag::Float,
    Tag::Again,
    Tag::Cons,
    Tag::Symbol,
    Tag::Uninterned,
    Tag::String,
    Tag::Vector,
    Tag::Floats,
    Tag::Integers,
    Tag::Bits,
    Tag::Array,
    Tag::Bignum,
    Tag::Ratio,
];

/// The path of a source file, which may be given without its `.l`.
fn source_file(cx: &mut Context, args: Args<'_>) -> Answer {
    let name = path_of(cx, args[0])?;
    let all = [name.clone(), format!("{name}.l")];
    match cx.blocked(|| all.into_iter().find(|path| Path::new(path).is_file())) {
        Some(path) => cx.string(&path),
        None => cx.error_about(Class::Io, format!("{name}: no such file, also not as {name}.l"), args[0]),
    }
}

/// `(largesse::store path entries)`: the whole file, or no change.
fn store(cx: &mut Context, args: Args<'_>) -> Answer {
    let path = path_of(cx, args[0])?;
    let mut bytes = HEADER.as_bytes().to_vec();
    for entry in args[1].iter() {
        Writer::new(&mut bytes).value(cx, entry)?;
    }
    let new = format!("{path}.{}", std::process::id());
    let written = cx.blocked(|| {
        let done = std::fs::File::create(&new).and_then(|mut file| file.write_all(&bytes));
        let done = done.and_then(|()| std::fs::rename(&new, &path));
        done.inspect_err(|_| _ = std::fs::remove_file(&new))
    });
    cx.io(written, &path)?;
    Ok(args[0])
}

/// Whether `compile-file` wrote it.
pub(crate) fn is_stored(text: &[u8]) -> bool {
    text.starts_with(START)
}

fn changed(path: &str) -> Option<SystemTime> {
    let about = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    about.modified().ok()
}

/// Of a compiled file and its source, the one to load; the other if it is not there.
pub(crate) fn newer<'a>(compiled: &'a str, source: &'a str) -> Option<&'a str> {
    match (changed(compiled), changed(source)) {
        (Some(compiled_at), Some(source_at)) if compiled_at < source_at => Some(source),
        (Some(_), _) => Some(compiled),
        (None, Some(_)) => Some(source),
        (None, None) => None,
    }
}

impl Context {
    /// Evaluates every form of a compiled file, and makes the machine code.
    pub(crate) fn load_stored(&mut self, path: &str, text: &[u8]) -> Result<(), Exit> {
        let Some(bytes) = text.strip_prefix(HEADER.as_bytes()) else {
            let source = Path::new(path).with_extension("l");
            let message =
                format!("{path} was compiled by another version: (compile-file \"{}\")", source.display());
            return self.error(Class::Io, message);
        };
        let compile = self.installed_name("COMPILE")?.get(symbol::FUNCTION);
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let mark = self.mark();
            let entry = reader.entry(self, path)?;
            self.push(entry)?;
            self.eval(entry.car())?;
            for defined in entry.cdr().iter() {
                // A function's name, or (class . selector).
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

    /// Why a value is in no file.
    fn not_stored<T>(&mut self, value: Value) -> Result<T, Exit> {
        let shown = self.show_short(value);
        self.error_about(Class::Type, format!("{shown} cannot be written to a compiled file"), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_its_number() {
        for (number, tag) in TAGS.into_iter().enumerate() {
            assert_eq!(tag as usize, number);
        }
    }
}
