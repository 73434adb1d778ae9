//! Tells why a function is not compiled.

use crate::error::Exit;

/// The reason why a function is not compiled.
pub(super) enum Refused {
    /// A form is not translated; the reason is in words.
    Form(String),
    /// The expansion of a macro ended in an exit.
    Exit(Exit),
}

impl From<Exit> for Refused {
    fn from(exit: Exit) -> Refused {
        Refused::Exit(exit)
    }
}
