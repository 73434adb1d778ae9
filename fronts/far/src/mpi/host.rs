//! Runs rank 0: one process becomes the program, and another one serves it as its agent.

use super::error::RanksError;
use super::signals;
use crate::environment::agent_folders;
use crate::say::{complain, complain_lines};
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

/// Exit status if the program was not started. It is that of `largesse run`.
const NO_STORE: i32 = 125;
/// Exit status when far memory is lost. It is that of the library.
const LOST: i32 = 74;
/// Longest time for which a process waits to leave MPI. Leaving is fast even on a busy machine, but MPICH over UCX and
/// TCP sometimes waits for ranks that have ended.
const PARTING: Duration = Duration::from_secs(5);

/// Forks: returns the agent's name in the process that becomes the program, and serves it in the other, which joins MPI
/// by `join` (see [`Ranks::host`](super::Ranks::host)).
pub(super) fn host(join: impl FnOnce() -> Result<(Mpi, World), RanksError>) -> Result<OsString, RanksError> {
    let mut ends = [0; 2];
    // SAFETY: the call fills the two numbers of the array.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel just made the descriptors, and nothing else owns them.
    let [from, into] = ends.map(|fd| File::from(unsafe { OwnedFd::from_raw_fd(fd) }));
    // SAFETY: this process has one thread.
    let program = checked(unsafe { libc::fork() })?;
    if program == 0 {
        drop(into);
        return await_name(from);
    }
    drop(from);
    let code = look_after(program, into, join).unwrap_or_else(|error| {
        complain_lines!("largesse: {error}");
        NO_STORE
    });
    std::process::exit(code)
}

/// Returns the name of the agent from the pipe `from`. If there is none, the other process has printed the reason, and
/// this process ends.
fn await_name(mut from: File) -> Result<OsString, RanksError> {
    let mut name = Vec::new();
    from.read_to_end(&mut name).map_err(RanksError::Process)?;
    if name.is_empty() {
        std::process::exit(NO_STORE);
    }
    Ok(OsString::from_vec(name))
}

/// Serves the program until it ends. Returns the program's exit status as a shell gives it.
fn look_after(
    program: libc::pid_t,
    mut into: File,
    join: impl FnOnce() -> Result<(Mpi, World), RanksError>,
) -> Result<i32, RanksError> {
    let (mpi, world, ranks) = meet(join)?;
    let neighbours = (world.ranks_here - 1) as usize;
    if ranks.far() + neighbours > (world.ranks - 1) as usize {
        let why = if world.share == 0 { "MPI was told so" } else { "they are hidden from each other" };
        complain!(
            "largesse: ranks of this machine have no memory in common ({why}): using MPI transfers, which are slower"
        );
    }
    let (processors, all) = (pin::current().map_or(0, |it| it.len()), pin::permitted().len());
    if processors == 1 && all > 1 {
        complain!(
            "largesse: the launcher gives the program one processor of {all}, which the threads that fetch far pages share; \
             type `mpirun --bind-to none …` to give it all"
        );
    }
    let place = PageStorage::Provider(Box::new(ranks.clone()));
    let agent = Agent::new(&agent_folders(), place, "mpi:", Some(program)).map_err(RanksError::Process)?;
    let name = agent.name().clone();
    signals::hand_to(program);
    let ended = Arc::new(OnceLock::new());
    watch(Arc::clone(&mpi), program, name.clone(), Arc::clone(&ended));
    write!(into, "agent:{name}").map_err(RanksError::Process)?;
    drop(into);
    agent.run().map_err(RanksError::Process)?;
    let code = status(program).map_err(RanksError::Process)?;
    let _ = ended.set(code);
    // A failure means that MPI is lost, and it is not needed any more.
    let _ = ranks.stop();
    // SAFETY: the ranks were stopped, so that none uses lent memory.
    unsafe { leave(&mpi, code) };
    Ok(code)
}

fn meet(
    join: impl FnOnce() -> Result<(Mpi, World), RanksError>,
) -> Result<(Arc<Mpi>, World, Ranks<Mpi>), RanksError> {
    let (mpi, world) = join()?;
    let mpi = Arc::new(mpi);
    // SAFETY: no bytes are lent.
    unsafe { mpi.lend(0, std::ptr::null_mut()) }.map_err(RanksError::Wire)?;
    let ranks = Ranks::meet(Arc::clone(&mpi), world).map_err(RanksError::Wire)?;
    Ok((mpi, world, ranks))
}

/// Joins MPI by `join` and stops the other ranks (see [`Ranks::dismiss`](super::Ranks::dismiss)).
pub(super) fn dismiss(join: impl FnOnce() -> Result<(Mpi, World), RanksError>) -> Result<(), RanksError> {
    let (mpi, _, ranks) = meet(join)?;
    ranks.stop().map_err(RanksError::Wire)?;
    // SAFETY: the ranks were stopped, so that none uses lent memory.
    unsafe { leave(&mpi, NO_STORE) };
    Ok(())
}

/// Starts a thread that ends this process when a rank does not answer. If the program has `ended`, the exit status is
/// the program's; otherwise the thread kills the program first.
fn watch(mpi: Arc<Mpi>, program: libc::pid_t, name: Name, ended: Arc<OnceLock<i32>>) {
    std::thread::spawn(move || {
        let (mut step, mut vain) = (None, Vain::default());
        while vain.again() < PATIENCE {
            std::thread::sleep(Duration::from_secs(1));
            let now = mpi.step_now();
            if now.is_none() || now != step {
                (step, vain) = (now, Vain::default());
            }
        }
        if let Some(&code) = ended.get() {
            // SAFETY: only a number is passed. MPI's handlers of an ordinary exit could wait as well.
            unsafe { libc::_exit(code) }
        }
        complain!(
            "largesse: far memory is lost, and the program with it: a rank has not answered for {} seconds",
            PATIENCE.as_secs()
        );
        // `_exit` runs no destructor.
        name.withdraw();
        // SAFETY: both calls take only numbers.
        unsafe {
            libc::kill(program, libc::SIGKILL);
            libc::_exit(LOST);
        }
    });
}

/// Leaves MPI. Ends the process with the exit status `code` if that takes longer than [`PARTING`].
///
/// # Safety
/// No rank may use lent memory any more.
pub(super) unsafe fn leave(mpi: &Mpi, code: i32) {
    std::thread::spawn(move || {
        std::thread::sleep(PARTING);
        // SAFETY: only a number is passed.
        unsafe { libc::_exit(code) };
    });
    // SAFETY: the caller promises it. The program does not depend on the result.
    let _ = unsafe { mpi.leave() };
}

fn status(program: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: the process is a child of ours, and the call fills the number.
        let got = unsafe { libc::waitpid(program, &raw mut status, 0) };
        match got {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ if libc::WIFSIGNALED(status) => return Ok(128 + libc::WTERMSIG(status)),
            _ => return Ok(libc::WEXITSTATUS(status)),
        }
    }
}

fn checked(rc: i32) -> Result<i32, RanksError> {
    if rc < 0 { Err(RanksError::Process(io::Error::last_os_error())) } else { Ok(rc) }
}
