//! Finds and evaluates source files.

use super::stream::path_of;
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit};
use crate::reader::{Reader, Source};
use crate::stored::{is_stored, newer};
use crate::value::{ObjectKind, Value};
use std::io::Read as _;
use std::path::Path;

pub(super) const BUILTINS: &[Builtin] = &[builtin("LOAD", 1, MANY, load)];

impl Context {
    /// Returns the file of a name: the name itself, the compiled file (`.lc`) unless the source is newer, or the
    /// source, in the directories of `*load-path*`.
    fn found_file(&mut self, name: &str) -> Result<Option<String>, Exit> {
        let mut directories = vec![String::new()];
        for directory in self.global_value(self.world.names.load_path).iter() {
            if directory.is(ObjectKind::String) {
                let text = directory.text();
                directories.push(if text.ends_with('/') || text.is_empty() {
                    text.into_owned()
                } else {
                    format!("{text}/")
                });
            }
        }
        Ok(self.blocked(|| {
            directories.iter().find_map(|directory| {
                let named = |ending: &str| format!("{directory}{name}{ending}");
                let is_file = |path: &String| Path::new(path).is_file();
                Some(named(""))
                    .filter(is_file)
                    .or_else(|| newer(&named(".lc"), &named(".l")).map(str::to_owned))
                    .or_else(|| Some(named(".lsp")).filter(is_file))
            })
        }))
    }

    /// Evaluates a file form by form; changes of the current package end with the file.
    pub(crate) fn load_file(&mut self, name: &str) -> Answer {
        let Some(path) = self.found_file(name)? else {
            if self.blocked(|| Path::new(name).is_dir()) {
                return self.fail(ErrorClass::Io, format!("{name} is a folder, not a file"));
            }
            return self.fail(ErrorClass::Io, format!("{name}: no such file, also not as {name}.l"));
        };
        let read = self.blocked(|| {
            let mut text = Vec::new();
            std::fs::File::open(&path)?.read_to_end(&mut text).map(|_| text)
        });
        let text = self.io(read, &path)?;
        let shown = self.string(&path)?;
        let saved = self.save();
        self.environment = Value::NIL;
        self.local_functions = false;
        self.push(shown)?;
        self.bind_special(self.world.names.loading, shown)?;
        let package = self.current_package().object;
        self.bind_special(self.world.names.package, package)?;
        if is_stored(&text) {
            let done = self.load_stored(&path, &text);
            if done == Err(Exit::Error) {
                self.failed_at.get_or_insert(path);
            }
            done?;
        } else {
            self.load_text(&text, Some(&path))?;
        }
        self.restore(&saved);
        Ok(self.truth(true))
    }

    /// Evaluates every form of a text, which is that of the file `path` if one is given.
    pub(crate) fn load_text(&mut self, text: &[u8], path: Option<&str>) -> Result<(), Exit> {
        let mut reader = Reader::new(Source::text(text));
        let done = self.load_forms(&mut reader, path);
        if done == Err(Exit::Error)
            && self.failed_at.is_none()
            && let Some((path, line)) = path.zip(reader.form_line())
        {
            self.failed_at = Some(format!("{path}:{line}"));
        }
        done
    }

    fn load_forms(&mut self, reader: &mut Reader<'_>, path: Option<&str>) -> Result<(), Exit> {
        loop {
            self.set_fixed(Fixed::Form, Value::NIL);
            let form = reader.read(self)?;
            if let Some((path, line)) = path.zip(reader.take_extra()) {
                let text = format!("{path}:{line}: a closing parenthesis that closes nothing\n");
                let stream = self.global_value(self.world.names.error_output);
                self.write_bytes(stream, text.as_bytes())?;
            }
            let Some(form) = form else { return Ok(()) };
            let mark = self.mark();
            self.push(form)?;
            self.eval(form)?;
            self.release(mark);
            self.poll()?;
        }
    }
}

fn load(cx: &mut Context, args: Args<'_>) -> Answer {
    let path = path_of(cx, args[0])?;
    cx.load_file(&path)
}
