//! A thread that renews leases and looks whether the servers are still fit.

use crate::info::may_evict;
use crate::provider::Shared;
use crate::servers::lock;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The longest time between two looks.
const LOOK: Duration = Duration::from_secs(30);

/// Runs until the other end of `ended` is dropped.
pub(crate) fn start(shared: &Arc<Shared>, ended: Receiver<()>) -> io::Result<()> {
    let lease = shared.servers.target().lease;
    let shared = Arc::downgrade(shared);
    let keep = move || {
        let mut renewed = Instant::now();
        while ended.recv_timeout(LOOK.min(lease / 4)) == Err(RecvTimeoutError::Timeout) {
            let Some(shared) = Weak::upgrade(&shared) else { return };
            look(&shared);
            if renewed.elapsed() >= lease / 4 {
                renewed = Instant::now();
                renew(&shared);
            }
        }
    };
    std::thread::Builder::new().name("redis keeper".into()).spawn(keep).map(|_| ())
}

/// A server that begins to drop pages must not get more of them. One that does not answer is met by who
/// needs it.
fn look(shared: &Shared) {
    shared.servers.look_again(0);
    for (_, slot) in shared.servers.layout().primaries() {
        if let Some(info) = shared.servers.info(slot).ok().filter(|info| info.evicts()) {
            shared.doom(may_evict(&info.policy));
        }
    }
}

/// A key that is not there any more is found missing by who reads it.
fn renew(shared: &Shared) {
    let keys = lock(&shared.ledger).keys(None);
    let lease = shared.servers.target().lease.as_secs();
    let expire = |key: &str| {
        let mut command = redis::cmd("EXPIRE");
        command.arg(key).arg(lease);
        command
    };
    let _ = shared.for_keys(&keys, expire, shared.servers.target().patience); // or the next time
}
