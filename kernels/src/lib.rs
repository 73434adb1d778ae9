//! Reductions that give the same bits on every instruction set and any number of threads.
//!
//! # Picture
//! ```text
//!   Vector, Team ─► Kernels ─► parts (by length alone) ─► KernelTable of one Isa ─► arch/<isa>: registers
//!                      │                                                            arch/reduce: the loop
//!                      └─ NaN rule                      reference: the bits that all of them must give
//! ```
//! # Knows / does not know
//! The crate knows vectors of numbers and instruction sets. It does not know how threads are made (callers pass a
//! [`Team`]), where memory comes from, or the environment.
//! # Invariants
//! 1. [`mod@reference`] defines every result to the bit: instruction set, alignment, steps and threads change the time
//!    only.
//! 2. No element outside the vectors is read.
//! 3. Nothing is allocated.
//!
//! ```
//! use largesse_kernels::{Alone, Kernels, Vector};
//! let kernels = Kernels::best();
//! let x: Vec<f64> = (1..=1000).map(f64::from).collect();
//! assert_eq!(kernels.sum(&x, &Alone), 500_500.0);
//! let odd = Vector::strided(&x, 2, 500).unwrap();
//! let even = Vector::strided(&x[1..], -2, 500).unwrap(); // from the last element to the first
//! assert_eq!(kernels.dot(odd, even, &Alone), 83_583_500.0);
//! ```

mod arch;
mod element;
mod fenv;
mod isa;
mod kernels;
pub mod limits;

mod parts;
pub mod reference;
mod table;
mod team;
mod vector;

pub use element::{Complex, Element, Squares};
pub use isa::Isa;
pub use kernels::Kernels;
pub use team::{Alone, Team};
pub use vector::{Vector, VectorMut};
