//! The sockets at which an agent listens: one in a private folder, and an abstract one as a fallback.
//!
//! ```text
//!   folder    a path: the kernel refuses other users (EACCES) before the agent has anything to do
//!   fallback  an abstract name, for programs that cannot reach the folder: any user may connect, so the agent does
//!             not accept from it for a while after another user connected
//! ```

use crate::folder::PrivateFolder;
use crate::socket::{self, Name};
use std::io::Result;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// First pause, after a connection of another user, in which the fallback socket accepts nothing.
const FIRST: Duration = Duration::from_millis(1);
/// Longest pause of the fallback socket, which limits the cost of a flood to eight wake-ups a second.
const LONGEST: Duration = Duration::from_millis(128);
/// Time without a connection of another user after which the pauses are short again.
const CALM: Duration = Duration::from_secs(1);

/// The two sockets at which an agent listens.
#[derive(Debug)]
pub(crate) struct Listener {
    name: Name,
    folder: Option<PrivateFolder>,
    fallback: OwnedFd,
    throttle: Throttle,
}

impl Listener {
    /// Opens both sockets. The folder is created below the first of `bases` that permits it. If none does, the agent
    /// listens only at the fallback socket.
    pub(crate) fn open(bases: &[PathBuf]) -> Result<Listener> {
        let key = Name::new()?;
        let fallback = socket::listen(key.fallback().ok_or(std::io::ErrorKind::InvalidInput)?)?;
        let folder = bases.iter().find_map(|base| PrivateFolder::create(key.below(base)?, base).ok());
        let name = folder.as_ref().map_or(key, |folder| folder.name().clone());
        Ok(Listener { name, folder, fallback, throttle: Throttle::default() })
    }

    /// Returns the name by which programs find the agent.
    pub(crate) const fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the sockets from which connections may be accepted now.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        let fallback = self.pause().is_none().then_some(&self.fallback);
        self.folder.iter().map(PrivateFolder::socket).chain(fallback)
    }

    /// Returns the time until the fallback socket may be accepted from again; `None` if it may be now.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.throttle.pause(Instant::now())
    }

    /// Returns the pending connections of this user and of root at the sockets in `ready`, and closes all others.
    pub(crate) fn accept(&mut self, ready: &[RawFd]) -> Vec<OwnedFd> {
        let mut accepted = Vec::new();
        let is_ready = |socket: &OwnedFd| ready.contains(&socket.as_raw_fd());
        if let Some(socket) = self.folder.as_ref().map(PrivateFolder::socket).filter(|it| is_ready(it)) {
            drain(socket, &mut accepted);
        }
        if is_ready(&self.fallback) && drain(&self.fallback, &mut accepted) > 0 {
            self.throttle.refused(Instant::now());
        }
        accepted
    }
}

/// Accepts pending connections, at most a full backlog, and adds those of this user and of root to `accepted`. Closes
/// those of other users, and returns their number.
fn drain(listener: &OwnedFd, accepted: &mut Vec<OwnedFd>) -> usize {
    let mut foreign = 0;
    for _ in 0..socket::BACKLOG {
        let Ok(socket) = socket::accept(listener) else { break };
        if socket::peer(&socket).is_ok_and(|who| socket::trusted(who.uid)) {
            accepted.push(socket);
        } else {
            foreign += 1;
        }
    }
    foreign
}

/// Makes pauses that double with each connection of another user, up to the longest.
#[derive(Debug, Default)]
struct Throttle {
    last: Duration,
    until: Option<Instant>,
}

impl Throttle {
    fn refused(&mut self, now: Instant) {
        let calm = self.until.is_none_or(|until| now.saturating_duration_since(until) >= CALM);
        self.last = if calm { FIRST } else { (2 * self.last).min(LONGEST) };
        self.until = Some(now + self.last);
    }

    fn pause(&self, now: Instant) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_restart_after_calm() {
        let (mut throttle, mut now) = (Throttle::default(), Instant::now());
        assert_eq!(throttle.pause(now), None);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            throttle.refused(now);
            let pause = throttle.pause(now).unwrap();
            pauses.push(pause.as_millis());
            now += pause;
            assert_eq!(throttle.pause(now), None);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
        throttle.refused(now + CALM);
        assert_eq!(throttle.pause(now + CALM), Some(FIRST));
    }

    #[test]
    fn fallback_serves_without_a_folder() {
        let bases = ["/nowhere/at all".into(), "/proc".into(), PathBuf::from("relative")];
        let mut listener = Listener::open(&bases).unwrap();
        assert_eq!(listener.name().folder(), None);
        let _program = socket::connect(listener.name()).unwrap();
        let ready: Vec<_> = listener.sockets().map(|it| it.as_raw_fd()).collect();
        assert_eq!((listener.accept(&ready).len(), listener.pause()), (1, None));
    }
}
