//! `--far mpi:`: rank 0 runs the program, the other ranks hold its pages.
//!
//! # Picture
//! ```text
//!   mpirun ─┬─► rank 0: largesse run ──fork──► waits ── agent:NAME ─► becomes the program
//!           │               │ joins, meets the servers      ▲
//!           │               └── agent for the program ──────┘  then ends with the program's status
//!           └─► ranks 1, 2, …: largesse run: join, serve, silently
//! ```
//! The fork comes before MPI does: MPI libraries bear none, and the program, which is in a process of its
//! own, is not to be taken for a rank.
//! # Knows / does not know
//! Knows launchers, ranks and the process that is to become the program. Does not know where stripes are.

mod host;
mod ranks;
mod signals;
mod trouble;

pub use largesse_mpi::VARIABLES;
pub use ranks::Ranks;
pub use trouble::Trouble;
