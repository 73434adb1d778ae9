//! Gives each thread a cache of small blocks, and returns what it has when the thread ends.

use crate::guard::{Inside, outside};
use crate::small_heap::small;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{null, null_mut, without_provenance};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use largesse_malloc::{SmallCache, SmallHeap};

/// A cache, which outlives its thread and is then used by another one.
#[derive(Debug)]
struct Entry {
    cache: SmallCache,
    /// Whether a thread has the cache.
    taken: AtomicBool,
    next: *const Entry,
}

/// The first of all entries, which are never freed.
static ALL: AtomicPtr<Entry> = AtomicPtr::new(null_mut());
/// The key whose destructor runs at the end of a thread with a cache.
static KEY: AtomicU64 = AtomicU64::new(NO_KEY);
const NO_KEY: u64 = u64::MAX;

/// Stands for the entry of a thread that has returned its cache.
const ENDED: *const Entry = without_provenance(align_of::<Entry>());

thread_local! {
    // `const`: no lazy initialisation and no destructor, hence no allocation.
    static ENTRY: Cell<*const Entry> = const { Cell::new(null()) };
}

/// Makes the key, once in a process. Returns `false` if the C library has none left.
pub(crate) fn prepare() -> bool {
    let mut key = 0;
    // SAFETY: the destructor lives as long as this library, which is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } != 0 {
        return false;
    }
    KEY.store(key.into(), Ordering::Relaxed); // Relaxed: before small blocks are served
    true
}

/// Returns the calling thread's cache; `None` if it has returned it.
#[inline]
pub(crate) fn cache() -> Option<&'static SmallCache> {
    let entry = ENTRY.get();
    if entry.is_null() {
        return first_cache();
    }
    // SAFETY: an entry is never freed.
    (entry != ENDED).then(|| unsafe { &(*entry).cache })
}

/// Returns the calling thread's cache; `None` if it has none yet, or has returned it.
#[inline]
pub(crate) fn present() -> Option<&'static SmallCache> {
    let entry = ENTRY.get();
    // SAFETY: an entry is never freed.
    (!entry.is_null() && entry != ENDED).then(|| unsafe { &(*entry).cache })
}

/// Gives the calling thread a cache.
#[cold]
fn first_cache() -> Option<&'static SmallCache> {
    let _inside = Inside::enter();
    let entry = entries().find(|entry| {
        // Acquire: pairs with the Release in `return_entry`.
        entry.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    });
    let entry = entry.unwrap_or_else(new_entry);
    ENTRY.set(entry);
    let key = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)).ok()?;
    // `outside`, because a thread with many keys gets a table for them.
    // SAFETY: the key exists, and the destructor gets the entry.
    outside(|| unsafe { libc::pthread_setspecific(key, (&raw const *entry).cast()) });
    Some(&entry.cache)
}

fn new_entry() -> &'static Entry {
    let entry = Box::leak(Box::new(Entry {
        cache: SmallCache::new(),
        taken: AtomicBool::new(true),
        next: ALL.load(Ordering::Relaxed),
    }));
    // Release: pairs with the Acquire in `entries`.
    while let Err(now) =
        ALL.compare_exchange(entry.next.cast_mut(), entry, Ordering::Release, Ordering::Relaxed)
    {
        entry.next = now;
    }
    entry
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    // Acquire: pairs with the Release in `new_entry`.
    // SAFETY: entries are never freed.
    let first = unsafe { ALL.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above.
    core::iter::successors(first, |entry| unsafe { entry.next.as_ref() })
}

/// Runs at the end of a thread. Destructors that follow use the C library's blocks.
unsafe extern "C" fn thread_ends(entry: *mut c_void) {
    // A handler that forks would find a cache that is returned in part.
    let _inside = Inside::enter();
    ENTRY.set(ENDED);
    // SAFETY: `first_cache` has set it, and entries are never freed.
    let entry = unsafe { &*entry.cast::<Entry>() };
    small().inspect(|small| small.give_back(&entry.cache));
    entry.taken.store(false, Ordering::Release); // Release: pairs with the Acquire in `first_cache`
}

/// Returns the caches of all threads but the calling one, the only thread of a forked child.
pub(crate) fn return_others(heap: &SmallHeap) {
    let own = ENTRY.get();
    // Relaxed: there is one thread.
    for entry in entries().filter(|entry| entry.taken.load(Ordering::Relaxed)) {
        if !core::ptr::eq(entry, own) {
            heap.give_back(&entry.cache);
            entry.taken.store(false, Ordering::Relaxed);
        }
    }
}
