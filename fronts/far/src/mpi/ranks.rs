//! Recognizes the ranks of an MPI launcher before MPI is initialised, and runs this process as its rank.

use super::error::RanksError;
use super::host;
use largesse_mpi::{Family, Launched, Memory, Mpi, NotLaunched, World, room, serve};
use largesse_settings::StoreName;
use largesse_store::available;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Environment variables whose values are descriptors of connections to the launcher.
const DESCRIPTORS: [&str; 3] = ["PMI_FD", "PMI_CONTROL_FD", "HYDI_CONTROL_FD"];

/// This process as one rank of a launcher.
#[derive(Debug)]
pub struct Ranks {
    rank: u32,
    plugin: PathBuf,
    /// Number of bytes that each server should lend; `None` lets each lend what is available.
    asked: Option<u64>,
    /// Descriptors of connections to the launcher.
    launchers: Vec<i32>,
}

impl Ranks {
    /// Recognizes the ranks if `store` is `mpi:` or `mpi:BYTES`; returns `None` for other stores. The plug-ins are in
    /// the folder of `library`.
    pub fn of(
        store: &OsStr,
        get: impl Fn(&str) -> Option<OsString>,
        library: impl FnOnce() -> Option<PathBuf>,
    ) -> Result<Option<Ranks>, RanksError> {
        let Some(StoreName::Mpi(asked)) = store.to_str().and_then(StoreName::parse) else {
            return Ok(None);
        };
        let launched =
            Launched::find(|name| get(name)?.into_string().ok()).map_err(RanksError::NotLaunched)?;
        let folder = library().and_then(|library| library.parent().map(Path::to_path_buf));
        let plugin = plugin(launched.family, &folder.unwrap_or_default())?;
        let descriptor = |name: &&str| get(name)?.to_str()?.parse().ok();
        let launchers = DESCRIPTORS.iter().filter_map(descriptor).collect();
        Ok(Some(Ranks { rank: launched.rank, plugin, asked: asked.parse().ok(), launchers }))
    }

    /// Returns whether this process is rank 0, which runs the program.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Lends this rank's memory until rank 0 has stopped the servers.
    pub fn serve(&self) -> Result<(), RanksError> {
        // SAFETY: only numbers are passed. A launcher that is killed must not leave servers behind.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let (mpi, world) = self.join()?;
        let stripes = room(self.asked, available(), world).ok_or(RanksError::NoRoom)?;
        let mut memory = Memory::new(stripes, available).map_err(RanksError::NotLent)?;
        // SAFETY: the memory lives until the end of this function.
        unsafe { memory.lend(&mpi) }.map_err(RanksError::Wire)?;
        serve(&mpi, &mut memory).map_err(RanksError::Wire)?;
        // SAFETY: rank 0 has stopped this server and uses its memory no more.
        unsafe { host::leave(&mpi, 0) };
        Ok(())
    }

    /// Forks, and returns the name of the agent in the new process, which becomes the program. The calling process
    /// continues as the agent, and ends with the program's exit status.
    pub fn host(&self) -> Result<OsString, RanksError> {
        let agent = host::host(|| self.join())?;
        // SAFETY: only numbers are passed. This process does not talk to the launcher, which would wait for them at
        // its end.
        self.launchers.iter().for_each(|&fd| _ = unsafe { libc::close(fd) });
        Ok(agent)
    }

    /// Ends the other ranks because the program does not start. Some launchers would let them wait if only rank 0
    /// ended.
    pub fn dismiss(&self) {
        // The reason for the refusal was printed, and the launcher ends the ranks if this fails.
        let _ = host::dismiss(|| self.join());
    }

    fn join(&self) -> Result<(Mpi, World), RanksError> {
        let mpi = Mpi::load(&self.plugin).map_err(RanksError::NotLoaded)?;
        let world = mpi.join().map_err(RanksError::Wire)?;
        if world.ranks < 2 { Err(RanksError::NotLaunched(NotLaunched::Single)) } else { Ok((mpi, world)) }
    }
}

/// Returns the plug-in for the launcher's MPI library, or the first one installed if the launcher serves several.
fn plugin(family: Option<Family>, folder: &Path) -> Result<PathBuf, RanksError> {
    let families = family.as_ref().map_or(&Family::ALL[..], std::slice::from_ref);
    let plugins = families.iter().map(|family| folder.join(family.plugin()));
    plugins
        .clone()
        .find(|path| path.exists())
        .ok_or_else(|| RanksError::NoPlugin { family, looked: plugins.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_stores_need_no_ranks() {
        let none = Ranks::of(OsStr::new("file:/x"), |_| None, || None);
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn refusals_say_what_to_type() {
        let message = |set: &'static [(&str, &str)]| {
            let get = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, it)| it.into());
            Ranks::of(OsStr::new("mpi:"), get, || Some("/nowhere/liblargesse.so".into()))
                .unwrap_err()
                .to_string()
        };
        assert!(message(&[]).contains("mpirun -n"));
        assert!(message(&[("SLURM_PROCID", "0")]).contains("srun --mpi="));
        let missing = message(&[("OMPI_COMM_WORLD_RANK", "1")]);
        assert!(missing.contains("/nowhere/liblargesse-openmpi.so") && missing.contains("make plugins"));
    }
}
