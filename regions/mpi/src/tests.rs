//! Tests stores on servers that run as threads, with an in-process [`Wire`].

use crate::homes::STRIPE;
use crate::message::Message;
use crate::ranks::Ranks;
use crate::serve::{Memory, serve};
use crate::wire::{RankCopy, Wire, WireError};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use largesse_pages::SPAN;
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_store::{
    Direction, MappedSpan, PageStore as _, ProvidedStore, QueueBytes, StoreError, StoreProvider as _,
    TransferQueue,
};
use proptest::prelude::*;
use queue_checks::{
    DEPTH, PAGES, finish, moves_the_right_bytes, reaps_nothing_when_idle, refuses_more_than_its_depth,
    results, start,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

#[path = "../../store/tests/common/queue.rs"]
mod queue_checks;

/// The simulated network, which all ranks share.
#[derive(Debug)]
struct Net {
    letters: Vec<Mutex<VecDeque<Message>>>,
    /// The memory that ranks 1, 2, … lend.
    memory: Vec<SharedMapping>,
    cut: AtomicBool,
    /// Number of copies in flight.
    in_flight: AtomicUsize,
    most: AtomicUsize,
}

/// One rank's end of the simulated network.
#[derive(Clone, Debug)]
struct End {
    rank: u32,
    net: Arc<Net>,
}

impl End {
    fn at(&self, rank: u32, at: u64, len: usize) -> Result<*mut u8, WireError> {
        if self.net.cut.load(Ordering::Relaxed) {
            return Err(WireError { call: "reaching", rank: Some(rank), words: "cut".into() });
        }
        let memory = &self.net.memory[rank as usize - 1];
        let at = usize::try_from(at).unwrap();
        assert!(at + len <= memory.len());
        // SAFETY: inside the range.
        Ok(unsafe { memory.start().as_ptr().add(at) })
    }
}

impl Wire for End {
    unsafe fn start(&self, copy: &mut RankCopy) -> Result<(), WireError> {
        self.at(copy.rank, copy.at, copy.len)?;
        // Ends after some tests, in another order than it was started.
        copy.word = (copy.at >> 12).wrapping_mul(0x9e37_79b9) % 7;
        self.net.in_flight.fetch_add(1, Ordering::Relaxed);
        self.net.most.fetch_max(self.net.in_flight.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }
    fn test(&self, copy: &mut RankCopy) -> Result<bool, WireError> {
        let at = self.at(copy.rank, copy.at, copy.len)?;
        if copy.word > 0 {
            copy.word -= 1;
            return Ok(false);
        }
        match copy.direction {
            // SAFETY: the range is committed, and no other thread transfers these bytes.
            Direction::Read => unsafe { copy.memory.copy_from_nonoverlapping(at, copy.len) },
            // SAFETY: as above.
            Direction::Write => unsafe { at.copy_from_nonoverlapping(copy.memory, copy.len) },
        }
        self.net.in_flight.fetch_sub(1, Ordering::Relaxed);
        Ok(true)
    }
    fn look(&self) -> Result<(), WireError> {
        Ok(())
    }
    fn send(&self, rank: u32, message: Message) -> Result<(), WireError> {
        let letter = Message { rank: self.rank, ..message };
        self.net.letters[rank as usize].lock().unwrap().push_back(letter);
        Ok(())
    }
    fn receive(&self) -> Result<Option<Message>, WireError> {
        Ok(self.net.letters[self.rank as usize].lock().unwrap().pop_front())
    }
}

/// A simulated network, with servers that run as threads of the test.
struct World {
    ranks: Ranks<End>,
    net: Arc<Net>,
    servers: Vec<JoinHandle<Result<(), WireError>>>,
}

impl World {
    fn new(stripes: &[u32], near: bool) -> World {
        World::with(stripes, near, || u64::MAX)
    }

    /// Starts servers that lend the given numbers of stripes, on a machine on which `available` bytes may still be
    /// committed.
    fn with(stripes: &[u32], near: bool, available: fn() -> u64) -> World {
        let lent: Vec<_> = stripes.iter().map(|&it| Memory::new(it, available).unwrap()).collect();
        let memory = lent.iter().map(|it| it.map_again()).collect();
        let letters = (0..=stripes.len()).map(|_| Mutex::default()).collect();
        let net = Arc::new(Net {
            letters,
            memory,
            cut: AtomicBool::new(false),
            in_flight: 0.into(),
            most: 0.into(),
        });
        let end = |rank| End { rank, net: Arc::clone(&net) };
        let ranks = u32::try_from(stripes.len() + 1).unwrap();
        let world = crate::World { rank: 0, ranks, ranks_here: ranks, share: u32::from(near) };
        let servers = (1..).zip(lent).map(|(rank, mut memory)| {
            let end = end(rank);
            std::thread::spawn(move || serve(&end, &mut memory))
        });
        let servers = servers.collect();
        let ranks = Ranks::meet(Arc::new(end(0)), world).unwrap();
        World { ranks, net, servers }
    }

    fn end(self) {
        self.ranks.stop().unwrap();
        for server in self.servers {
            server.join().unwrap().unwrap();
        }
    }
}

/// Returns bytes that depend on their offset and on `mark`, a number of the writer.
fn marked(at: u64, len: usize, mark: u8) -> Vec<u8> {
    (at..).take(len).map(|at| ((at / 4096) % 251) as u8 ^ mark).collect()
}

#[test]
fn written_bytes_are_read_back() {
    for near in [false, true] {
        let world = World::new(&[3, 2], near);
        let store = world.ranks.create().unwrap();
        store.reserve(STRIPE, 4 * STRIPE).unwrap();
        let all = marked(STRIPE, 4 * SPAN, 1);
        store.write(STRIPE, &all).unwrap();
        let mut back = vec![0; all.len()];
        store.read(STRIPE, &mut back).unwrap();
        assert!(back == all, "near: {near}");
        world.end();
    }
}

fn queue(store: &dyn ProvidedStore) -> Box<dyn TransferQueue> {
    store.open_queue_over(QueueBytes::new(PAGES * 4096).unwrap(), DEPTH).unwrap()
}

#[test]
fn many_copies_are_in_flight_and_end_in_any_order() {
    for near in [false, true] {
        let world = World::new(&[3, 2], near);
        let store = world.ranks.create().unwrap();
        store.reserve(0, 5 * STRIPE).unwrap();
        assert_eq!(store.queue_threads(), usize::from(!near));
        let mut queue = queue(&*store);
        // In one stripe, and over the boundaries of several.
        for step in [4, 170] {
            moves_the_right_bytes(&mut *queue, step);
        }
        refuses_more_than_its_depth(&mut *queue);
        reaps_nothing_when_idle(&mut *queue);
        drop(queue);
        let most = world.net.most.load(Ordering::Relaxed);
        assert_eq!(most, if near { 0 } else { DEPTH + 1 }, "one transfer lies in two stripes");
        world.end();
    }
}

#[test]
fn broken_connections_end_all_transfers_of_a_queue() {
    let world = World::new(&[2], false);
    let store = world.ranks.create().unwrap();
    store.reserve(0, STRIPE).unwrap();
    let mut queue = queue(&*store);
    (0..DEPTH as u64).for_each(|page| start(&mut *queue, Direction::Write, page, 0..1));
    finish(&mut *queue);
    (0..DEPTH as u64).for_each(|page| start(&mut *queue, Direction::Read, page, 0..1));
    world.net.cut.store(true, Ordering::Relaxed);
    let ended = results(&mut *queue);
    assert_eq!(ended.len(), DEPTH);
    for (_, result) in ended {
        assert!(matches!(&result, Err(StoreError::Lost(why)) if why.contains("rank 1")), "{result:?}");
    }
    start(&mut *queue, Direction::Read, 1 << 20, 0..1);
    assert!(matches!(&results(&mut *queue)[0].1, Err(StoreError::Lost(why)) if why.contains("stripe 2048")));
}

#[test]
fn freed_stripes_are_reused_when_full() {
    let world = World::new(&[1, 2], false);
    assert_eq!(world.ranks.room(), 3 * STRIPE);
    let (one, other) = (world.ranks.create().unwrap(), world.ranks.create().unwrap());
    one.reserve(0, 2 * STRIPE).unwrap();
    let full = Err(StoreError::Full { wanted: 2 * STRIPE });
    assert_eq!(other.reserve(0, 2 * STRIPE), full);
    other.reserve(0, STRIPE).unwrap();
    one.discard(0, STRIPE / 2);
    assert_eq!(other.reserve(STRIPE, 2 * STRIPE), full);
    one.discard(STRIPE / 2, STRIPE);
    other.reserve(STRIPE, STRIPE).unwrap();
    drop(one);
    other.reserve(2 * STRIPE, STRIPE).unwrap();
    world.end();
}

#[test]
fn two_stores_do_not_see_each_other() {
    let world = World::new(&[4, 4], true);
    let stores = [1, 2].map(|mark| (mark, world.ranks.create().unwrap()));
    for (mark, store) in &stores {
        store.reserve(0, 2 * STRIPE).unwrap();
        store.write(4096, &marked(4096, SPAN, *mark)).unwrap();
    }
    for (mark, store) in &stores {
        let mut back = vec![0; SPAN];
        store.read(4096, &mut back).unwrap();
        assert!(back == marked(4096, SPAN, *mark));
    }
    world.end();
}

#[test]
fn broken_connections_lose_the_store() {
    let world = World::new(&[2], false);
    let store = world.ranks.create().unwrap();
    store.reserve(0, STRIPE).unwrap();
    world.net.cut.store(true, Ordering::Relaxed);
    let mut page = vec![0; 4096];
    for outcome in [store.read(0, &mut page), store.write(0, &page)] {
        assert!(matches!(&outcome, Err(StoreError::Lost(why)) if why.contains("rank 1")), "{outcome:?}");
    }
}

#[test]
fn stop_waits_for_earlier_messages() {
    for _ in 0..20 {
        let world = World::new(&[64, 64], false);
        let store = world.ranks.create().unwrap();
        store.reserve(0, 128 * STRIPE).unwrap();
        drop(store);
        world.ranks.stop().unwrap();
        let unread = world.net.letters.iter().map(|letters| letters.lock().unwrap().len());
        assert_eq!(unread.sum::<usize>(), 0);
    }
}

#[test]
fn windows_show_bytes_until_discard() {
    let world = World::new(&[2, 2], true);
    let windows: Vec<_> = world.ranks.windows().iter().map(|&fd| map(fd)).collect();
    assert_eq!(windows.len(), 2);
    let store = world.ranks.create().unwrap();
    store.reserve(0, 3 * STRIPE).unwrap();
    let all = marked(0, 3 * SPAN, 5);
    store.write(0, &all).unwrap();
    for (span, bytes) in (0..).zip(all.chunks(SPAN)) {
        let MappedSpan { window, at } = store.mapped_span(span * STRIPE + 4096).unwrap();
        assert!(windows[window][usize::try_from(at).unwrap()..][..SPAN] == *bytes, "span {span}");
    }
    assert_eq!(store.mapped_span(3 * STRIPE), None);
    let MappedSpan { window, at } = store.mapped_span(0).unwrap();
    store.discard(0, STRIPE);
    world.end();
    assert_eq!(windows[window][usize::try_from(at).unwrap()..][..SPAN], [0; SPAN]);
}

#[test]
fn unshared_memory_has_no_windows() {
    let world = World::new(&[2], false);
    let store = world.ranks.create().unwrap();
    store.reserve(0, STRIPE).unwrap();
    assert_eq!((world.ranks.windows(), store.mapped_span(0), world.ranks.far()), (Vec::new(), None, 1));
    world.end();
}

/// Maps the memory file with this descriptor.
fn map(fd: i32) -> &'static [u8] {
    // SAFETY: only this function has the duplicate; servers write on request, before the bytes are compared.
    unsafe {
        let mapping = MemoryFile::received(libc::dup(fd)).unwrap().map(false).unwrap();
        let bytes = core::slice::from_raw_parts(mapping.start().as_ptr(), mapping.len());
        core::mem::forget(mapping);
        bytes
    }
}

#[test]
fn unreserved_bytes_are_lost() {
    let world = World::new(&[2], true);
    let store = world.ranks.create().unwrap();
    store.reserve(0, STRIPE).unwrap();
    assert!(matches!(store.read(STRIPE, &mut [0; 4096]), Err(StoreError::Lost(_))));
    world.end();
}

#[test]
fn low_memory_fills_the_server_early() {
    for near in [false, true] {
        let world = World::with(&[4], near, || 2 * STRIPE);
        let store = world.ranks.create().unwrap();
        assert_eq!(store.reserve(0, 3 * STRIPE), Err(StoreError::Full { wanted: 3 * STRIPE }));
        store.reserve(0, 2 * STRIPE).unwrap();
        store.write(STRIPE, &marked(STRIPE, SPAN, 3)).unwrap();
        world.end();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn random_calls_keep_every_page(
        steps in prop::collection::vec((0..4_u8, 0..1500_u64, 1..700_u64), 1..40),
        near in any::<bool>(),
    ) {
        let world = World::new(&[3, 2, 3], near);
        let store = world.ranks.create().unwrap();
        // The last mark of each reserved page.
        let mut pages: HashMap<u64, Option<u8>> = HashMap::new();
        for (step, (what, first, count)) in (1_u8..).zip(steps) {
            let (at, len) = (first * 4096, count * 4096);
            let all = first..first + count;
            let bytes = usize::try_from(len).unwrap();
            match what {
                0 => {
                    if store.reserve(at, len).is_ok() {
                        all.for_each(|page| _ = pages.entry(page).or_insert(None));
                    }
                }
                1 => {
                    store.discard(at, len);
                    pages.retain(|page, _| !all.contains(page));
                }
                2 if all.clone().all(|page| pages.contains_key(&page)) => {
                    store.write(at, &marked(at, bytes, step)).unwrap();
                    all.for_each(|page| _ = pages.insert(page, Some(step)));
                }
                _ => for page in all {
                    let Some(Some(mark)) = pages.get(&page) else { continue };
                    let mut back = vec![0; 4096];
                    store.read(page * 4096, &mut back).unwrap();
                    prop_assert!(back == marked(page * 4096, 4096, *mark), "page {}", page);
                },
            }
        }
        drop(store);
        let whole = world.ranks.create().unwrap();
        prop_assert_eq!(whole.reserve(0, 8 * STRIPE), Ok(()));
        world.end();
    }
}
