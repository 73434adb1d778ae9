//! Implements a store whose pages are fields of hashes.

use crate::info::may_evict;
use crate::link::Requests;
use crate::reservations::{HOME, HomePart, PAGE, StoreId, key, parts};
use crate::servers::{Effect, lock};
use crate::shared::{BATCH, Shared};
use crate::slots::slot;
use largesse_store::{PageStore, ProvidedStore, StoreError};
use redis::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Upper bound of the memory that a server needs for one page, in bytes: Redis 7 allocates 5 KiB for 4 KiB and its
/// header.
const PAGE_COST: u64 = 5 * 1024 + 128;
/// Memory that a server needs for connections, requests in transit and tables, in bytes.
const MARGIN: u64 = 16 << 20;
/// Longest time to wait for a server when a store is dropped. Keys that remain expire with their lease.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// A store of one process. Its random identifier is part of each key, so that keys of other clients are not touched.
pub(crate) struct RedisStore {
    shared: Arc<Shared>,
    id: StoreId,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({:032x} at {})", self.id, self.shared.servers.target())
    }
}

impl ProvidedStore for RedisStore {}

impl PageStore for RedisStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let full = StoreError::Full { wanted: len };
        let servers = &self.shared.servers;
        let layout = servers.layout();
        let mut room = Vec::new();
        for (primary, slot) in layout.primaries() {
            let info = servers.info(slot).map_err(|why| self.shared.lost(&why))?;
            if info.evicts() {
                self.shared.condemn(may_evict(&info.policy));
                return Err(self.shared.lost(&may_evict(&info.policy)));
            }
            room.push((primary, info.most.saturating_sub(info.used + MARGIN)));
        }
        let mut reservations = lock(&self.shared.reservations);
        let reserved: Vec<_> = parts(self.id, at, len)
            .map(|part| {
                let new = reservations.reserve(self.id, &part);
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
            reservations.cancel(self.id, part, *new);
        }
        Err(full)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut rest = into;
        for part in parts(self.id, at, rest.len() as u64) {
            let (bytes, behind) = rest.split_at_mut(part.pages.len() * PAGE);
            self.read_part(&part, bytes)?;
            rest = behind;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let mut rest = from;
        for part in parts(self.id, at, rest.len() as u64) {
            let (bytes, behind) = rest.split_at(part.pages.len() * PAGE);
            self.write_part(&part, bytes)?;
            rest = behind;
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        for part in parts(self.id, at, len) {
            let gone = lock(&self.shared.reservations).discard(self.id, &part);
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
            let _ = self.shared.run(&part, &Requests::one(&command), Effect::Durable);
        }
    }
}

impl RedisStore {
    pub(crate) const fn new(shared: Arc<Shared>, id: StoreId) -> RedisStore {
        RedisStore { shared, id }
    }

    /// Returns the slot of the home at offset `at`.
    pub(crate) fn slot(&self, at: u64) -> u16 {
        slot(&key(self.id, at / HOME))
    }

    fn read_part(&self, part: &HomePart, into: &mut [u8]) -> Result<(), StoreError> {
        let mut requests = Requests::default();
        let numbers: Vec<u16> = part.pages.clone().collect();
        for numbers in numbers.chunks(BATCH) {
            requests.add(redis::cmd("HMGET").arg(&part.key).arg(numbers));
        }
        let answers = self.shared.run(part, &requests, Effect::Transient)?;
        let fields = answers.iter().flat_map(|answer| match answer {
            Value::Array(fields) => &fields[..],
            _ => &[],
        });
        let mut pages = numbers.iter().zip(into.chunks_exact_mut(PAGE));
        for (field, (&number, into)) in fields.zip(&mut pages) {
            match field {
                Value::BulkString(bytes) if bytes.len() == into.len() => into.copy_from_slice(bytes),
                Value::Nil if !lock(&self.shared.reservations).is_written(self.id, part.home, number) => {
                    into.fill(0)
                }
                Value::Nil => return Err(self.shared.missing(part)),
                _ => return Err(self.shared.lost("a field does not have the size of a page")),
            }
        }
        match pages.next() {
            None => Ok(()),
            Some(_) => Err(self.shared.lost("it answered with too few pages")),
        }
    }

    fn write_part(&self, part: &HomePart, from: &[u8]) -> Result<(), StoreError> {
        lock(&self.shared.reservations).write(self.id, part);
        let mut requests = Requests::one(&redis::cmd("MULTI"));
        let pages: Vec<(u16, &[u8])> = part.pages.clone().zip(from.chunks_exact(PAGE)).collect();
        for pages in pages.chunks(BATCH) {
            let mut command = redis::cmd("HSET");
            command.arg(&part.key);
            for (number, bytes) in pages {
                command.arg(number).arg(bytes);
            }
            requests.add(&command);
        }
        let lease = self.shared.servers.target().lease.as_secs();
        requests.add(redis::cmd("EXPIRE").arg(&part.key).arg(lease));
        requests.add(&redis::cmd("EXEC"));
        self.shared.run(part, &requests, Effect::Durable).map(|_| ())
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        let keys = lock(&self.shared.reservations).remove(self.id);
        let unlink = |key: &str| {
            let mut command = redis::cmd("UNLINK");
            command.arg(key);
            command
        };
        let _ = self.shared.for_keys(&keys, unlink, LAST_TIMEOUT); // keys that remain expire with their lease
    }
}
