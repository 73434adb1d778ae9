//! Loads the part of the library that is written in Lisp, loaded at start.

use crate::context::Context;
use crate::error::Exit;
use crate::value::{flag, symbol};
use crate::world::LISP;

const SOURCES: &[&str] = &[
    include_str!("places.l"),
    include_str!("macros.l"),
    include_str!("structures.l"),
    include_str!("objects.l"),
    include_str!("threads.l"),
    include_str!("lists.l"),
    include_str!("tools.l"),
    include_str!("readtables.l"),
    include_str!("streams.l"),
    include_str!("pathnames.l"),
    include_str!("sockets.l"),
    include_str!("system.l"),
    include_str!("foreign.l"),
    include_str!("tables.l"),
    include_str!("memory.l"),
    include_str!("regexp.l"),
    include_str!("infix.l"),
    include_str!("prompt.l"),
    include_str!("debugger.l"),
    include_str!("dump.l"),
    include_str!("processes.l"),
    include_str!("compile-file.l"),
];

/// One line for each documented name: its form, and what it does.
pub(crate) const HELP: &str = include_str!("help.txt");

/// Loads the library, each file in the package LISP unless it selects another. Exports all symbols except in
/// GEOMETRY, whose files name their exports.
pub(crate) fn load(cx: &mut Context) -> Result<(), Exit> {
    let lisp = cx.package_numbered(LISP).object;
    for text in SOURCES.iter().chain(crate::geometry::SOURCES) {
        let saved = cx.save();
        cx.bind_special(cx.world.names.package, lisp)?;
        cx.load_text(text.as_bytes())?;
        cx.restore(&saved);
        for package in ["LISP", "SYSTEM", "UNIX", "LARGESSE"] {
            cx.export_all(package);
        }
    }
    for package in cx.packages() {
        for (symbol, _) in package.symbols() {
            if symbol.is_symbol_object() && symbol.get(symbol::FUNCTION).is_cons() {
                symbol.add_flag(flag::LIBRARY);
            }
        }
    }
    Ok(())
}
