//! Runs the program on rank 0 of an MPI launcher and keeps its pages on the other ranks (`--far mpi:`).
//!
//! # Picture
//! ```text
//!   mpirun ─┬─► rank 0: largesse run ──fork──► waits ── agent:NAME ─► becomes the program
//!           │               │ joins, meets the servers      ▲
//!           │               └── agent for the program ──────┘  then ends with the program's status
//!           └─► ranks 1, 2, …: largesse run: join, serve, silently
//! ```
//! Rank 0 forks before it initialises MPI: MPI libraries do not support forks, and the program's process must not count
//! as a rank.
//! # Knows / does not know
//! Knows launchers, ranks and the process that becomes the program. Does not know how pages are spread over ranks.

mod error;
mod host;
mod ranks;
mod signals;

pub use error::RanksError;
pub use largesse_mpi::VARIABLES;
pub use ranks::Ranks;
