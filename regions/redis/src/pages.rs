//! The requests for pages of one store, and the meaning of their answers.

use crate::link::Requests;
use crate::reservations::{HomePart, PAGE, StoreId};
use crate::servers::lock;
use crate::shared::{BATCH, Shared};
use largesse_store::StoreError;
use redis::Value;
use std::sync::Arc;

/// The pages of one store, which are fields of the hashes on the servers.
#[derive(Clone)]
pub(crate) struct StorePages {
    pub(crate) shared: Arc<Shared>,
    /// The store's random identifier. It is a part of each key, so that keys of other clients are not touched.
    pub(crate) id: StoreId,
}

impl StorePages {
    /// Adds the commands that read the pages of `part` to `requests`.
    pub(crate) fn read(&self, part: &HomePart, requests: &mut Requests) {
        let numbers: Vec<u16> = part.pages.clone().collect();
        for numbers in numbers.chunks(BATCH) {
            requests.add(redis::cmd("HMGET").arg(&part.key).arg(numbers));
        }
    }

    /// Copies the pages of `part` from the answers to [`read`](StorePages::read) to `into`.
    pub(crate) fn take(&self, part: &HomePart, answers: &[Value], into: &mut [u8]) -> Result<(), StoreError> {
        let fields = answers.iter().flat_map(|answer| match answer {
            Value::Array(fields) => &fields[..],
            _ => &[],
        });
        let mut pages = part.pages.clone().zip(into.chunks_exact_mut(PAGE));
        for (field, (number, into)) in fields.zip(&mut pages) {
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

    /// Adds the commands that write the pages of `part` to `requests`, and records that the pages are sent.
    pub(crate) fn write(&self, part: &HomePart, from: &[u8], requests: &mut Requests) {
        lock(&self.shared.reservations).write(self.id, part);
        requests.add(&redis::cmd("MULTI"));
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
    }
}
