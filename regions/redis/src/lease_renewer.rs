//! A thread that prolongs the time to live of this process's keys, and checks that no server may evict them.

use crate::info::may_evict;
use crate::servers::lock;
use crate::shared::Shared;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Longest time between two checks of the servers.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Starts the thread, which runs until the sender of `ended` is dropped.
pub(crate) fn start(shared: &Arc<Shared>, ended: Receiver<()>) -> io::Result<()> {
    let lease = shared.servers.target().lease;
    let shared = Arc::downgrade(shared);
    let keep = move || {
        let mut renewed = Instant::now();
        while ended.recv_timeout(CHECK_INTERVAL.min(lease / 4)) == Err(RecvTimeoutError::Timeout) {
            let Some(shared) = Weak::upgrade(&shared) else { return };
            check(&shared);
            if renewed.elapsed() >= lease / 4 {
                renewed = Instant::now();
                renew(&shared);
            }
        }
    };
    std::thread::Builder::new().name("redis leases".into()).spawn(keep).map(|_| ())
}

/// Makes all further requests fail if a server may now evict pages. If a server does not answer, this is not reported
/// here, but by the next request that needs the server.
fn check(shared: &Shared) {
    shared.servers.update_layout(0);
    for (_, slot) in shared.servers.layout().primaries() {
        if let Some(info) = shared.servers.info(slot).ok().filter(|info| info.evicts()) {
            shared.condemn(may_evict(&info.policy));
        }
    }
}

/// Prolongs the time to live of all keys of this process to one lease. If a key is missing, this is not reported here,
/// but by the read that needs the key.
fn renew(shared: &Shared) {
    let keys = lock(&shared.reservations).keys(None);
    let lease = shared.servers.target().lease.as_secs();
    let expire = |key: &str| {
        let mut command = redis::cmd("EXPIRE");
        command.arg(key).arg(lease);
        command
    };
    let _ = shared.for_keys(&keys, expire, shared.servers.target().timeout); // a failure is retried at the next renewal
}
