//! Chooses the number of pages that one transfer moves.
//!
//! Larger transfer units cause fewer faults. Smaller ones transfer fewer pages in vain, and leave more local memory for
//! pages that are used. The best size depends on the program and on the size of local memory, and can make the program
//! hundreds of times faster (DLM, Midorikawa et al., FIT 2011, table 2). There are two tuners:
//!
//! * [`ComputeCore`]: the program marks the start and the end of its compute core (DLM, section 3.2).
//! * [`SetDuel`]: without marks, sizes are tried at the same time in different blocks. Each of the [`Regions`] has
//!   duels of its own, because an array that is scanned needs large units, and one that is accessed at random small
//!   ones.

mod blocks;
mod compute_core;
mod dueling;
mod gains;
mod leaders;
mod parts;
mod regions;
mod units;

pub use compute_core::{ComputeCore, Iteration};
pub use dueling::{Costs, SetDuel, SizeChange};
pub use parts::RegionPart;
pub use regions::Regions;
pub use units::{TransferSize, TransferUnits, first_unit};
