//! The state that all stores of one process share.

use crate::info::may_evict;
use crate::link::Requests;
use crate::reservations::{HomePart, Reservations};
use crate::servers::{Attempts, Effect, Servers};
use largesse_store::StoreError;
use redis::Value;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Number of pages or keys in one command or message. It is limited so that a server can handle one batch while the
/// next is in transit.
pub(crate) const BATCH: usize = 128;

/// The connections, reservations and state of all stores of one process.
pub(crate) struct Shared {
    pub(crate) servers: Servers,
    pub(crate) reservations: Mutex<Reservations>,
    opened: Instant,
    /// The reason why every further request fails; set once a server may evict pages.
    condemned: OnceLock<String>,
    /// Ends the lease renewer when it is dropped.
    _alive: Sender<()>,
}

impl Shared {
    pub(crate) fn new(servers: Servers, alive: Sender<()>) -> Shared {
        Shared {
            servers,
            reservations: Mutex::default(),
            opened: Instant::now(),
            condemned: OnceLock::new(),
            _alive: alive,
        }
    }

    /// Returns an error that names the server, and the reason `why` its pages are lost.
    pub(crate) fn lost(&self, why: &str) -> StoreError {
        let target = self.servers.target();
        StoreError::Lost(format!("{target}: {why}"))
    }

    /// Makes all further requests fail with the reason `why`, or with an earlier one.
    pub(crate) fn condemn(&self, why: String) {
        let _ = self.condemned.set(why); // fails if there is an earlier reason
    }

    /// Returns an error once the settings of a server allow it to drop keys, by which pages would be lost.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.condemned.get().map_or(Ok(()), |why| Err(self.lost(why)))
    }

    /// Returns the record of a new request, with the time limit that the target has.
    pub(crate) fn attempts(&self) -> Attempts {
        Attempts::within(self.servers.target().timeout)
    }

    /// Sends requests about the pages of `part` to the primary of its hash slot, and returns the answers.
    pub(crate) fn run(
        &self,
        part: &HomePart,
        requests: &Requests,
        effect: Effect,
        attempts: Attempts,
    ) -> Result<Vec<Value>, StoreError> {
        self.check()?;
        self.servers.run(part.slot, requests, effect, attempts).map_err(|why| self.lost(&why))
    }

    /// Returns the error for a page that was written and is not on its server any more, with the likeliest reason.
    pub(crate) fn missing(&self, part: &HomePart) -> StoreError {
        let restarted = "it was restarted and no longer has its data";
        self.lost(&match self.servers.info(part.slot) {
            Ok(info) if info.uptime + Duration::from_secs(2) < self.opened.elapsed() => restarted.into(),
            Ok(info) if info.evicts() => may_evict(&info.policy),
            _ => format!(
                "pages are gone: another client deleted keys, or this process was stopped for longer than the \
                 lease of {} s (lease=SECONDS in the address)",
                self.servers.target().lease.as_secs()
            ),
        })
    }

    /// Sends a command for each key, in batches, to the primaries of the keys' hash slots.
    pub(crate) fn for_keys(
        &self,
        keys: &[(String, u16)],
        command: impl Fn(&str) -> redis::Cmd,
        timeout: Duration,
    ) -> Result<(), String> {
        let layout = self.servers.layout();
        for (primary, slot) in layout.primaries() {
            let mine = |slot: u16| layout.shard(slot).is_some_and(|shard| shard.primary == *primary);
            let mine: Vec<_> = keys.iter().filter(|(_, slot)| mine(*slot)).collect();
            for keys in mine.chunks(BATCH) {
                let mut requests = Requests::default();
                for (key, _) in keys {
                    requests.add(&command(key));
                }
                self.servers.run(slot, &requests, Effect::Transient, Attempts::within(timeout))?;
            }
        }
        Ok(())
    }
}
