//! Applies the characters that a program redefined in `*readtable*`.
//!
//! A readtable has a vector of 256 entries for macro characters and one for the characters after `#`. An entry is nil
//! for the character's own meaning, another character's code for the meaning of that one, or a function.

use crate::context::Context;
use crate::error::Exit;
use crate::value::{ObjectKind, Value};

/// Returns whether a byte ends a token in the standard syntax.
fn delimits(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'(' | b')' | b'"' | b'\'' | b';' | b'`' | b',')
}

/// Number of entries of each vector of a readtable.
const CHARACTERS: usize = 256;

/// Indices of the slots of a readtable.
mod slot {
    pub(super) const SYNTAX: usize = 1;
    pub(super) const MACROS: usize = 2;
    pub(super) const DISPATCH: usize = 3;
}

/// The meaning of a character for the reader.
pub(super) enum Meaning {
    /// It means what this character means in the standard syntax.
    Standard(u8),
    /// The program's function reads it.
    Function(Value),
}

/// The parts of the current readtable, nil where a program redefined nothing.
#[derive(Clone, Copy)]
pub(super) struct Readtable {
    syntax: Value,
    macros: Value,
    dispatch: Value,
}

impl Readtable {
    pub(super) const STANDARD: Readtable =
        Readtable { syntax: Value::NIL, macros: Value::NIL, dispatch: Value::NIL };

    /// Returns the value of `*readtable*`, whose parts it pushes.
    pub(super) fn current(cx: &mut Context) -> Result<Readtable, Exit> {
        let table = cx.global_value(cx.world.names.readtable);
        if !table.is(ObjectKind::Instance) || table.length() <= slot::DISPATCH {
            return Ok(Readtable::STANDARD);
        }
        let part = |index: usize, kind: ObjectKind| {
            let part = table.slot(index);
            if part.is(kind) && part.length() >= CHARACTERS { part } else { Value::NIL }
        };
        let table = Readtable {
            syntax: part(slot::SYNTAX, ObjectKind::String),
            macros: part(slot::MACROS, ObjectKind::Vector),
            dispatch: part(slot::DISPATCH, ObjectKind::Vector),
        };
        for part in [table.syntax, table.macros, table.dispatch] {
            cx.push(part)?;
        }
        Ok(table)
    }

    fn entry(table: Value, byte: u8) -> Meaning {
        let entry = if table.is_nil() { Value::NIL } else { table.slot(usize::from(byte)) };
        match entry.as_fixnum() {
            _ if entry.is_nil() => Meaning::Standard(byte),
            Some(code) => Meaning::Standard(code as u8),
            None => Meaning::Function(entry),
        }
    }

    #[inline]
    pub(super) fn meaning(&self, byte: u8) -> Meaning {
        if self.macros.is_nil() { Meaning::Standard(byte) } else { Readtable::entry(self.macros, byte) }
    }

    /// Returns the meaning of a character after `#`.
    pub(super) fn after_hash(&self, byte: u8) -> Meaning {
        Readtable::entry(self.dispatch, byte)
    }

    /// Returns whether a byte ends a token.
    #[inline]
    pub(super) fn delimits(&self, byte: u8) -> bool {
        match self.meaning(byte) {
            Meaning::Standard(byte) => delimits(byte),
            Meaning::Function(_) => {
                self.syntax.is_nil()
                    || self.syntax.bytes().get(usize::from(byte)).is_none_or(|kind| *kind == 0)
            }
        }
    }
}
