//! Calls functions of shared libraries, and lets them call functions of Lisp.
//!
//! # Picture
//! ```text
//!   (defforeign f m "f" (:double) :float)     (defun-c-callable g ((a :integer)) :integer ...)
//!        │ foreign-code                              │ foreign-pod, whose podcode C calls
//!        ▼                                           ▲
//!   call.rs ── numbers and addresses ──► bridge.rs ──┴──► callback.rs
//!                                        machine code for each signature
//! ```
//! Vectors and strings are passed by the address of their first element: objects never move, and a zero byte follows the
//! text of a string.
//!
//! # Invariants
//! 1. While a function of C runs, its thread is suspended: collections do not wait for it. The arguments are on the root
//!    stack.
//! 2. No exit of Lisp crosses frames of C. An error, `throw` or `return-from` that leaves a function called by C is kept,
//!    C gets 0, and the exit goes on when the function of C that Lisp called has returned.

mod address;
mod bridge;
mod call;
mod callback;
mod kinds;
mod library;
mod memory;

use crate::builtin::{Builtin, builtin};
pub(crate) use address::{
    foreign_byte, foreign_bytes, foreign_length, is_foreign_string, set_foreign_bytes, set_foreign_element,
};
pub(crate) use bridge::Bridges;

pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("LARGESSE:OPEN-LIBRARY", 1, 1, library::open_library),
    builtin("LARGESSE:LIBRARY-SYMBOL", 2, 2, library::library_symbol),
    builtin("LARGESSE:MAKE-POD", 1, 1, callback::make_pod),
    builtin("LARGESSE:FOREIGN-TYPE-P", 1, 1, kinds::is_type),
    builtin("SYSTEM:PEEK", 2, 3, memory::peek),
    builtin("SYSTEM:POKE", 3, 4, memory::poke),
    builtin("LARGESSE:FOREIGN-TEXT", 1, 1, address::text),
];
