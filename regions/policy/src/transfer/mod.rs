//! How many pages move together, and when they leave ([`Timing`]).
//!
//! Larger sets cost fewer faults; smaller ones move less that nobody needs, and leave more room for
//! what somebody does. Which of the two counts depends on the program and on how much is here, and
//! can cost a factor of hundreds (seed, table 2). Two tuners decide:
//!
//! * [`Core`]: the program says where its compute core starts and ends (seed, section 3.2).
//! * [`Trial`]: nobody says anything; sizes are tried beside each other in different places. Each of the [`Regions`] has
//!   one: an array that is walked through wants large sets, one that is jumped in small ones.

mod blocks;
mod compute_core;
mod dueling;
mod gains;
mod leaders;
mod parts;
mod regions;
mod units;

pub use compute_core::{Core, Iteration};
pub use dueling::{Change, Costs, Trial};
pub use parts::Part;
pub use regions::Regions;
pub use units::{TransferSize, TransferUnits, first_unit};
