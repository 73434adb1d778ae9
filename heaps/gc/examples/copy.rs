//! Measures how fast lists are copied by one thread and by two, with little and with much live data.
//!
//! `cargo run --release -p largesse-gc --example copy [SECONDS] [mutex|rwlock|safepoint] [GC-THREADS]`
#![expect(clippy::disallowed_macros, reason = "an example prints")]
#![expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "counts of a few billion")]

use core::ptr::NonNull;
use largesse_arena::NearMemory;
use largesse_gc::{GcSettings, Heap, Language, Layout, Mutator, Sync, Tracer, Word};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::time::{Duration, Instant};

/// Number of runs for each number of threads. The program prints the median and the extremes of those runs in which
/// every thread had a CPU of its own, or of all runs if there were none such.
const RUNS: u32 = 25;

/// A language whose only data are numbers and pairs.
struct Pairs;

// SAFETY: a number has its lowest bit set, nil is zero, every other word is a pair; pairs are `Layout::Slots`.
unsafe impl Language for Pairs {
    fn reference(word: Word) -> Option<NonNull<u64>> {
        let address = if word.0 & 1 == 0 { word.0 as usize } else { 0 };
        NonNull::new(core::ptr::with_exposed_provenance_mut(address))
    }
    unsafe fn trace(&self, _: NonNull<u64>, _: &mut Tracer<'_, Pairs>) {}
    fn roots(&self, _: &mut Tracer<'_, Pairs>) {}
}

fn pair(thread: &mut Mutator<Pairs>, first: Word, rest: Word) -> NonNull<Word> {
    let pair = thread.allocate(Layout::Slots, 2).expect("memory").cast::<Word>();
    // SAFETY: two words of an object that no other thread has.
    unsafe {
        pair.write(first);
        pair.add(1).write(rest);
    }
    pair
}

fn word(pair: NonNull<Word>) -> Word {
    Word(pair.as_ptr().expose_provenance() as u64)
}

/// Creates a list of `len` numbers, and leaves it as the top root.
fn list(thread: &mut Mutator<Pairs>, len: u64) -> Word {
    thread.push(Word(0)).expect("roots");
    for number in 0..len {
        let rest = thread.roots().last().copied().unwrap_or_default();
        let made = word(pair(thread, Word(number << 1 | 1), rest));
        if let Some(top) = thread.roots_mut().last_mut() {
            *top = made;
        }
    }
    thread.roots().last().copied().unwrap_or_default()
}

/// Copies a list, as Lisp's `copy-seq` does, and leaves the copy's first pair as the top root.
#[inline(never)]
fn copy(thread: &mut Mutator<Pairs>, source: Word) {
    let mut from = source;
    let mut tail: Option<NonNull<Word>> = None;
    while let Some(at) = Pairs::reference(from) {
        // SAFETY: a pair of the source, which a root keeps alive.
        let (first, rest) = unsafe { (at.cast::<Word>().read(), at.cast::<Word>().add(1).read()) };
        let new = pair(thread, first, Word(0));
        match tail {
            // SAFETY: the pair allocated before, which the top root leads to.
            Some(tail) => unsafe { tail.add(1).write(word(new)) },
            None => {
                if let Some(top) = thread.roots_mut().last_mut() {
                    *top = word(new);
                }
            }
        }
        tail = Some(new);
        from = rest;
    }
}

/// Returns how long the calling thread has waited for a CPU since it started.
fn queued() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Copies a list of 1000 numbers in `threads` threads for `time`. Returns the number of pairs that all threads
/// together copied per second, and whether every thread had a CPU of its own.
fn run(heap: &Heap<Pairs>, threads: usize, time: Duration) -> (f64, bool) {
    let mut main = heap.register_thread().enter();
    let mark = main.mark();
    let source = list(&mut main, 1000);
    let handles: Vec<_> = (0..threads).map(|_| heap.register_thread()).collect();
    let rates = main.blocked(|| {
        std::thread::scope(|scope| {
            let spawn = |handle: largesse_gc::ThreadHandle<Pairs>| {
                scope.spawn(move || {
                    let mut thread = handle.enter();
                    thread.push(Word(0)).expect("roots");
                    let (began, waited) = (Instant::now(), queued());
                    let mut copies = 0_u64;
                    while began.elapsed() < time {
                        for _ in 0..100 {
                            copy(&mut thread, source);
                            thread.poll();
                        }
                        copies += 100;
                    }
                    let ran = began.elapsed();
                    ((copies * 1000) as f64 / ran.as_secs_f64(), queued() - waited < ran / 50)
                })
            };
            let running: Vec<_> = handles.into_iter().map(spawn).collect();
            let one = running.into_iter().map(|thread| thread.join().expect("a copier"));
            one.fold((0.0, true), |(sum, all), (rate, alone)| (sum + rate, all && alone))
        })
    });
    main.release(mark);
    rates
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let sync = match arguments.next().as_deref() {
        Some("mutex") => Sync::Mutex,
        Some("rwlock") => Sync::Rwlock,
        _ => Sync::Safepoint,
    };
    let gc_threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let time = Duration::from_secs_f64(seconds);
    for (alive, pairs) in
        [("little", 0), ("1 M pairs in one list", 1_000_000), ("64 MB in 4096 lists", 1 << 22)]
    {
        for threads in [1, 2] {
            let memory = NearMemory::new(
                Reserved::new(2048 * SPAN, SPAN).expect("address space"),
                PageKind::Thp,
                Placement::FirstTouch,
                false,
            );
            let settings = GcSettings { sync, gc_threads, ..GcSettings::default() };
            let heap = Heap::new(Pairs, settings, memory).expect("a heap");
            let mut main = heap.register_thread().enter();
            let lists = if pairs > 1_000_000 { 4096 } else { 1 };
            (0..lists).for_each(|_| _ = list(&mut main, pairs / lists));
            main.collect();
            let before = heap.statistics();
            let runs: Vec<_> = (0..RUNS).map(|_| main.blocked(|| run(&heap, threads, time / RUNS))).collect();
            let undisturbed = runs.iter().filter(|(_, alone)| *alone).count();
            let mut rates: Vec<f64> =
                runs.iter().filter(|(_, alone)| *alone || undisturbed == 0).map(|(rate, _)| *rate).collect();
            rates.sort_by(f64::total_cmp);
            let after = heap.statistics();
            let gc = after.collections.pauses.total() - before.collections.pauses.total();
            println!(
                "{alive:22} {threads} threads  M pairs/s {:.1} ({:.1} to {:.1}; {undisturbed} of {RUNS} undisturbed)  GC {:.1} %  pause {:?} (longest {:?})  {:.0} M objects/s marked  {:.3} visits/1000",
                rates[rates.len() / 2] / 1e6,
                rates[0] / 1e6,
                rates[rates.len() - 1] / 1e6,
                100.0 * gc.as_secs_f64() / (after.age - before.age).as_secs_f64(),
                after.collections.pauses.quantile(0.5),
                after.collections.pauses.longest(),
                after.mark_rate() / 1e6,
                after.visits_per_thousand(),
            );
        }
    }
}
