//! Measures what a program loses with less local memory than it uses: `largesse bench far`.

mod device;
mod least;
mod moved;
mod plan;
mod rows;
mod swap;
mod table;

pub(crate) use plan::compare;
pub(crate) use swap::guard;
