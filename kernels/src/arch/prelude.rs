//! Collects the names that the files of the instruction sets use.

pub(super) use super::by_length::by_length;
pub(super) use super::fused::{fused, strided};
pub(super) use super::simd::{Crossing, Fused, Nans, Simd, load_some, methods};
pub(super) use super::terms::{Absolute, Itself, Square};
pub(super) use super::{axpy, portable, reduce};
pub(super) use crate::table::{KernelTable, Strided, of_products};
pub(super) use crate::{Complex, Element, Vector, VectorMut};
