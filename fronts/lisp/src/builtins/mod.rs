//! Collects the builtins, in one file for each subject.

pub(crate) mod compare;
mod control;
mod debug;
mod describe;
mod error;
mod float;
mod format;
mod hash;
mod instances;
mod list;
mod load;
mod memory;
pub(crate) mod number;
mod object;
mod package;
mod random;
mod reflection;
mod search;
mod sequence;
mod sort;
pub(crate) mod stream;
mod string;
mod symbol;
mod system;
mod unix;
pub(crate) mod vector;

use crate::context::Context;
use crate::error::Exit;

/// Stores every builtin in the function slot of its symbol.
pub(crate) fn install(cx: &mut Context) -> Result<(), Exit> {
    for table in [
        compare::BUILTINS,
        control::BUILTINS,
        debug::BUILTINS,
        describe::BUILTINS,
        error::BUILTINS,
        float::BUILTINS,
        format::BUILTINS,
        hash::BUILTINS,
        instances::BUILTINS,
        list::BUILTINS,
        number::BUILTINS,
        object::BUILTINS,
        package::BUILTINS,
        random::BUILTINS,
        reflection::BUILTINS,
        search::BUILTINS,
        sequence::BUILTINS,
        sort::BUILTINS,
        load::BUILTINS,
        memory::BUILTINS,
        stream::BUILTINS,
        string::BUILTINS,
        symbol::BUILTINS,
        system::BUILTINS,
        vector::BUILTINS,
        crate::compile::BUILTINS,
        crate::compile::LIBRARY_BUILTINS,
        crate::threads::BUILTINS,
        crate::numeric::BUILTINS,
        crate::numeric::JSKEUS_BUILTINS,
        crate::geometry::BUILTINS,
        crate::stored::BUILTINS,
        crate::foreign::BUILTINS,
    ]
    .into_iter()
    .chain(unix::TABLES)
    {
        cx.install(table)?;
    }
    unix::variables(cx)?;
    system::variables(cx)?;
    stream::variables(cx)?;
    load::variables(cx)?;
    random::variables(cx)?;
    package::variables(cx)?;
    number::variables(cx)
}
