//! Explains why ranks do not serve a program, with what to type.

use largesse_mpi::{Family, NotLaunched, NotLoaded, WireError};
use largesse_pages::MapError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why there is no far memory on ranks.
#[derive(Debug)]
pub enum Error {
    /// The process is not under a launcher, or is its only rank.
    NotLaunched(NotLaunched),
    /// No plug-in was built for the launcher's library.
    NoPlugin {
        /// The launcher's library, if it serves only one.
        family: Option<Family>,
        /// Paths that were searched.
        looked: Vec<PathBuf>,
    },
    /// The plug-in cannot be loaded.
    NotLoaded(NotLoaded),
    /// An MPI call failed.
    Wire(WireError),
    /// This machine has no memory to lend.
    NoRoom,
    /// The kernel refused the memory that was to be lent.
    NotLent(MapError),
    /// The two processes of rank 0 could not be made.
    Process(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotLaunched(NotLaunched::PlainSlurm) => write!(
                f,
                "--far mpi: needs srun's help for MPI: srun --mpi=pmix … for Open MPI, srun --mpi=pmi2 … for MPICH (srun --mpi=list says what there is)"
            ),
            Error::NotLaunched(NotLaunched::Alone | NotLaunched::Single) => write!(
                f,
                "--far mpi: keeps pages at other ranks; start it with two or more: mpirun -n 4 largesse run --far mpi: …"
            ),
            Error::NoPlugin { family, looked } => {
                let name = family.map_or_else(|| "this launcher".to_owned(), |family| family.to_string());
                writeln!(f, "--far mpi: has no plug-in for {name}; looked at")?;
                for path in looked {
                    writeln!(f, "  {}", path.display())?;
                }
                write!(
                    f,
                    "Type `make plugins` in Largesse's sources, where a compiler for it is (Debian: libopenmpi-dev, libmpich-dev; another: make plugins MPICC=/path/to/mpicc)."
                )
            }
            Error::NotLoaded(NotLoaded { path, why }) => {
                write!(
                    f,
                    "{} cannot be loaded: {why}\nIs the MPI library here for which it was built? Else type `make plugins` in Largesse's sources.",
                    path.display()
                )
            }
            Error::Wire(error) => write!(f, "no far memory: {error}"),
            Error::NoRoom => write!(
                f,
                "no far memory: this rank's machine has no memory to lend; say how much: --far mpi:SIZE, of 2M and more"
            ),
            Error::NotLent(error) => write!(f, "no far memory: {error}"),
            Error::Process(error) => write!(f, "the program was not started: {error}"),
        }
    }
}
