//! The store: pages as fields of hashes.

use crate::info::may_evict;
use crate::link::Requests;
use crate::provider::{Shared, TOGETHER};
use crate::reservations::{HOME, PAGE, Part, SpaceId, key, parts};
use crate::servers::{Effect, lock};
use crate::slots::slot;
use largesse_store::{PageStore, ProvidedStore, StoreError};
use redis::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a page costs a server at most: Redis 7 keeps 4 KiB and a few bytes in 5 KiB.
const COST: u64 = 5 * 1024 + 128;
/// What connections, requests under way and tables need besides.
const MARGIN: u64 = 16 << 20;
/// A server that is away at the end is not waited for: keys have their lease.
const FAREWELL: Duration = Duration::from_secs(2);

/// One process's pages. Its name was never used before, so that nobody else's keys are touched.
pub(crate) struct Space {
    shared: Arc<Shared>,
    id: SpaceId,
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Space({:032x} at {})", self.id, self.shared.servers.target())
    }
}

impl ProvidedStore for Space {}

impl PageStore for Space {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let full = StoreError::Full { wanted: len };
        let servers = &self.shared.servers;
        let layout = servers.layout();
        let mut room = Vec::new();
        for (primary, slot) in layout.primaries() {
            let info = servers.info(slot).map_err(|why| self.shared.lost(&why))?;
            if info.evicts() {
                self.shared.doom(may_evict(&info.policy));
                return Err(self.shared.lost(&may_evict(&info.policy)));
            }
            room.push((primary, info.most.saturating_sub(info.used + MARGIN)));
        }
        let mut ledger = lock(&self.shared.ledger);
        let promised: Vec<_> = parts(self.id, at, len)
            .map(|part| {
                let new = ledger.promise(self.id, &part);
                (part, new)
            })
            .collect();
        let fits = room.iter().all(|(primary, free)| {
            let here = |slot| layout.shard(slot).is_some_and(|shard| shard.primary == **primary);
            ledger.outstanding(here) * COST <= *free
        });
        if fits {
            return Ok(());
        }
        for (part, new) in &promised {
            ledger.withdraw(self.id, part, *new);
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
            let gone = lock(&self.shared.ledger).discard(self.id, &part);
            if gone.is_empty() {
                continue;
            }
            // Other pages of this home may be on their way: never the whole key. It ends with its last page.
            let mut command = redis::cmd("HDEL");
            command.arg(&part.key);
            for page in gone.iter() {
                command.arg(page);
            }
            // What stays is not renewed, and ends with its lease.
            let _ = self.shared.run(&part, &Requests::one(&command), Effect::Lasting);
        }
    }
}

impl Space {
    pub(crate) const fn new(shared: Arc<Shared>, id: SpaceId) -> Space {
        Space { shared, id }
    }

    /// The slot of the home at `at`.
    pub(crate) fn slot(&self, at: u64) -> u16 {
        slot(&key(self.id, at / HOME))
    }

    fn read_part(&self, part: &Part, into: &mut [u8]) -> Result<(), StoreError> {
        let mut requests = Requests::default();
        let numbers: Vec<u16> = part.pages.clone().collect();
        for numbers in numbers.chunks(TOGETHER) {
            requests.add(redis::cmd("HMGET").arg(&part.key).arg(numbers));
        }
        let answers = self.shared.run(part, &requests, Effect::Passing)?;
        let fields = answers.iter().flat_map(|answer| match answer {
            Value::Array(fields) => &fields[..],
            _ => &[],
        });
        let mut pages = numbers.iter().zip(into.chunks_exact_mut(PAGE));
        for (field, (&number, into)) in fields.zip(&mut pages) {
            match field {
                Value::BulkString(bytes) if bytes.len() == into.len() => into.copy_from_slice(bytes),
                Value::Nil if !lock(&self.shared.ledger).is_written(self.id, part.home, number) => {
                    into.fill(0)
                }
                Value::Nil => return Err(self.shared.missing(part)),
                _ => return Err(self.shared.lost("what it holds is no page")),
            }
        }
        match pages.next() {
            None => Ok(()),
            Some(_) => Err(self.shared.lost("it answers with too few pages")),
        }
    }

    fn write_part(&self, part: &Part, from: &[u8]) -> Result<(), StoreError> {
        lock(&self.shared.ledger).write(self.id, part);
        let mut requests = Requests::one(&redis::cmd("MULTI"));
        let pages: Vec<(u16, &[u8])> = part.pages.clone().zip(from.chunks_exact(PAGE)).collect();
        for pages in pages.chunks(TOGETHER) {
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
        self.shared.run(part, &requests, Effect::Lasting).map(|_| ())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let keys = lock(&self.shared.ledger).remove(self.id);
        let unlink = |key: &str| {
            let mut command = redis::cmd("UNLINK");
            command.arg(key);
            command
        };
        let _ = self.shared.for_keys(&keys, unlink, FAREWELL); // what stays ends with its lease
    }
}
