#[path = "../../tests/common/queue.rs"]
mod queue_checks;

use super::*;
use crate::Direction;
use crate::overlay::MAX_LAYERS;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use largesse_pages::Table;
use queue_checks::{fill_memory, finish, memory_is, moves_the_right_bytes, reaps_nothing_when_idle, start};
use std::time::Duration;

/// Returns the build directory, which is on a disk. The directory for temporary files may be in memory.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

fn create(name: &str) -> FileStore {
    let path = folder().join(format!("{name}-{}", std::process::id()));
    FileStore::create(&path, &Broker::start().unwrap()).unwrap()
}

#[test]
fn written_pages_are_read_and_no_file_remains() {
    let store = create("store");
    assert!(!store.path.exists());
    store.reserve(1 << 30, 8192).unwrap();
    write(&store, (1 << 30) / PAGE, &[7, 7]);
    assert_eq!(read(&store, (1 << 30) / PAGE, 2), [7, 7]);
    store.discard(1 << 30, 8192);
    assert_eq!(read(&store, (1 << 30) / PAGE, 2), [0, 0]);
}

const PAGE: u64 = 4096;
const BYTES: usize = 4096;

/// Writes pages from page `first` on, each filled with one byte of `bytes`.
fn write(store: &FileStore, first: u64, bytes: &[u8]) {
    let mut page = Table::<u8>::new(bytes.len() * BYTES).unwrap();
    for (page, &byte) in page.chunks_exact_mut(BYTES).zip(bytes) {
        page.fill(byte);
    }
    let bytes = &page[..];
    store.broker.call(|| store.write(first * PAGE, bytes)).unwrap();
}

fn read(store: &FileStore, first: u64, pages: usize) -> Vec<u8> {
    let mut page = Table::<u8>::new(pages * BYTES).unwrap();
    let bytes = &mut page[..];
    store.broker.call(|| store.read(first * PAGE, bytes)).unwrap();
    for page in page.chunks_exact(BYTES) {
        assert!(page.iter().all(|byte| byte == &page[0]));
    }
    page.chunks_exact(BYTES).map(|page| page[0]).collect()
}

/// Returns the child's copy of a store after a fork. In this test, parent and child are one process, and this thread
/// has the program's descriptor table in both.
fn forked(parent: &FileStore) -> FileStore {
    parent.fork(Fork::Before { bytes: 64 * PAGE }).unwrap();
    let child_files: Vec<_> = parent.fork_files().child_files.iter().map(File::handle).collect();
    let fork_files =
        ForkFiles { child_files: File::open_all(&child_files, thread_id()).unwrap(), ..ForkFiles::default() };
    let other = FileStore {
        path: parent.path.clone(),
        overlay: Arc::new(parent.overlay.inherited()),
        fork_files: Mutex::new(fork_files),
        broker: Broker::start().unwrap(),
        mechanism: parent.mechanism,
    };
    parent.fork(Fork::InParent).unwrap();
    other.fork(Fork::InChild).unwrap();
    other
}

#[test]
fn fork_is_a_snapshot_for_both_processes() {
    let parent = create("sides");
    parent.reserve(0, 16 * PAGE).unwrap();
    write(&parent, 0, &[1; 8]);
    let child = forked(&parent);
    assert_eq!((read(&parent, 0, 8), read(&child, 0, 8)), (vec![1; 8], vec![1; 8]));
    write(&parent, 2, &[2, 2]);
    write(&child, 3, &[3, 3]);
    assert_eq!(read(&parent, 0, 8), [1, 1, 2, 2, 1, 1, 1, 1]);
    assert_eq!(read(&child, 0, 8), [1, 1, 1, 3, 3, 1, 1, 1]);
    let grandchild = forked(&child);
    write(&child, 0, &[4, 4]);
    child.discard(3 * PAGE, 2 * PAGE);
    write(&grandchild, 4, &[5, 5]);
    assert_eq!(read(&grandchild, 0, 8), [1, 1, 1, 3, 5, 5, 1, 1]);
    assert_eq!(read(&child, 0, 3), [4, 4, 1]);
    drop(child);
    assert_eq!(read(&grandchild, 0, 8), [1, 1, 1, 3, 5, 5, 1, 1]);
    assert_eq!(read(&parent, 0, 8), [1, 1, 2, 2, 1, 1, 1, 1]);
}

#[test]
fn fork_without_writes_adds_no_layer_up_to_the_limit() {
    let parent = create("many");
    write(&parent, 0, &[1; 4]);
    for _ in 0..5 {
        let child = forked(&parent);
        assert_eq!((parent.overlay.layers(), child.overlay.layers()), (2, 2));
        write(&child, 1, &[9]);
        assert_eq!((read(&child, 0, 3), read(&parent, 0, 3)), (vec![1, 9, 1], vec![1; 3]));
    }
    let mut forks = 0;
    let refused = loop {
        write(&parent, 1, &[forks]);
        if let Err(refused) = parent.fork(Fork::Before { bytes: 64 * PAGE }) {
            break refused;
        }
        parent.fork(Fork::InParent).unwrap();
        forks += 1;
    };
    assert_eq!(refused, StoreError::Forks { most: MAX_LAYERS });
    assert_eq!((usize::from(forks) + 2, read(&parent, 0, 3)), (MAX_LAYERS, vec![1, forks, 1]));
}

/// Returns the number of bytes that a call transfers: at most one page, whatever `len` was requested. Every other call
/// is interrupted (`None`).
fn part_of(len: usize) -> Option<usize> {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    if CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
        // SAFETY: a word of this thread.
        unsafe { *libc::__errno_location() = libc::EINTR };
        return None;
    }
    Some(len.min(BYTES))
}

unsafe extern "C" fn short_pread(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    // SAFETY: the caller's promise, for a part.
    part_of(len).map_or(-1, |len| unsafe { libc::pread(fd, into, len, at) })
}

unsafe extern "C" fn short_pwrite(fd: c_int, from: *const c_void, len: usize, at: i64) -> isize {
    // SAFETY: the caller's promise, for a part.
    part_of(len).map_or(-1, |len| unsafe { libc::pwrite(fd, from, len, at) })
}

unsafe extern "C" fn no_pread(_: c_int, _: *mut c_void, _: usize, _: i64) -> isize {
    0
}

unsafe extern "C" fn no_pwrite(_: c_int, _: *const c_void, _: usize, _: i64) -> isize {
    0
}

#[test]
fn short_and_interrupted_transfers_are_completed() {
    const PAGES: usize = 16;
    let file = File::create(&folder().join(format!("short-{}", std::process::id()))).unwrap();
    let mut pages = Table::<u8>::new(PAGES * BYTES).unwrap();
    let mut back = Table::<u8>::new(PAGES * BYTES).unwrap();
    for (page, byte) in pages.chunks_exact_mut(BYTES).zip(1..) {
        page.fill(byte);
    }
    file.write_by(short_pwrite, 8 * PAGE, &pages[..]).unwrap();
    file.read(8 * PAGE, &mut back[..]).unwrap();
    assert!(pages[..] == back[..], "written in parts");
    back.fill(0);
    file.read_by(short_pread, 8 * PAGE, &mut back[..]).unwrap();
    assert!(pages[..] == back[..], "read in parts");
}

/// Transfers a page in every second call, and nothing in the others.
unsafe extern "C" fn halting_pread(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let nothing = CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    // SAFETY: the caller's promise, for a part.
    if nothing { 0 } else { unsafe { libc::pread(fd, into, len.min(BYTES), at) } }
}

#[test]
fn transfer_that_halts_now_and_then_is_completed() {
    const PAGES: usize = 16;
    let file = File::create(&folder().join(format!("halts-{}", std::process::id()))).unwrap();
    let mut pages = Table::<u8>::new(PAGES * BYTES).unwrap();
    file.write(0, &pages[..]).unwrap();
    file.read_by(halting_pread, 0, &mut pages[..]).unwrap();
}

#[test]
fn stuck_transfer_is_an_error() {
    let file = File::create(&folder().join(format!("stuck-{}", std::process::id()))).unwrap();
    let mut page = Table::<u8>::new(BYTES).unwrap();
    let short = |call| Err(StoreError::Short { call, wanted: BYTES, done: 0 });
    assert_eq!(file.write_by(no_pwrite, 0, &page[..]), short("pwrite"));
    assert_eq!(file.read_by(no_pread, 0, &mut page[..]), short("pread"));
}

/// Files that another user has made in a shared folder, of any name, are not opened.
#[test]
fn existing_files_are_left_alone() {
    let process = std::process::id();
    let path = folder().join(format!("mine-{process}"));
    let mut name = path.clone().into_os_string();
    name.push(format!(".{process}"));
    let taken = [path.clone(), PathBuf::from(&name)];
    let after = (1..300).map(|number| {
        let mut name = name.clone();
        name.push(format!("-{process}-{number}"));
        PathBuf::from(name)
    });
    let taken: Vec<PathBuf> = taken.into_iter().chain(after).collect();
    taken.iter().for_each(|path| std::fs::write(path, "mine").unwrap());
    let store = FileStore::create(&path, &Broker::start().unwrap());
    let fork = store.as_ref().map(|store| store.fork(Fork::Before { bytes: PAGE }));
    let kept: Vec<_> = taken.iter().map(|path| std::fs::read(path).unwrap_or_default()).collect();
    taken.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(fork, Ok(Ok(())), "a store beside files of every old name, and its fork");
    assert!(kept.iter().all(|bytes| bytes == b"mine"), "the files that were there have changed");
}

#[test]
fn file_on_tmpfs_is_refused() {
    let path = Path::new("/dev/shm").join(format!("largesse-{}", std::process::id()));
    if !path.parent().is_some_and(Path::is_dir) {
        return;
    }
    match FileStore::create(&path, &Broker::start().unwrap()) {
        Err(FileRefused::InMemory(named)) => assert_eq!(named, path),
        other => assert!(!path.exists(), "{other:?}"),
    }
    assert!(!path.exists());
}

/// Opens a queue of each mechanism over a store, and calls `check` with the store and the queue on the broker's thread.
#[track_caller]
fn check_queues(name: &str, check: impl Fn(&FileStore, &mut dyn TransferQueue) + Sync) {
    for mechanism in [Mechanism::IoUring, Mechanism::Threads] {
        let mut store = create(&format!("{name}-{}", mechanism.name()));
        store.mechanism = mechanism;
        store.broker.call(|| {
            let mut queue = store.open_queue(64 * BYTES, 8).unwrap().expect("a file has a queue");
            assert_eq!(queue.mechanism(), mechanism, "io_uring cannot be used here");
            check(&store, &mut *queue);
        });
    }
}

#[test]
fn transfers_of_a_queue_end_in_any_order_and_move_the_right_bytes() {
    check_queues("queue", |_, queue| {
        moves_the_right_bytes(queue, 100);
        reaps_nothing_when_idle(queue);
    });
}

// Seen to fail when `Overlay::written` is not told of a queue's writes: the second read is of the layer below.
#[test]
fn transfers_of_a_queue_know_the_layers_of_a_fork() {
    check_queues("layers", |store, queue| {
        fill_memory(queue, 0..8, |_| 1);
        start(queue, Direction::Write, 0, 0..8);
        finish(queue);
        store.overlay.prepare(64 * PAGE).unwrap();
        store.overlay.push(store.new_file().unwrap());
        fill_memory(queue, 2..4, |_| 2);
        start(queue, Direction::Write, 2, 2..4);
        finish(queue);
        start(queue, Direction::Read, 0, 16..24);
        finish(queue);
        let read: Vec<_> = (16..24).map(|page| if memory_is(queue, page, 2) { 2 } else { 1 }).collect();
        assert_eq!(read, [1, 1, 2, 2, 1, 1, 1, 1]);
    });
}

#[test]
fn transfers_of_a_queue_report_errors() {
    check_queues("errors", |_, queue| {
        // No file of a disk is that long.
        start(queue, Direction::Write, 1 << 50, 0..1);
        let mut result = None;
        while queue.in_flight() > 0 {
            queue.reap(Duration::from_secs(10), &mut |completion| result = Some(completion.result));
        }
        assert!(matches!(result, Some(Err(StoreError::System { .. }))), "{result:?}");
        // A read beyond the end transfers nothing.
        start(queue, Direction::Read, 1 << 20, 0..1);
        while queue.in_flight() > 0 {
            queue.reap(Duration::from_secs(10), &mut |completion| result = Some(completion.result));
        }
        assert!(matches!(result, Some(Err(StoreError::Short { .. }))), "{result:?}");
    });
}

#[test]
fn a_queue_is_readable_when_a_transfer_has_ended() {
    check_queues("ready", |_, queue| {
        let fd = queue.descriptor().unwrap();
        let readable = |wait| {
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure.
            unsafe { libc::poll(&raw mut poll, 1, wait) == 1 }
        };
        assert!(!readable(0));
        start(queue, Direction::Write, 0, 0..8);
        queue.flush();
        assert!(readable(10_000));
        // Seen to fail when `flush` collects completions: a thread that waits for the descriptor would sleep on.
        queue.flush();
        assert!(readable(0));
        finish(queue);
        assert!(!readable(0));
    });
}
