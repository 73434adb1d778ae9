//! A store whose queues end transfers late and in random order, and tests of the program's queues over it.

use super::{BYTES, PAGE, RemoteProvider, RemoteStore, agent, forked, read, remote, store, write};
use crate::tests::near::near_and_late;
use crate::{Agent, AgentStore, Name, PageStorage};
use largesse_store::{
    Completion, Direction, Fork, Mechanism, PageStore, ProvidedStore, QueueBytes, SplitTransfers, StoreError,
    StoreProvider, Transfer, TransferQueue,
};
use proptest::prelude::*;
use queue_checks::{
    DEPTH, fill_memory, finish, memory_is, moves_the_right_bytes, reaps_nothing_when_idle,
    refuses_more_than_its_depth, results, start,
};
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[path = "../../../store/tests/common/queue.rs"]
mod queue_checks;

/// Number of threads that serve each queue.
const THREADS: usize = 3;

/// Counts the transfers in flight at the stores of one provider.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    now: AtomicUsize,
    pub(super) most: AtomicUsize,
    /// Number of transfers in flight before which none ends.
    least: AtomicUsize,
}

/// A queue that makes a transfer only when it ends. The newest transfers end first, a few at a time.
#[derive(Debug)]
pub(super) struct LateQueue<S> {
    store: Arc<S>,
    memory: QueueBytes,
    transfers: SplitTransfers,
    started: Vec<(usize, Transfer)>,
    traffic: Arc<Traffic>,
    /// When transfers end in any case, so that a test fails instead of waiting for good.
    deadline: Instant,
}

impl<S> LateQueue<S> {
    pub(super) fn new(
        store: &Arc<S>,
        memory: QueueBytes,
        depth: usize,
        traffic: &Arc<Traffic>,
    ) -> LateQueue<S> {
        LateQueue {
            store: Arc::clone(store),
            memory,
            transfers: SplitTransfers::new(depth),
            started: Vec::new(),
            traffic: Arc::clone(traffic),
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }

    /// Returns whether transfers wait until more of them are in flight.
    fn waits_for_more(&self) -> bool {
        let [most, least] = [&self.traffic.most, &self.traffic.least].map(|it| it.load(Ordering::SeqCst));
        most < least && Instant::now() < self.deadline
    }
}

impl<S: PageStore> TransferQueue for LateQueue<S> {
    fn mechanism(&self) -> Mechanism {
        Mechanism::RedisPipelines
    }
    fn depth(&self) -> usize {
        self.transfers.depth()
    }
    fn in_flight(&self) -> usize {
        self.transfers.in_flight()
    }
    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.memory.bytes(range) }
    }
    fn start(&mut self, transfer: Transfer) {
        let Some(of) = self.transfers.begin(transfer.clone()) else { return };
        self.started.push((of, transfer));
        let now = self.traffic.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.traffic.most.fetch_max(now, Ordering::SeqCst);
    }
    fn flush(&mut self) {}
    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        std::thread::sleep(wait.min(Duration::from_micros(300)));
        if self.waits_for_more() {
            return;
        }
        for (of, transfer) in self.started.drain(self.started.len().saturating_sub(3)..) {
            // SAFETY: the bytes belong to the transfer.
            let bytes = unsafe { self.memory.bytes(transfer.memory) };
            let result = match transfer.direction {
                Direction::Read => self.store.read(transfer.at, bytes),
                Direction::Write => self.store.write(transfer.at, bytes),
            };
            self.traffic.now.fetch_sub(1, Ordering::SeqCst);
            self.transfers.piece_ended(of, result);
        }
        self.transfers.drain(done);
    }
    fn descriptor(&self) -> Option<i32> {
        None
    }
}

/// A provider of stores whose queues are late.
#[derive(Debug, Default)]
struct LateProvider {
    remote: RemoteProvider,
    traffic: Arc<Traffic>,
}

#[derive(Debug)]
struct LateStore {
    store: Arc<RemoteStore>,
    traffic: Arc<Traffic>,
}

impl StoreProvider for LateProvider {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        let (store, traffic) = (Arc::new(self.remote.new_store()), Arc::clone(&self.traffic));
        Ok(Box::new(LateStore { store, traffic }))
    }
}

impl ProvidedStore for LateStore {
    fn queue_threads(&self) -> usize {
        THREADS
    }
    fn open_queue_over(&self, memory: QueueBytes, depth: usize) -> Option<Box<dyn TransferQueue>> {
        Some(Box::new(LateQueue::new(&self.store, memory, depth, &self.traffic)))
    }
}

impl PageStore for LateStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.store.reserve(at, len)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.store.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.store.write(at, from)
    }
    fn discard(&self, at: u64, len: u64) {
        self.store.discard(at, len);
    }
}

fn late() -> (PageStorage, Arc<Traffic>) {
    let remote = RemoteProvider { room: BYTES / PAGE, ..RemoteProvider::default() };
    let traffic = Arc::new(Traffic::default());
    (PageStorage::Provider(Box::new(LateProvider { remote, traffic: Arc::clone(&traffic) })), traffic)
}

/// Returns the names of two agents with late queues: one whose stores the program does not map, and one some of whose
/// stores it maps. Each agent starts when the iterator reaches it.
fn storages() -> impl Iterator<Item = Name> {
    [late().0, near_and_late()].into_iter().map(agent)
}

fn open(store: &AgentStore) -> Box<dyn TransferQueue> {
    store.open_queue(queue_checks::PAGES * PAGE, 32).unwrap().expect("the store has queues")
}

#[test]
fn transfers_end_in_any_order_and_move_the_right_bytes() {
    for name in storages() {
        let store = store(&name);
        store.reserve(0, BYTES as u64).unwrap();
        let mut queue = open(&store);
        assert_eq!((queue.mechanism(), queue.depth()), (Mechanism::RedisPipelines, 32));
        // In one span, and each in another one.
        for step in [4, 300] {
            moves_the_right_bytes(&mut *queue, step);
        }
        refuses_more_than_its_depth(&mut *queue);
        reaps_nothing_when_idle(&mut *queue);
    }
}

#[test]
fn many_transfers_are_in_flight() {
    let (storage, traffic) = late();
    traffic.least.store(DEPTH + 1, Ordering::SeqCst);
    let store = store(&agent(storage));
    let mut queue = open(&store);
    (0..32).for_each(|page| start(&mut *queue, Direction::Write, page, 0..1));
    finish(&mut *queue);
    assert!(traffic.most.load(Ordering::SeqCst) > DEPTH, "{traffic:?}");
}

#[test]
fn stores_without_queues_have_none() {
    for storage in [PageStorage::memory().unwrap(), remote(), super::near::near()] {
        assert!(store(&agent(storage)).open_queue(PAGE, 8).unwrap().is_none());
    }
}

#[test]
fn a_process_has_two_queues_and_reopens_them() {
    let store = store(&agent(late().0));
    let (mut reads, writes) = (open(&store), open(&store));
    assert!(store.open_queue(PAGE, 8).unwrap().is_none(), "a third queue");
    for _ in 0..40 {
        drop(reads);
        reads = open(&store);
        moves_the_right_bytes(&mut *reads, 4);
    }
    assert!(store.open_queue(1 << 40, 8).unwrap().is_none());
    drop((reads, writes));
    assert!(store.open_queue(1 << 40, 8).unwrap().is_none(), "more memory than a queue has");
    moves_the_right_bytes(&mut *open(&store), 4);
}

#[test]
fn errors_of_the_store_arrive_in_completions() {
    let store = store(&agent(late().0));
    let mut queue = open(&store);
    start(&mut *queue, Direction::Write, 3, 0..1);
    finish(&mut *queue);
    (2..5).for_each(|page| start(&mut *queue, Direction::Read, page, 0..1));
    let lost = Err(StoreError::Lost("no such page".into()));
    assert_eq!(results(&mut *queue), [(2, lost.clone()), (3, Ok(())), (4, lost)]);
}

#[test]
fn queues_know_the_layers_of_forks() {
    for name in storages() {
        let parent = store(&name);
        parent.reserve(0, 16 * PAGE as u64).unwrap();
        write(&parent, 0, &[1; 8]);
        let mut queue = open(&parent);
        let (mut changed, mut change) = std::io::pipe().unwrap();
        let child = forked(&parent, || {
            let mut own = open(&parent);
            fill_memory(&mut *own, 0..2, |_| 3);
            start(&mut *own, Direction::Write, 3, 0..2);
            finish(&mut *own);
            let waited = changed.read_exact(&mut [0]).is_ok();
            start(&mut *own, Direction::Read, 0, 8..16);
            finish(&mut *own);
            let want = [1, 1, 1, 3, 3, 1, 1, 1];
            waited && (8..).zip(want).all(|(page, byte)| memory_is(&mut *own, page, byte))
        });
        fill_memory(&mut *queue, 0..2, |_| 2);
        start(&mut *queue, Direction::Write, 2, 0..2);
        finish(&mut *queue);
        start(&mut *queue, Direction::Read, 0, 8..16);
        finish(&mut *queue);
        let want = [1, 1, 2, 2, 1, 1, 1, 1];
        assert!((8..).zip(want).all(|(page, byte)| memory_is(&mut *queue, page, byte)));
        change.write_all(&[1]).unwrap();
        assert!(super::ended_well(child));
        assert_eq!(read(&parent, 0, 8), want);
    }
}

/// Kills the agent with transfers in flight. Each of them must end with an error, and so must later transfers.
#[test]
fn agent_death_ends_all_transfers() {
    let (mut known, mut ready) = std::io::pipe().unwrap();
    // SAFETY: the child only runs an agent until it is killed.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let agent = Agent::new(&[], late().0, "test:", None).unwrap();
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
    let mut queue = open(&store);
    moves_the_right_bytes(&mut *queue, 4);
    // The signal only asks for the stop: the agent could still serve a transfer before `waitpid` reports it.
    // SAFETY: the process is a child of this one, and a null pointer asks for no status.
    let stopped = unsafe {
        libc::kill(pid, libc::SIGSTOP);
        libc::waitpid(pid, std::ptr::null_mut(), libc::WUNTRACED)
    };
    assert_eq!(stopped, pid);
    (0..32).for_each(|page| start(&mut *queue, Direction::Write, page, 0..1));
    queue.flush();
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let ended = results(&mut *queue);
    let is_lost = |result: &Result<(), StoreError>| match result {
        Err(error) => error.to_string().contains(&format!("process {pid}) has died")),
        Ok(()) => false,
    };
    assert!(ended.len() == 32 && ended.iter().all(|(_, result)| is_lost(result)), "{ended:?}");
    assert!(!super::ended_well(pid));
    start(&mut *queue, Direction::Read, 0, 0..1);
    assert!(is_lost(&results(&mut *queue)[0].1));
}

#[derive(Clone, Debug)]
enum QueueStep {
    Write { page: u64, pages: usize },
    Read { page: u64, pages: usize },
    Reap,
    Fork,
}

fn steps() -> impl Strategy<Value = Vec<QueueStep>> {
    let place = || (0..56_u64, 1..8_usize);
    let step = prop_oneof![
        6 => place().prop_map(|(page, pages)| QueueStep::Write { page, pages }),
        6 => place().prop_map(|(page, pages)| QueueStep::Read { page, pages }),
        2 => Just(QueueStep::Reap),
        1 => Just(QueueStep::Fork),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    /// Compares reads by a queue with a model, with many transfers in flight, no two of the same page.
    #[test]
    fn reads_return_the_last_write_of_a_queue(steps in steps()) {
        for name in storages() {
            let store = store(&name);
            store.reserve(0, 64 * PAGE as u64).unwrap();
            write(&store, 0, &[0; 64]);
            let (mut queue, mut model, mut round) = (open(&store), [0_u8; 64], 0_u8);
            // Pages with their read's memory, and those of writes, of transfers in flight.
            let busy = Mutex::new(Vec::<(Range<usize>, Direction)>::new());
            let settle = |queue: &mut dyn TransferQueue, model: &[u8; 64]| {
                finish(queue);
                for (pages, direction) in busy.lock().unwrap().drain(..) {
                    let wrong = pages.clone().find(|&page| !memory_is(queue, page, model[page]));
                    assert_eq!(wrong, None, "{direction:?} of {pages:?}");
                }
            };
            for step in &steps {
                round = round.wrapping_add(1);
                match *step {
                    QueueStep::Write { page, pages } | QueueStep::Read { page, pages } => {
                        let first = usize::try_from(page).unwrap();
                        let run = first..first + pages;
                        let meets = |(other, _): &(Range<usize>, Direction)| {
                            other.start < run.end && run.start < other.end
                        };
                        if queue.in_flight() == queue.depth() || busy.lock().unwrap().iter().any(meets) {
                            settle(&mut *queue, &model);
                        }
                        let direction = match step {
                            QueueStep::Write { .. } => Direction::Write,
                            _ => Direction::Read,
                        };
                        let byte = if direction == Direction::Write { round } else { 255 };
                        fill_memory(&mut *queue, run.clone(), |_| byte);
                        if direction == Direction::Write {
                            model[run.clone()].fill(round);
                        }
                        start(&mut *queue, direction, page, run.clone());
                        busy.lock().unwrap().push((run, direction));
                    }
                    QueueStep::Reap => settle(&mut *queue, &model),
                    QueueStep::Fork => {
                        settle(&mut *queue, &model);
                        store.fork(Fork::Before { bytes: BYTES as u64 }).unwrap();
                        store.fork(Fork::InParent).unwrap();
                    }
                }
            }
            settle(&mut *queue, &model);
            prop_assert_eq!(read(&store, 0, 64), model);
        }
    }
}
