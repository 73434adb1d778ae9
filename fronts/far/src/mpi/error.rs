//! Explains why the ranks of an MPI launcher do not serve a program, with what to type.

use largesse_mpi::{Family, NotLaunched, NotLoaded, WireError};
use largesse_pages::MapError;
use largesse_terminal::{line, name};
use std::io;
use std::path::PathBuf;

/// The reason why the ranks of an MPI launcher hold no far memory.
#[derive(Debug, thiserror::Error)]
pub enum RanksError {
    /// The process was not started by an MPI launcher, or is its only rank.
    #[error("mpi: {}", launch(.0))]
    NotLaunched(NotLaunched),
    /// No plug-in was built for the launcher's library.
    #[error(
        "mpi: has no plug-in for {}; looked at\n{}Type `make plugins` in Largesse's sources, where a compiler for it is (Debian: libopenmpi-dev, libmpich-dev; another: make plugins MPICC=/path/to/mpicc).",
        launcher(*.family),
        listed(.looked)
    )]
    NoPlugin {
        /// The family of the launcher's library, if the launcher serves only one.
        family: Option<Family>,
        /// Paths that were searched.
        looked: Vec<PathBuf>,
    },
    /// The plug-in for the MPI library cannot be loaded.
    #[error(
        "{} cannot be loaded: {}\nIs the MPI library here for which it was built? Else type `make plugins` in Largesse's sources.",
        name(&.0.path),
        line(&.0.why)
    )]
    NotLoaded(NotLoaded),
    /// An MPI call failed.
    #[error("no far memory: {0}")]
    Wire(WireError),
    /// This machine has no memory to lend.
    #[error(
        "no far memory: this rank's machine has no memory to lend; say how much: --far mpi:SIZE, of 2M and more"
    )]
    NoRoom,
    /// The kernel refused the memory that was to be lent.
    #[error("no far memory: {0}")]
    NotLent(MapError),
    /// The two processes of rank 0 could not be made.
    #[error("the program was not started: {0}")]
    Process(io::Error),
}

/// Returns the sentence that says how to start the program with several ranks.
fn launch(why: &NotLaunched) -> &'static str {
    match why {
        NotLaunched::PlainSlurm => {
            "needs srun's help for MPI: srun --mpi=pmix … for Open MPI, srun --mpi=pmi2 … for MPICH (srun --mpi=list says what there is)"
        }
        NotLaunched::Alone | NotLaunched::Single => {
            "keeps pages at other ranks; start it with two or more: mpirun -n 4 largesse run --far mpi: …"
        }
    }
}

fn launcher(family: Option<Family>) -> String {
    family.map_or_else(|| "this launcher".to_owned(), |family| family.to_string())
}

/// Returns the paths as indented lines of a message.
fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("  {}\n", name(path))).collect()
}
