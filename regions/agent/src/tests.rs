//! Programs and agents: here mostly threads of one process, or processes forked from it.

mod near;

use self::near::near;
use crate::{Agent, AgentStore, Name, Place};
use largesse_store::{Fork, PageStore, ProvidedStore, StoreError, StoreProvider};
use proptest::prelude::*;
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const BYTES: usize = 16 << 20;

/// A store like that of another machine: reached by calls only, with room for so many pages.
#[derive(Debug, Default)]
struct Far {
    room: usize,
    spaces: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FarSpace {
    pages: Mutex<HashMap<u64, [u8; PAGE]>>,
    room: usize,
    spaces: Arc<AtomicUsize>,
}

impl StoreProvider for Far {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        let spaces = Arc::clone(&self.spaces);
        spaces.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(FarSpace { pages: Mutex::default(), room: self.room, spaces }))
    }
}

impl Drop for FarSpace {
    fn drop(&mut self) {
        self.spaces.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ProvidedStore for FarSpace {}

impl PageStore for FarSpace {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let end = usize::try_from((at + len) / PAGE as u64).unwrap();
        if end > self.room { Err(StoreError::Full { wanted: len }) } else { Ok(()) }
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        for (number, page) in (at / PAGE as u64..).zip(into.chunks_exact_mut(PAGE)) {
            let pages = self.pages.lock().unwrap();
            page.copy_from_slice(pages.get(&number).ok_or(StoreError::Lost("no such page".into()))?);
        }
        Ok(())
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        for (number, page) in (at / PAGE as u64..).zip(from.chunks_exact(PAGE)) {
            self.pages.lock().unwrap().insert(number, page.try_into().unwrap());
        }
        Ok(())
    }
    fn discard(&self, at: u64, len: u64) {
        let gone = at / PAGE as u64..(at + len) / PAGE as u64;
        self.pages.lock().unwrap().retain(|number, _| !gone.contains(number));
    }
}

/// An agent on a thread of its own, which ends with the process.
fn agent(place: Place) -> Name {
    let (ready, name) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let agent = Agent::new(&[], place, "test:", None).unwrap();
        ready.send(agent.name().clone()).unwrap();
        agent.run().unwrap();
    });
    name.recv().unwrap()
}

fn all_places() -> [Name; 3] {
    [agent(Place::memory().unwrap()), agent(far()), agent(near())]
}

fn far() -> Place {
    Place::Elsewhere(Box::new(Far { room: BYTES / PAGE, ..Far::default() }))
}

fn store(name: &Name) -> AgentStore {
    AgentStore::connect(name, BYTES).unwrap()
}

/// Whole pages of one byte each.
fn write(store: &AgentStore, first: usize, bytes: &[u8]) {
    let pages: Vec<u8> = bytes.iter().flat_map(|&byte| [byte; PAGE]).collect();
    store.write((first * PAGE) as u64, &pages).unwrap();
}

fn read(store: &AgentStore, first: usize, pages: usize) -> Vec<u8> {
    let mut bytes = vec![0; pages * PAGE];
    store.read((first * PAGE) as u64, &mut bytes).unwrap();
    for page in bytes.chunks_exact(PAGE) {
        assert!(page.iter().all(|byte| byte == &page[0]));
    }
    bytes.chunks_exact(PAGE).map(|page| page[0]).collect()
}

/// Forks as the pager does; the child ends with what `child` returns.
fn forked(store: &AgentStore, child: impl FnOnce() -> bool) -> i32 {
    store.fork(Fork::Before { bytes: BYTES as u64 }).unwrap();
    // SAFETY: the child runs `child` and ends without any handler.
    match unsafe { libc::fork() } {
        0 => {
            let well = store.fork(Fork::InChild).is_ok() && child();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        pid => {
            store.fork(Fork::InParent).unwrap();
            pid
        }
    }
}

fn ended_well(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}

#[test]
fn each_side_of_a_fork_reads_its_own_pages_and_those_from_before() {
    for name in all_places() {
        let parent = store(&name);
        parent.reserve(0, 16 * PAGE as u64).unwrap();
        write(&parent, 0, &[1; 8]);
        let first = forked(&parent, || {
            write(&parent, 3, &[3, 3]);
            let own = read(&parent, 0, 8) == [1, 1, 1, 3, 3, 1, 1, 1];
            let second = forked(&parent, || {
                write(&parent, 4, &[5, 5]);
                std::thread::sleep(Duration::from_millis(50));
                read(&parent, 0, 8) == [1, 1, 1, 3, 5, 5, 1, 1]
            });
            write(&parent, 0, &[4, 4]);
            parent.discard(3 * PAGE as u64, 2 * PAGE as u64);
            own && ended_well(second) && read(&parent, 0, 3) == [4, 4, 1]
        });
        write(&parent, 2, &[2, 2]);
        assert!(ended_well(first));
        assert_eq!(read(&parent, 0, 8), [1, 1, 2, 2, 1, 1, 1, 1]);
    }
}

#[test]
fn a_fork_that_did_not_happen_leaves_everything_as_it_was() {
    for name in all_places() {
        let parent = store(&name);
        parent.reserve(0, 4 * PAGE as u64).unwrap();
        for byte in 1..20 {
            write(&parent, 0, &[byte; 3]);
            parent.fork(Fork::Before { bytes: BYTES as u64 }).unwrap();
            parent.fork(Fork::InParent).unwrap();
            assert_eq!(read(&parent, 0, 3), [byte; 3]);
        }
        let last = forked(&parent, || read(&parent, 0, 3) == [19; 3]);
        assert!(ended_well(last));
    }
}

#[test]
fn spaces_are_given_back_when_the_last_one_who_reads_them_has_gone() {
    let place = Far { room: 64, ..Far::default() };
    let spaces = Arc::clone(&place.spaces);
    let name = agent(Place::Elsewhere(Box::new(place)));
    let parent = store(&name);
    write(&parent, 0, &[1; 2]);
    let child = forked(&parent, || {
        std::thread::sleep(Duration::from_secs(30));
        true
    });
    assert_eq!(spaces.load(Ordering::SeqCst), 3);
    drop(parent);
    // SAFETY: our own child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert!(!ended_well(child));
    let since = Instant::now();
    while spaces.load(Ordering::SeqCst) > 0 {
        assert!(since.elapsed() < Duration::from_secs(20), "{spaces:?} are left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_full_store_says_so() {
    let name = agent(Place::Elsewhere(Box::new(Far { room: 4, ..Far::default() })));
    let store = store(&name);
    store.reserve(0, 4 * PAGE as u64).unwrap();
    assert_eq!(store.reserve(0, 5 * PAGE as u64), Err(StoreError::Full { wanted: 5 * PAGE as u64 }));
    let mut page = [0; PAGE];
    assert_eq!(store.read(0, &mut page), Err(StoreError::Lost("no such page".into())));
}

#[test]
fn many_threads_move_pages_at_once() {
    for name in all_places() {
        let store = store(&name);
        store.reserve(0, BYTES as u64).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8_usize {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..200_usize {
                        let (page, byte) = (thread * 64 + round % 64, u8::try_from(round).unwrap());
                        write(store, page, &[byte]);
                        assert_eq!(read(store, page, 1), [byte]);
                    }
                });
            }
        });
    }
}

/// SIGKILL at any moment: whoever needs the store is told, nobody waits for good.
#[test]
fn the_death_of_the_agent_is_an_error_at_the_next_need() {
    for place in [|| Place::memory().unwrap(), far as fn() -> Place, near] {
        let (mut known, mut ready) = std::io::pipe().unwrap();
        // SAFETY: the child is an agent until it is killed.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let agent = Agent::new(&[], place(), "test:", None).unwrap();
            write!(ready, "{}", agent.name()).unwrap();
            drop(ready);
            let _ = agent.run();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(0) };
        }
        drop(ready);
        let mut name = String::new();
        known.read_to_string(&mut name).unwrap();
        let store = AgentStore::connect(&Name::parse(&name).unwrap(), BYTES).unwrap();
        store.reserve(0, BYTES as u64).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let store = &store;
                scope.spawn(move || {
                    let page = [7; 4 * PAGE];
                    let error = loop {
                        if let Err(error) = store.write(thread << 20, &page) {
                            break error;
                        }
                    };
                    assert!(error.to_string().contains(&format!("process {pid}) has died")), "{error}");
                });
            }
            std::thread::sleep(Duration::from_millis(60));
            // SAFETY: our own child.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        assert!(!ended_well(pid));
        assert!(matches!(store.reserve(0, 4096), Err(StoreError::Lost(_))));
        assert!(matches!(store.fork(Fork::Before { bytes: 4096 }), Err(StoreError::Lost(_))));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, Vec<u8>),
    Discard(usize, usize),
    Fork,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = (0..56_usize, prop::collection::vec(1..255_u8, 1..8));
    let step = prop_oneof![
        6 => write.prop_map(|(page, bytes)| Step::Write(page, bytes)),
        1 => (0..56_usize, 1..8_usize).prop_map(|(page, pages)| Step::Discard(page, pages)),
        1 => Just(Step::Fork),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// A fork that fails makes the same layers in the parent as one that does not.
    #[test]
    fn whatever_was_written_last_is_read(steps in steps()) {
        for name in all_places() {
            let (store, mut model) = (store(&name), [None; 64]);
            store.reserve(0, 64 * PAGE as u64).unwrap();
            for step in &steps {
                match step {
                    Step::Write(page, bytes) => {
                        write(&store, *page, bytes);
                        bytes.iter().zip(*page..).for_each(|(&byte, page)| model[page] = Some(byte));
                    }
                    Step::Discard(page, pages) => {
                        let (at, len) = ((page * PAGE) as u64, (pages * PAGE) as u64);
                        store.discard(at, len);
                        store.reserve(at, len).unwrap();
                        model[*page..page + pages].fill(None);
                    }
                    Step::Fork => {
                        store.fork(Fork::Before { bytes: BYTES as u64 }).unwrap();
                        store.fork(Fork::InParent).unwrap();
                    }
                }
            }
            for (page, byte) in model.iter().enumerate() {
                if let Some(byte) = byte {
                    prop_assert_eq!(read(&store, page, 1), vec![*byte]);
                }
            }
        }
    }
}
