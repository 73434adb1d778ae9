//! Recognises the MPI launcher that started this process by the environment variables that the launcher sets.

use core::fmt;

/// A family of MPI libraries with the same binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH and its relatives: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
}

/// A process that a launcher started, as the launcher's environment variables describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Family of the launcher's library; `None` if the launcher serves several.
    pub family: Option<Family>,
    /// Rank of this process among those started together.
    pub rank: u32,
}

/// The reason why a process counts as not started by a launcher for MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLaunched {
    /// No variable of a launcher is set.
    Alone,
    /// `srun` without `--mpi` started the process.
    PlainSlurm,
    /// The launcher started one process only.
    Single,
}

/// Prefixes of the environment variables that launchers set for MPI.
pub const VARIABLES: [&str; 11] =
    ["OMPI_", "ORTE_", "OPAL_", "PRTE_", "PMIX_", "PMI_", "PMI2_", "HYDI_", "HYDRA_", "MPI_LOCAL", "MPIR_"];

/// For each launcher: the family of its library, its variables for the rank and for the number of ranks, and a variable
/// that no other launcher sets.
const LAUNCHERS: [(Option<Family>, &str, &str, &str); 4] = [
    (Some(Family::OpenMpi), "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    (Some(Family::Mpich), "PMI_RANK", "PMI_SIZE", "PMI_FD"),
    (Some(Family::Mpich), "PMI_RANK", "PMI_SIZE", "PMI_PORT"),
    (None, "PMIX_RANK", "SLURM_NTASKS", "PMIX_NAMESPACE"),
];

impl Launched {
    /// Recognises the launcher by the environment variables that `get` returns.
    pub fn find(get: impl Fn(&str) -> Option<String>) -> Result<Launched, NotLaunched> {
        let number = |name: &str| get(name).and_then(|value| value.parse::<u32>().ok());
        for (family, rank, ranks, sign) in LAUNCHERS {
            if let (Some(rank), Some(_)) = (number(rank), get(sign)) {
                let single = number(ranks) == Some(1);
                return if single { Err(NotLaunched::Single) } else { Ok(Launched { family, rank }) };
            }
        }
        // `srun --mpi=pmi2` sets no descriptor.
        if let (Some(rank), Some(_)) = (number("PMI_RANK"), get("SLURM_PROCID")) {
            return Ok(Launched { family: Some(Family::Mpich), rank });
        }
        Err(if get("SLURM_PROCID").is_some() { NotLaunched::PlainSlurm } else { NotLaunched::Alone })
    }
}

impl Family {
    /// All families.
    pub const ALL: [Family; 2] = [Family::OpenMpi, Family::Mpich];

    /// Returns the file name of the family's plug-in.
    #[must_use]
    pub const fn plugin(self) -> &'static str {
        match self {
            Family::OpenMpi => "liblargesse-openmpi.so",
            Family::Mpich => "liblargesse-mpich.so",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: &[(&str, &str)], want: Result<Launched, NotLaunched>) {
        let value = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, it)| (*it).to_owned());
        assert_eq!(Launched::find(value), want);
    }

    #[test]
    fn launchers_are_recognised_by_variables() {
        let launched = |family, rank| Ok(Launched { family, rank });
        let ompi = ("OMPI_COMM_WORLD_RANK", "2");
        check(&[ompi, ("PMIX_RANK", "2"), ("PMIX_NAMESPACE", "x")], launched(Some(Family::OpenMpi), 2));
        check(&[("PMI_RANK", "0"), ("PMI_SIZE", "3"), ("PMI_FD", "7")], launched(Some(Family::Mpich), 0));
        check(&[("PMI_RANK", "1"), ("SLURM_PROCID", "1")], launched(Some(Family::Mpich), 1));
        check(&[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "slurm")], launched(None, 1));
    }

    #[test]
    fn reasons_for_no_launcher_differ() {
        check(&[], Err(NotLaunched::Alone));
        check(&[("SLURM_PROCID", "0")], Err(NotLaunched::PlainSlurm));
        let single = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")];
        check(&single, Err(NotLaunched::Single));
    }
}
