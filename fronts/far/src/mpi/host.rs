//! Rank 0: the program's process, and the agent beside it.

use super::signals;
use super::trouble::Trouble;
use crate::environment::agent_folders;
use crate::say::complain;
use largesse_agent::{Agent, Name, PageStorage};
use largesse_machine::pin;
use largesse_mpi::{Mpi, PATIENCE, Ranks, Vain, World};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// As of `largesse run`: the program was not started.
const NO_STORE: i32 = 125;
/// As of the library: far memory is lost.
const LOST: i32 = 74;
/// Parting takes little time even on a busy machine, but MPICH over UCX and TCP waits now and then for ranks that have
/// gone.
const PARTING: Duration = Duration::from_secs(5);

/// See [`Ranks::host`](super::Ranks::host).
pub(super) fn host(join: impl FnOnce() -> Result<(Mpi, World), Trouble>) -> Result<OsString, Trouble> {
    let mut ends = [0; 2];
    // SAFETY: two numbers to fill.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: descriptors that the kernel just made for us.
    let [from, into] = ends.map(|fd| File::from(unsafe { OwnedFd::from_raw_fd(fd) }));
    // SAFETY: this process has one thread.
    let program = checked(unsafe { libc::fork() })?;
    if program == 0 {
        drop(into);
        return await_name(from);
    }
    drop(from);
    let code = look_after(program, into, join).unwrap_or_else(|trouble| {
        complain!("largesse: {trouble}");
        NO_STORE
    });
    std::process::exit(code)
}

/// Where the agent is. Without one this process has nothing to do, and the other has said why.
fn await_name(mut from: File) -> Result<OsString, Trouble> {
    let mut name = Vec::new();
    from.read_to_end(&mut name).map_err(Trouble::Process)?;
    if name.is_empty() {
        std::process::exit(NO_STORE);
    }
    Ok(OsString::from_vec(name))
}

/// Serves the program until it ends; its exit status, as a shell says it.
fn look_after(
    program: libc::pid_t,
    mut into: File,
    join: impl FnOnce() -> Result<(Mpi, World), Trouble>,
) -> Result<i32, Trouble> {
    let (mpi, world, ranks) = meet(join)?;
    let neighbours = (world.ranks_here - 1) as usize;
    if ranks.far() + neighbours > (world.ranks - 1) as usize {
        let why = if world.share == 0 { "MPI was told so" } else { "they are hidden from each other" };
        complain!("largesse: ranks of this machine have no memory in common ({why}); it is slower so");
    }
    let (processors, all) = (pin::current().map_or(0, |it| it.len()), pin::permitted().len());
    if processors == 1 && all > 1 {
        complain!(
            "largesse: the launcher gives the program one processor of {all}, which the threads that fetch far pages share; \
             type `mpirun --bind-to none …` to give it all"
        );
    }
    let place = PageStorage::Provider(Box::new(ranks.clone()));
    let agent = Agent::new(&agent_folders(), place, "mpi:", Some(program)).map_err(Trouble::Process)?;
    let name = agent.name().clone();
    signals::hand_to(program);
    let ended = Arc::new(OnceLock::new());
    watch(Arc::clone(&mpi), program, name.clone(), Arc::clone(&ended));
    write!(into, "agent:{name}").map_err(Trouble::Process)?;
    drop(into);
    agent.run().map_err(Trouble::Process)?;
    let code = status(program).map_err(Trouble::Process)?;
    let _ = ended.set(code);
    // When this fails MPI is lost, and what it was needed for is over.
    let _ = ranks.stop();
    // SAFETY: stopped just now.
    unsafe { leave(&mpi, code) };
    Ok(code)
}

fn meet(
    join: impl FnOnce() -> Result<(Mpi, World), Trouble>,
) -> Result<(Arc<Mpi>, World, Ranks<Mpi>), Trouble> {
    let (mpi, world) = join()?;
    let mpi = Arc::new(mpi);
    // SAFETY: no bytes.
    unsafe { mpi.lend(0, std::ptr::null_mut()) }.map_err(Trouble::Wire)?;
    let ranks = Ranks::meet(Arc::clone(&mpi), world).map_err(Trouble::Wire)?;
    Ok((mpi, world, ranks))
}

/// See [`Ranks::dismiss`](super::Ranks::dismiss).
pub(super) fn dismiss(join: impl FnOnce() -> Result<(Mpi, World), Trouble>) -> Result<(), Trouble> {
    let (mpi, _, ranks) = meet(join)?;
    ranks.stop().map_err(Trouble::Wire)?;
    // SAFETY: stopped just now.
    unsafe { leave(&mpi, NO_STORE) };
    Ok(())
}

/// A rank that does not answer would hold the program for good, or us when it has `ended` with a status.
fn watch(mpi: Arc<Mpi>, program: libc::pid_t, name: Name, ended: Arc<OnceLock<i32>>) {
    std::thread::spawn(move || {
        let (mut call, mut vain) = (None, Vain::default());
        while vain.again() < PATIENCE {
            std::thread::sleep(Duration::from_secs(1));
            let now = mpi.call_now();
            if now.is_none() || now != call {
                (call, vain) = (now, Vain::default());
            }
        }
        if let Some(&code) = ended.get() {
            // SAFETY: a number. What MPI would do at an ordinary exit could wait as well.
            unsafe { libc::_exit(code) }
        }
        complain!(
            "largesse: far memory is lost, and the program with it: a rank has not answered for {} seconds",
            PATIENCE.as_secs()
        );
        // `_exit` runs no destructor.
        name.withdraw();
        // SAFETY: numbers.
        unsafe {
            libc::kill(program, libc::SIGKILL);
            libc::_exit(LOST);
        }
    });
}

/// Parts from the other ranks; ends the process if that takes too long.
///
/// # Safety
/// What ranks lend is not used any more.
pub(super) unsafe fn leave(mpi: &Mpi, code: i32) {
    std::thread::spawn(move || {
        std::thread::sleep(PARTING);
        // SAFETY: a number.
        unsafe { libc::_exit(code) };
    });
    // SAFETY: the caller's promise. Nothing of the program's depends on whether it succeeds.
    let _ = unsafe { mpi.leave() };
}

fn status(program: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: a child of ours, and a number to fill.
        let got = unsafe { libc::waitpid(program, &raw mut status, 0) };
        match got {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ if libc::WIFSIGNALED(status) => return Ok(128 + libc::WTERMSIG(status)),
            _ => return Ok(libc::WEXITSTATUS(status)),
        }
    }
}

fn checked(rc: i32) -> Result<i32, Trouble> {
    if rc < 0 { Err(Trouble::Process(io::Error::last_os_error())) } else { Ok(rc) }
}
