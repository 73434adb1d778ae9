//! Implements a store whose pages are fields of hashes on Redis servers.

use crate::info::may_evict;
use crate::link::Requests;
use crate::pages::StorePages;
use crate::queue::{RedisQueue, THREADS};
use crate::reservations::{HOME, HomePart, PAGE, StoreId, key, parts};
use crate::servers::{Effect, lock};
use crate::shared::Shared;
use crate::slots::slot;
use largesse_store::{PageStore, ProvidedStore, QueueBytes, StoreError, TransferQueue};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Upper bound of the memory that a server needs for one page, in bytes: Redis 7 allocates 5 KiB for 4 KiB and its
/// header, and some more for tables.
const PAGE_COST: u64 = 5 * 1024 + 128;
/// Memory that a server needs for connections, requests in transit and tables, in bytes.
const MARGIN: u64 = 16 << 20;
/// Longest time for which dropping a store waits for a server. Keys that remain expire with their lease.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// A store on a server or a cluster, for one process.
pub(crate) struct RedisStore {
    pages: StorePages,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({:032x} at {})", self.pages.id, self.shared().servers.target())
    }
}

impl ProvidedStore for RedisStore {
    fn queue_threads(&self) -> usize {
        THREADS
    }

    fn open_queue_over(&self, memory: QueueBytes, depth: usize) -> Option<Box<dyn TransferQueue>> {
        Some(Box::new(RedisQueue::new(self.pages.clone(), memory, depth)))
    }
}

impl PageStore for RedisStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let full = StoreError::Full { wanted: len };
        let servers = &self.shared().servers;
        let layout = servers.layout();
        let mut room = Vec::new();
        for (primary, slot) in layout.primaries() {
            let info = servers.info(slot).map_err(|why| self.shared().lost(&why))?;
            if info.evicts() {
                self.shared().condemn(may_evict(&info.policy));
                return Err(self.shared().lost(&may_evict(&info.policy)));
            }
            room.push((primary, info.most.saturating_sub(info.used + MARGIN)));
        }
        let mut reservations = lock(&self.shared().reservations);
        let reserved: Vec<_> = parts(self.pages.id, at, len)
            .map(|part| {
                let new = reservations.reserve(self.pages.id, &part);
                (part, new)
            })
            .collect();
        let fits = room.iter().all(|(primary, free)| {
            let here = |slot| layout.shard(slot).is_some_and(|shard| shard.primary == **primary);
            reservations.outstanding(here) * PAGE_COST <= *free
        });
        if fits {
            return Ok(());
        }
        for (part, new) in &reserved {
            reservations.cancel(self.pages.id, part, *new);
        }
        Err(full)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut rest = into;
        for part in parts(self.pages.id, at, rest.len() as u64) {
            let (bytes, behind) = rest.split_at_mut(part.pages.len() * PAGE);
            self.read_part(&part, bytes)?;
            rest = behind;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let mut rest = from;
        for part in parts(self.pages.id, at, rest.len() as u64) {
            let (bytes, behind) = rest.split_at(part.pages.len() * PAGE);
            self.write_part(&part, bytes)?;
            rest = behind;
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        for part in parts(self.pages.id, at, len) {
            let gone = lock(&self.shared().reservations).discard(self.pages.id, &part);
            if gone.is_empty() {
                continue;
            }
            // The key is never deleted as a whole, because other pages of this home may be in transit. Redis deletes it
            // with its last field.
            let mut command = redis::cmd("HDEL");
            command.arg(&part.key);
            for page in gone.iter() {
                command.arg(page);
            }
            // Fields that remain after a failure expire with the lease of their key.
            let _ =
                self.shared().run(&part, &Requests::one(&command), Effect::Durable, self.shared().attempts());
        }
    }
}

impl RedisStore {
    pub(crate) const fn new(shared: Arc<Shared>, id: StoreId) -> RedisStore {
        RedisStore { pages: StorePages { shared, id } }
    }

    fn shared(&self) -> &Shared {
        &self.pages.shared
    }

    /// Returns the hash slot of the home at offset `at`.
    pub(crate) fn slot(&self, at: u64) -> u16 {
        slot(&key(self.pages.id, at / HOME))
    }

    fn read_part(&self, part: &HomePart, into: &mut [u8]) -> Result<(), StoreError> {
        let mut requests = Requests::default();
        self.pages.read(part, &mut requests);
        let answers = self.shared().run(part, &requests, Effect::Transient, self.shared().attempts())?;
        self.pages.take(part, &answers, into)
    }

    fn write_part(&self, part: &HomePart, from: &[u8]) -> Result<(), StoreError> {
        let mut requests = Requests::default();
        self.pages.write(part, from, &mut requests);
        self.shared().run(part, &requests, Effect::Durable, self.shared().attempts()).map(|_| ())
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        let keys = lock(&self.shared().reservations).remove(self.pages.id);
        let unlink = |key: &str| {
            let mut command = redis::cmd("UNLINK");
            command.arg(key);
            command
        };
        let _ = self.shared().for_keys(&keys, unlink, LAST_TIMEOUT); // keys that remain expire with their lease
    }
}
