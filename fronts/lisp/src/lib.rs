//! Implements a dialect of EusLisp, on the heap that is delegated to threads.
//!
//! # Picture
//! ```text
//!   text ──reader──► values ──eval──► builtins, library, geometry ──printer──► text
//!                      │ Context: one thread's root stack and environment
//!                      │ LispWorld: packages, classes, pool of threads
//!                      ▼
//!                   heaps/gc
//! ```
//! The evaluator interprets a program as the list it is, as EusLisp does. Threads run in parallel: no lock guards the
//! interpreter or the objects of a program; only the runtime's own tables have locks.
//! # Knows / does not know
//! Knows values, forms, classes and threads of Lisp. Does not know how memory is allocated or collected (`heaps/gc`),
//! nor the command line (`fronts/lisp/command`).
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "words and lengths have 64 bits on both targets; numbers are checked on input"
)]

mod builtin;
mod builtins;
mod compile;
mod completion;
mod context;
mod error;
mod eval;
mod foreign;
mod geometry;
mod heap;
mod interpreter;
mod library;
mod numeric;
mod options;
mod printer;
mod reader;
mod report;
mod signal;
mod stored;
mod threads;
mod value;
mod world;

pub use interpreter::{Ended, Interpreter, Interrupt};
