//! Describes packages, dies, cores, caches and NUMA nodes, each by its set of processors.

mod files;
mod kinds;
mod model;
mod nodes;
mod read;
mod unreadable;

pub use model::{Cache, CoreKind, Holds, NoSuchNode, NumaNode, Topology};
pub use unreadable::{Unreadable, Why};
