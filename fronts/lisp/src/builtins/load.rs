//! Finds and evaluates source files.

use super::stream::path_of;
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit, on_one_line};
use crate::reader::{Reader, Source};
use crate::stored::{is_stored, newer};
use crate::value::{ObjectKind, Value};
use std::io::Read as _;
use std::path::Path;

pub(super) const BUILTINS: &[Builtin] = &[builtin("LOAD", 1, MANY, load)];

/// Folder of EusLisp's own files where Debian's package `euslisp` installs them.
const INSTALLED: &str = "/usr/share/euslisp/";

/// Sets the variables that say where files are: `*eusdir*` and `*load-path*`.
pub(super) fn variables(cx: &mut Context) -> Result<(), Exit> {
    let named = crate::options::environment("EUSDIR").filter(|path| !path.is_empty());
    let root = named.map_or_else(|| INSTALLED.to_owned(), |path| with_slash(&path));
    let eusdir = cx.installed_name("*EUSDIR*")?;
    let text = cx.string(&root)?;
    cx.define_special(eusdir, text);
    let mark = cx.mark();
    let folders = ["", "lib/", "lib/llib/", "lib/demo/"].map(|part| format!("{root}{part}"));
    for folder in std::iter::once("./").chain(folders.iter().map(String::as_str)) {
        let text = cx.string(folder)?;
        cx.push(text)?;
    }
    let path = cx.stacked(mark)?;
    cx.define_special(cx.world.names.load_path, path);
    cx.define_special(cx.world.names.loading_folder, Value::NIL);
    cx.define_special(cx.world.names.load_verbose, Value::NIL);
    cx.release(mark);
    Ok(())
}

fn with_slash(folder: &str) -> String {
    if folder.is_empty() || folder.ends_with('/') { folder.to_owned() } else { format!("{folder}/") }
}

/// What `load` was asked for besides the file.
struct LoadOptions {
    /// The package in which the file is read, or nil for the current one.
    package: Value,
    verbose: bool,
    /// Whether a shared library's own entry may be called: not if the program gives an empty one.
    entry: bool,
    /// Whether a file that ends inside a form is loaded without it, and not an error.
    lenient: bool,
}

/// Returns whether a file name is that of a shared library, as `libm.so` and `libm.so.6` are.
fn names_library(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.ends_with(".so") || file.contains(".so.")
}

impl Context {
    /// Returns the file of a name: the name itself, the compiled file (`.lc`) unless the source is newer, or the
    /// source. A relative name is looked up in the folder of the file that is being loaded, in the current folder, then
    /// in the folders of `*load-path*`.
    fn found_file(&mut self, name: &str) -> Result<Option<String>, Exit> {
        let mut directories = vec![String::new()];
        if !name.starts_with('/') {
            let names = self.world.names;
            let loading = self.global_value(names.loading_folder).car();
            if loading.is(ObjectKind::String) {
                directories.insert(0, with_slash(&loading.text()));
            }
            for directory in self.global_value(names.load_path).iter() {
                let text = path_of(self, directory)?;
                directories.push(with_slash(&text));
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
        self.load_with(
            name,
            &LoadOptions { package: Value::NIL, verbose: false, entry: true, lenient: false },
        )
    }

    fn load_with(&mut self, name: &str, options: &LoadOptions) -> Answer {
        let found = self.found_file(name)?;
        if names_library(name) {
            return self.load_library(found.as_deref().unwrap_or(name), options);
        }
        let Some(path) = found else {
            if self.blocked(|| Path::new(name).is_dir()) {
                return self.fail(ErrorClass::Io, format!("{} is a folder, not a file", on_one_line(name)));
            }
            let name = on_one_line(name);
            return self.fail(ErrorClass::Io, format!("{name}: no such file, also not as {name}.l"));
        };
        let read = self.blocked(|| {
            let mut text = Vec::new();
            std::fs::File::open(&path)?.read_to_end(&mut text).map(|_| text)
        });
        let text = self.io(read, &path)?;
        if text.starts_with(b"\x7fELF") {
            return self.load_library(&path, options);
        }
        let saved = self.save();
        self.environment = Value::NIL;
        self.local_functions = false;
        self.bind_for_load(&path, options)?;
        if is_stored(&text) {
            let done = self.load_stored(&path, &text);
            if done == Err(Exit::Error) {
                self.failed_at.get_or_insert(on_one_line(&path));
            }
            done?;
        } else {
            self.load_source(&text, Some(&path), options.lenient)?;
        }
        self.restore(&saved);
        Ok(self.truth(true))
    }

    /// Returns the module of a shared library.
    fn load_library(&mut self, path: &str, options: &LoadOptions) -> Answer {
        let mark = self.mark();
        let path = self.string(path)?;
        self.push(path)?;
        let module = self.apply(self.world.names.load_library, &[path, self.truth(options.entry)])?;
        self.release(mark);
        Ok(module)
    }

    /// Binds the variables that a file may change, and those that tell it where it is.
    fn bind_for_load(&mut self, path: &str, options: &LoadOptions) -> Result<(), Exit> {
        let names = self.world.names;
        let package = if options.package.is_nil() {
            self.current_package().object
        } else {
            self.package_designated(options.package)?.object
        };
        if options.verbose {
            let shown = self.show_short(package);
            let note = format!(";; loading {path} into {shown}\n");
            let stream = self.global_value(names.error_output);
            self.write_bytes(stream, note.as_bytes())?;
        }
        let shown = self.string(path)?;
        self.push(shown)?;
        self.bind_special(names.loading, shown)?;
        let folder = match path.rfind('/') {
            Some(slash) if path.starts_with('/') || path.starts_with("./") => self.string(&path[..=slash])?,
            Some(slash) => self.string(&format!("./{}", &path[..=slash]))?,
            None => self.string("./")?,
        };
        self.push(folder)?;
        let folders = self.cons(folder, self.global_value(names.loading_folder))?;
        self.push(folders)?;
        self.bind_special(names.loading_folder, folders)?;
        self.bind_special(names.package, package)
    }
}

impl Context {
    /// Evaluates every form of a text.
    pub(crate) fn load_text(&mut self, text: &[u8]) -> Result<(), Exit> {
        self.load_source(text, None, false)
    }

    /// Evaluates every form of a text, which is that of the file `path` if one is given.
    fn load_source(&mut self, text: &[u8], path: Option<&str>, lenient: bool) -> Result<(), Exit> {
        let mut reader = if lenient { Reader::lenient(text) } else { Reader::new(Source::text(text)) };
        let done = self.load_forms(&mut reader, path);
        if lenient
            && done == Err(Exit::Error)
            && reader.incomplete
            && let Some((path, line)) = path.zip(reader.form_line())
        {
            return self.warn_of_open_form(path, line, &reader.form_beginning());
        }
        if done == Err(Exit::Error)
            && self.failed_at.is_none()
            && let Some((path, line)) = path.zip(reader.form_line())
        {
            self.failed_at = Some(format!("{}:{line}", on_one_line(path)));
        }
        done
    }

    /// Says that a file ends inside a form, which is not evaluated. EusLisp passes over it without a word.
    fn warn_of_open_form(&mut self, path: &str, line: usize, beginning: &str) -> Result<(), Exit> {
        /// Characters of the form that are shown.
        const SHOWN: usize = 60;
        let shown: String = beginning.trim_end().chars().take(SHOWN).collect();
        let text = format!(
            "{path}:{line}: the file ends inside the form that begins with {shown}; it is not evaluated\n"
        );
        let stream = self.global_value(self.world.names.error_output);
        self.write_bytes(stream, text.as_bytes())
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

/// Implements `(load file &key verbose package entry symbol-input symbol-output print ld-option)`. An empty or missing
/// `entry` says that a shared library is not one that EusLisp compiled. The other keywords about object files have no
/// meaning here.
fn load(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut entry = true;
    let (mut package, mut verbose) = (Value::NIL, cx.global_value(cx.world.names.load_verbose));
    for pair in args.from(1).chunks_exact(2) {
        match cx.name_of(pair[0])?.as_str() {
            "PACKAGE" => package = pair[1],
            "VERBOSE" => verbose = pair[1],
            "ENTRY" => {
                let empty = pair[1].is(ObjectKind::String) && pair[1].length() == 0;
                entry = !pair[1].is_nil() && !empty;
            }
            _ => {}
        }
    }
    let path = path_of(cx, args[0])?;
    cx.load_with(&path, &LoadOptions { package, verbose: !verbose.is_nil(), entry, lenient: true })
}
