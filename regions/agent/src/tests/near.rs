//! Simulates the stores of MPI ranks on this machine: two of three spans are mapped in windows.

use super::BYTES;
use super::late::{LateQueue, Traffic};
use crate::PageStorage;
use largesse_pages::SPAN;
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_store::{
    MappedSpan, PageStore, ProvidedStore, QueueBytes, Ranges, StoreError, StoreProvider, TransferQueue,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Number of spans that all stores have together.
const ROOM: usize = 16 * BYTES / SPAN;

#[derive(Debug)]
struct NearbyProvider {
    shared: Arc<Shared>,
    /// The transfers in flight, if the stores have queues.
    traffic: Option<Arc<Traffic>>,
}

#[derive(Debug)]
struct Shared {
    file: MemoryFile,
    mapping: SharedMapping,
    free: Mutex<Vec<usize>>,
}

#[derive(Debug)]
struct Homes {
    shared: Arc<Shared>,
    homes: Mutex<(HashMap<u64, usize>, Ranges)>,
}

#[derive(Debug)]
struct NearbyStore {
    homes: Arc<Homes>,
    traffic: Option<Arc<Traffic>>,
}

/// Returns a provider of simulated stores in memory of this process.
pub(super) fn near() -> PageStorage {
    provider(None)
}

/// Returns a provider of simulated stores whose queues end transfers late.
pub(super) fn near_and_late() -> PageStorage {
    provider(Some(Arc::new(Traffic::default())))
}

fn provider(traffic: Option<Arc<Traffic>>) -> PageStorage {
    let file = MemoryFile::new(c"test", ROOM * SPAN).unwrap();
    let mapping = file.map(true).unwrap();
    let shared = Arc::new(Shared { file, mapping, free: Mutex::new((0..ROOM).collect()) });
    PageStorage::Provider(Box::new(NearbyProvider { shared, traffic }))
}

impl StoreProvider for NearbyProvider {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        let homes = Homes { shared: Arc::clone(&self.shared), homes: Mutex::default() };
        Ok(Box::new(NearbyStore { homes: Arc::new(homes), traffic: self.traffic.clone() }))
    }
    fn windows(&self) -> Vec<i32> {
        vec![self.shared.file.descriptor()]
    }
}

impl Homes {
    fn home(&self, at: u64) -> Option<usize> {
        self.homes.lock().unwrap().0.get(&(at / SPAN as u64)).copied()
    }

    fn address(&self, at: u64) -> Result<*mut u8, StoreError> {
        let home = self.home(at).ok_or(StoreError::Lost("not reserved".into()))?;
        let at = home * SPAN + usize::try_from(at).unwrap() % SPAN;
        // SAFETY: the offset is inside the mapping.
        Ok(unsafe { self.shared.mapping.start().as_ptr().add(at) })
    }
}

impl ProvidedStore for NearbyStore {
    fn mapped_span(&self, at: u64) -> Option<MappedSpan> {
        let home = self.homes.home(at).filter(|home| home % 3 != 0)?;
        Some(MappedSpan { window: 0, at: (home * SPAN) as u64 })
    }
    fn queue_threads(&self) -> usize {
        usize::from(self.traffic.is_some())
    }
    fn open_queue_over(&self, memory: QueueBytes, depth: usize) -> Option<Box<dyn TransferQueue>> {
        Some(Box::new(LateQueue::new(&self.homes, memory, depth, self.traffic.as_ref()?)))
    }
}

impl PageStore for NearbyStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.homes.reserve(at, len)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.homes.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.homes.write(at, from)
    }
    fn discard(&self, at: u64, len: u64) {
        self.homes.discard(at, len);
    }
}

impl PageStore for Homes {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let (homes, wanted) = &mut *self.homes.lock().unwrap();
        for span in at / SPAN as u64..(at + len).div_ceil(SPAN as u64) {
            let mut free = self.shared.free.lock().unwrap();
            homes.entry(span).or_insert_with(|| free.pop().expect("a span"));
        }
        wanted.add(at..at + len);
        Ok(())
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        for (page, at) in into.chunks_mut(4096).zip((at..).step_by(4096)) {
            // SAFETY: the page is inside the mapping, and no other thread accesses it.
            unsafe { page.as_mut_ptr().copy_from_nonoverlapping(self.address(at)?, page.len()) };
        }
        Ok(())
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        for (page, at) in from.chunks(4096).zip((at..).step_by(4096)) {
            // SAFETY: as above.
            unsafe { self.address(at)?.copy_from_nonoverlapping(page.as_ptr(), page.len()) };
        }
        Ok(())
    }
    /// Frees the spans of which no page is reserved any more. The next reservation of any store takes the span that was
    /// freed last.
    fn discard(&self, at: u64, len: u64) {
        let (homes, wanted) = &mut *self.homes.lock().unwrap();
        wanted.remove(&(at..at + len));
        let span = |number: u64| number * SPAN as u64..(number + 1) * SPAN as u64;
        homes.retain(|&number, &mut home| {
            let stays = wanted.missing(&span(number)).bytes() < SPAN as u64;
            if !stays {
                self.shared.free.lock().unwrap().push(home);
            }
            stays
        });
    }
}

impl Drop for Homes {
    fn drop(&mut self) {
        let homes = self.homes.lock().unwrap().0.drain().map(|(_, home)| home).collect::<Vec<_>>();
        self.shared.free.lock().unwrap().extend(homes);
    }
}

/// This test has been seen to fail without `SpanCache::forget`: the page of the other store is read.
#[test]
fn reused_spans_are_located_again() {
    let name = super::agent(near());
    let (one, other) = (super::store(&name), super::store(&name));
    let (page, span) = (4096_u64, SPAN as u64);
    for round in 0..4_u64 {
        let at = round * span;
        one.reserve(at, 2 * page).unwrap();
        one.write(at, &[1; 4096]).unwrap();
        one.discard(at, 2 * page);
        other.reserve(at, page).unwrap();
        one.reserve(at, page).unwrap();
        one.write(at, &[2; 4096]).unwrap();
        other.write(at, &[3; 4096]).unwrap();
        let mut got = [0; 4096];
        one.read(at, &mut got).unwrap();
        assert_eq!(got, [2; 4096], "round {round}");
    }
}
