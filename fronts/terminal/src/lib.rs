//! Prints for Largesse's commands (lines, tables and progress bars) and finds the programs installed with them.
//!
//! # Picture
//! ```text
//!   table ─► lines ─► say ─► standard output     complain ─► standard error     progress ─► the terminal
//!   the command line ─► its options, or help and messages about wrong ones
//!                                                own: the folder of the running command
//! ```
//! # Knows / does not know
//! Knows terminals, locales and the folder of the running command. Does not know the content of the output.
//! # Invariants
//! 1. No control character of a text from outside reaches the terminal: not of another process's, nor of a name that the
//!    user typed.
//! 2. Output that could not be written makes the exit status an error, unless the reader closed the pipe.
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

pub mod command_line;
pub mod own;
pub mod progress;
pub mod say;
pub mod table;

pub use largesse_text::{line, name, size, word};
