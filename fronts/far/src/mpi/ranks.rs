//! The ranks of a launcher, seen from one of them before MPI starts.

use super::host;
use super::trouble::Trouble;
use largesse_mpi::{Family, Launched, Memory, Mpi, NotLaunched, World, room, serve};
use largesse_store::available;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables with the numbers of descriptors for talking to the launcher.
const DESCRIPTORS: [&str; 3] = ["PMI_FD", "PMI_CONTROL_FD", "HYDI_CONTROL_FD"];

/// This process is a rank.
#[derive(Debug)]
pub struct Ranks {
    rank: u32,
    plugin: PathBuf,
    /// Bytes that each server is to lend.
    asked: Option<u64>,
    /// Descriptors for talking to the launcher.
    launchers: Vec<i32>,
}

impl Ranks {
    /// For `store`, if it is `mpi:` or `mpi:BYTES`; the plug-ins lie beside `library`.
    pub fn of(
        store: &OsStr,
        get: impl Fn(&str) -> Option<OsString>,
        library: impl FnOnce() -> Option<PathBuf>,
    ) -> Result<Option<Ranks>, Trouble> {
        let Some(asked) = store.to_str().and_then(|store| store.strip_prefix("mpi:")) else {
            return Ok(None);
        };
        let launched = Launched::find(|name| get(name)?.into_string().ok()).map_err(Trouble::NotLaunched)?;
        let folder = library().and_then(|library| library.parent().map(Path::to_path_buf));
        let plugin = plugin(launched.family, &folder.unwrap_or_default())?;
        let descriptor = |name: &&str| get(name)?.to_str()?.parse().ok();
        let launchers = DESCRIPTORS.iter().filter_map(descriptor).collect();
        Ok(Some(Ranks { rank: launched.rank, plugin, asked: asked.parse().ok(), launchers }))
    }

    /// Whether this is the one that runs the program.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Lends memory until rank 0 needs it no more.
    pub fn serve(&self) -> Result<(), Trouble> {
        // SAFETY: a number. A launcher that is killed must not leave servers behind.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let (mpi, world) = self.join()?;
        let stripes = room(self.asked, available(), world).ok_or(Trouble::NoRoom)?;
        let mut memory = Memory::new(stripes, available).map_err(Trouble::NotLent)?;
        // SAFETY: the memory lives until the end of this function.
        unsafe { memory.lend(&mpi) }.map_err(Trouble::Wire)?;
        serve(&mpi, &mut memory).map_err(Trouble::Wire)?;
        // SAFETY: nobody serves from it any more.
        unsafe { host::leave(&mpi, 0) };
        Ok(())
    }

    /// Returns in the process that is to become the program, with the name of its agent; this process goes
    /// on as the agent and ends with the program's status.
    pub fn host(&self) -> Result<OsString, Trouble> {
        let agent = host::host(|| self.join())?;
        // SAFETY: numbers; in this process nobody speaks to the launcher. It would wait for them at the end.
        self.launchers.iter().for_each(|&fd| _ = unsafe { libc::close(fd) });
        Ok(agent)
    }

    /// Ends the other ranks: there is nothing for them to do. If this one just ended, some launchers
    /// would let them wait for it.
    pub fn dismiss(&self) {
        // The refusal was said; the launcher does the rest.
        let _ = host::dismiss(|| self.join());
    }

    fn join(&self) -> Result<(Mpi, World), Trouble> {
        let mpi = Mpi::load(&self.plugin).map_err(Trouble::NotLoaded)?;
        let world = mpi.join().map_err(Trouble::Wire)?;
        if world.ranks < 2 { Err(Trouble::NotLaunched(NotLaunched::Single)) } else { Ok((mpi, world)) }
    }
}

/// The plug-in for the launcher's library; if the launcher serves several, the one that is there.
fn plugin(family: Option<Family>, folder: &Path) -> Result<PathBuf, Trouble> {
    let families = family.as_ref().map_or(&Family::ALL[..], std::slice::from_ref);
    let plugins = families.iter().map(|family| folder.join(family.plugin()));
    plugins
        .clone()
        .find(|path| path.exists())
        .ok_or_else(|| Trouble::NoPlugin { family, looked: plugins.collect() })
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
    fn what_is_missing_is_said_with_what_to_type() {
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
