//! Tests of programs and agents, as threads of one process or as processes forked from it.

mod late;
mod near;

use self::near::near;
use crate::{Agent, AgentStore, Name, PageStorage};
use largesse_store::{Fork, PageStore, ProvidedStore, StoreError, StoreProvider};
use proptest::prelude::*;
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const BYTES: usize = 16 << 20;

/// A provider whose stores the program cannot map, as if they were on another machine. Each store has room for `room`
/// pages.
#[derive(Debug, Default)]
struct RemoteProvider {
    room: usize,
    stores: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct RemoteStore {
    pages: Mutex<HashMap<u64, [u8; PAGE]>>,
    room: usize,
    stores: Arc<AtomicUsize>,
}

impl RemoteProvider {
    fn new_store(&self) -> RemoteStore {
        let stores = Arc::clone(&self.stores);
        stores.fetch_add(1, Ordering::SeqCst);
        RemoteStore { pages: Mutex::default(), room: self.room, stores }
    }
}

impl StoreProvider for RemoteProvider {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        Ok(Box::new(self.new_store()))
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        self.stores.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ProvidedStore for RemoteStore {}

impl PageStore for RemoteStore {
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

/// Runs an agent on its own thread, which ends with the process.
fn agent(storage: PageStorage) -> Name {
    let (ready, name) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let agent = Agent::new(&[], storage, "test:", None).unwrap();
        ready.send(agent.name().clone()).unwrap();
        agent.run().unwrap();
    });
    name.recv().unwrap()
}

/// Returns the names of three agents, one for each kind of storage. Each agent starts when the iterator reaches it,
/// because it waits only ten seconds for its first connection.
fn all_storages() -> impl Iterator<Item = Name> {
    [PageStorage::memory().unwrap(), remote(), near()].into_iter().map(agent)
}

fn remote() -> PageStorage {
    PageStorage::Provider(Box::new(RemoteProvider { room: BYTES / PAGE, ..RemoteProvider::default() }))
}

fn store(name: &Name) -> AgentStore {
    AgentStore::connect(name, BYTES).unwrap()
}

/// Writes pages from page `first` on, each filled with one of the bytes.
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

/// Forks as the pager does, and returns the exit status of the child, which is 0 if `child` returns true.
fn forked(store: &AgentStore, child: impl FnOnce() -> bool) -> i32 {
    store.fork(Fork::Before { bytes: BYTES as u64 }).unwrap();
    // SAFETY: the child runs only `child`, and ends without exit handlers.
    match unsafe { libc::fork() } {
        0 => {
            let well = store.fork(Fork::InChild).is_ok() && child();
            // SAFETY: the call has no preconditions.
            unsafe { libc::_exit(i32::from(!well)) }
        }
        pid => {
            store.fork(Fork::InParent).unwrap();
            pid
        }
    }
}

/// Waits until `condition` is true; panics after a minute.
#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ended_well(pid: i32) -> bool {
    let mut status = 0;
    // SAFETY: the process is a child of this one.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}

#[test]
fn fork_separates_later_writes() {
    for name in all_storages() {
        let parent = store(&name);
        parent.reserve(0, 16 * PAGE as u64).unwrap();
        write(&parent, 0, &[1; 8]);
        let first = forked(&parent, || {
            write(&parent, 3, &[3, 3]);
            let own = read(&parent, 0, 8) == [1, 1, 1, 3, 3, 1, 1, 1];
            let (mut changed, mut change) = std::io::pipe().unwrap();
            let second = forked(&parent, || {
                write(&parent, 4, &[5, 5]);
                changed.read_exact(&mut [0]).is_ok() && read(&parent, 0, 8) == [1, 1, 1, 3, 5, 5, 1, 1]
            });
            write(&parent, 0, &[4, 4]);
            parent.discard(3 * PAGE as u64, 2 * PAGE as u64);
            change.write_all(&[1]).unwrap();
            own && ended_well(second) && read(&parent, 0, 3) == [4, 4, 1]
        });
        write(&parent, 2, &[2, 2]);
        assert!(ended_well(first));
        assert_eq!(read(&parent, 0, 8), [1, 1, 2, 2, 1, 1, 1, 1]);
    }
}

#[test]
fn failed_forks_change_nothing() {
    for name in all_storages() {
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
fn stores_are_freed_after_their_readers() {
    let storage = RemoteProvider { room: 64, ..RemoteProvider::default() };
    let stores = Arc::clone(&storage.stores);
    let name = agent(PageStorage::Provider(Box::new(storage)));
    let parent = store(&name);
    write(&parent, 0, &[1; 2]);
    let child = forked(&parent, || {
        // SAFETY: plain calls; the child waits to be killed, at the latest by the end of the thread that forked it.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // SAFETY: as above.
        unsafe { libc::pause() };
        true
    });
    assert_eq!(stores.load(Ordering::SeqCst), 3);
    drop(parent);
    // SAFETY: the process is a child of this one.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert!(!ended_well(child));
    wait_until("no store is left", || stores.load(Ordering::SeqCst) == 0);
}

#[test]
fn full_stores_are_reported() {
    let name =
        agent(PageStorage::Provider(Box::new(RemoteProvider { room: 4, ..RemoteProvider::default() })));
    let store = store(&name);
    store.reserve(0, 4 * PAGE as u64).unwrap();
    assert_eq!(store.reserve(0, 5 * PAGE as u64), Err(StoreError::Full { wanted: 5 * PAGE as u64 }));
    let mut page = [0; PAGE];
    assert_eq!(store.read(0, &mut page), Err(StoreError::Lost("no such page".into())));
}

#[test]
fn threads_transfer_pages_concurrently() {
    for name in all_storages() {
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

/// Kills the agent during transfers. Each thread must get an error, and none may wait forever.
#[test]
fn agent_death_is_an_error() {
    for storage in [|| PageStorage::memory().unwrap(), remote as fn() -> PageStorage, near] {
        let (mut known, mut ready) = std::io::pipe().unwrap();
        // SAFETY: the child only runs an agent until it is killed.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let agent = Agent::new(&[], storage(), "test:", None).unwrap();
            write!(ready, "{}", agent.name()).unwrap();
            drop(ready);
            let _ = agent.run();
            // SAFETY: the call has no preconditions.
            unsafe { libc::_exit(0) };
        }
        drop(ready);
        let mut name = String::new();
        known.read_to_string(&mut name).unwrap();
        let store = AgentStore::connect(&Name::parse(&name).unwrap(), BYTES).unwrap();
        store.reserve(0, BYTES as u64).unwrap();
        let written = [const { AtomicUsize::new(0) }; 6];
        std::thread::scope(|scope| {
            for (thread, written) in (0_u64..).zip(&written) {
                let store = &store;
                scope.spawn(move || {
                    let page = [7; 4 * PAGE];
                    let error = loop {
                        if let Err(error) = store.write(thread << 20, &page) {
                            break error;
                        }
                        written.fetch_add(1, Ordering::Relaxed);
                    };
                    assert!(error.to_string().contains(&format!("process {pid}) has died")), "{error}");
                });
            }
            wait_until("every thread transfers", || {
                written.iter().all(|count| count.load(Ordering::Relaxed) >= 20)
            });
            // SAFETY: the process is a child of this one.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        assert!(!ended_well(pid));
        assert!(matches!(store.reserve(0, 4096), Err(StoreError::Lost(_))));
        assert!(matches!(store.fork(Fork::Before { bytes: 4096 }), Err(StoreError::Lost(_))));
    }
}

#[derive(Clone, Debug)]
enum StoreOperation {
    Write(usize, Vec<u8>),
    Discard(usize, usize),
    Fork,
}

fn operations() -> impl Strategy<Value = Vec<StoreOperation>> {
    let write = (0..56_usize, prop::collection::vec(1..255_u8, 1..8));
    let operation = prop_oneof![
        6 => write.prop_map(|(page, bytes)| StoreOperation::Write(page, bytes)),
        1 => (0..56_usize, 1..8_usize).prop_map(|(page, pages)| StoreOperation::Discard(page, pages)),
        1 => Just(StoreOperation::Fork),
    ];
    prop::collection::vec(operation, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Compares reads of a program that forks with a model. A fork that fails creates the same layers in the parent as
    /// one that succeeds.
    #[test]
    fn reads_return_the_last_write(operations in operations()) {
        for name in all_storages() {
            let (store, mut model) = (store(&name), [None; 64]);
            store.reserve(0, 64 * PAGE as u64).unwrap();
            for operation in &operations {
                match operation {
                    StoreOperation::Write(page, bytes) => {
                        write(&store, *page, bytes);
                        bytes.iter().zip(*page..).for_each(|(&byte, page)| model[page] = Some(byte));
                    }
                    StoreOperation::Discard(page, pages) => {
                        let (at, len) = ((page * PAGE) as u64, (pages * PAGE) as u64);
                        store.discard(at, len);
                        store.reserve(at, len).unwrap();
                        model[*page..page + pages].fill(None);
                    }
                    StoreOperation::Fork => {
                        store.fork(Fork::Before { bytes: BYTES as u64 }).unwrap();
                        store.fork(Fork::InParent).unwrap();
                    }
                }
            }
            // Runs of pages that were written; a run is one request, which other programs may delay.
            let mut first = 0;
            for run in model.split_inclusive(Option::is_none) {
                let want: Vec<u8> = run.iter().flatten().copied().collect();
                if !want.is_empty() {
                    prop_assert_eq!(read(&store, first, want.len()), want);
                }
                first += run.len();
            }
        }
    }
}
