//! Opens shared libraries and finds their functions. The only file that calls `dlopen` and `dlsym`.

use crate::builtin::Args;
use crate::builtins::stream::path_of;
use crate::context::{Answer, Context};
use crate::error::ErrorClass;
use crate::value::Value;
use crate::world::Native;
use std::ffi::{CStr, CString};

/// Opens a library; returns its handle, or the reason why it cannot be opened.
fn open(path: Option<&CStr>) -> Result<usize, String> {
    let name = path.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the name is null or ends with a zero byte. Initializers of the library run, which the program asks for.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(handle.expose_provenance());
    }
    // SAFETY: the text is this thread's, and stays until its next call.
    let reason = unsafe { libc::dlerror() };
    if reason.is_null() {
        return Err("it cannot be opened".to_owned());
    }
    // SAFETY: `dlerror` returns a text that ends with a zero byte.
    Err(unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned())
}

/// Folders in which a library may be that is not where its path says.
const FOLDERS: [&str; 7] = [
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
];

/// Returns the paths under which a library may be: its own, its file name for the dynamic linker to find, and that name
/// with a version, as `libcrypt.so.1` of `libcrypt.so`, which only the package for developers has.
fn candidates(path: &str) -> Vec<String> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let prefix = format!("{file}.");
    let mut versions: Vec<String> = FOLDERS
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path().display().to_string())
        .collect();
    versions.sort();
    [path.to_owned(), file.to_owned()].into_iter().chain(versions).collect()
}

/// Opens the first candidate that can be opened; returns the reason of the first one if there is none.
fn open_found(path: &str) -> Result<usize, String> {
    let mut first = None;
    for candidate in candidates(path) {
        let Ok(name) = CString::new(candidate) else { return Err("a file name with a zero byte".to_owned()) };
        match open(Some(&name)) {
            Ok(handle) => return Ok(handle),
            Err(reason) => first = first.or(Some(reason)),
        }
    }
    let reason = first.unwrap_or_default();
    let hint = if path.ends_with(".o") { "; link it first: cc -shared -o NAME.so NAME.o" } else { "" };
    Err(format!("{reason}{hint}"))
}

/// Implements `(open-library path)`, which returns a number that stands for the library. Without a path, it stands for
/// the process itself.
pub(super) fn open_library(cx: &mut Context, args: Args<'_>) -> Answer {
    let path = if args[0].is_nil() { None } else { Some(path_of(cx, args[0])?) };
    let opened = cx.blocked(|| match &path {
        Some(path) => open_found(path),
        None => open(None),
    });
    match opened {
        Ok(handle) => Ok(cx.world.tables.hold(Native::Library(handle))),
        Err(reason) => cx.error(ErrorClass::Io, reason),
    }
}

/// Implements `(library-symbol library name)`: returns the address of a symbol, or nil without it.
pub(super) fn library_symbol(cx: &mut Context, args: Args<'_>) -> Answer {
    let Some(Native::Library(handle)) = cx.world.tables.native(args[0]) else {
        return cx.type_error("library", args[0]);
    };
    let name = args.string(cx, 1)?.bytes();
    let Ok(name) = CString::new(name) else { return Ok(Value::NIL) };
    let handle = std::ptr::with_exposed_provenance_mut(handle);
    // SAFETY: the handle is one that `open` returned, and libraries are never closed; the name ends with a zero byte.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() { Ok(Value::NIL) } else { cx.integer_from(address.expose_provenance() as i64) }
}
