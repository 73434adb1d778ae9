//! Defines a small language of numbers, pairs, vectors and weak pairs, which uses the public interface of the heap
//! only.
#![allow(dead_code, reason = "each test file uses a part")]
#![expect(clippy::cast_possible_truncation, reason = "lengths in tests are short")]

pub(crate) mod far;
pub(crate) mod model;

use core::ptr::NonNull;
use far::SimulatedFar;
use largesse_arena::{Backing, NearMemory};
use largesse_gc::{GcSettings, Heap, Language, Layout, Mutator, OutOfMemory, Sync, Tracer, Word};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::sync::Mutex;

pub(crate) const MODES: [Sync; 3] = [Sync::Mutex, Sync::Rwlock, Sync::Safepoint];

pub(crate) const NIL: Word = Word(0);

/// A language in which a number has its lowest bit set, nil is zero, and every other word is the address of an
/// object. The first word of a vector is its length.
#[derive(Debug, Default)]
pub(crate) struct Tiny {
    /// Values that every thread can reach.
    pub(crate) globals: Mutex<Vec<Word>>,
}

// SAFETY: see the type; `trace` shows all words of a vector but its length, which is zero at first.
unsafe impl Language for Tiny {
    fn reference(word: Word) -> Option<NonNull<u64>> {
        assert_ne!(word.0, far::TRAP, "a slot in unchanged memory was read");
        let address = if word.0 & 1 == 0 { word.0 as usize } else { 0 };
        NonNull::new(core::ptr::with_exposed_provenance_mut(address))
    }

    unsafe fn trace(&self, object: NonNull<u64>, tracer: &mut Tracer<'_, Tiny>) {
        // SAFETY: a vector has a first word, and as many more as that says.
        unsafe { tracer.words(object.add(1), object.read() as usize) };
    }

    fn roots(&self, tracer: &mut Tracer<'_, Tiny>) {
        self.globals.lock().unwrap().iter().for_each(|&word| tracer.word(word));
    }
}

pub(crate) fn number(value: u64) -> Word {
    Word(value << 1 | 1)
}

#[track_caller]
pub(crate) fn value(word: Word) -> u64 {
    assert_eq!(word.0 & 1, 1, "not a number: {word:?}");
    word.0 >> 1
}

pub(crate) fn word(object: NonNull<u64>) -> Word {
    Word(object.as_ptr().expose_provenance() as u64)
}

#[track_caller]
pub(crate) fn object(word: Word) -> NonNull<u64> {
    Tiny::reference(word).expect("an object")
}

/// Returns slot `index` of a pair, or element `index - 1` of a vector.
pub(crate) fn slot(object_word: Word, index: usize) -> Word {
    // SAFETY: pairs have two words, and callers stay within their vectors.
    unsafe { object(object_word).cast::<Word>().add(index).read() }
}

pub(crate) fn set_slot(object_word: Word, index: usize, to: Word) {
    // SAFETY: as in `slot`.
    unsafe { object(object_word).cast::<Word>().add(index).write(to) }
}

pub(crate) trait Make {
    fn pair(&mut self, first: Word, rest: Word) -> Word;
    fn weak(&mut self, first: Word, rest: Word) -> Word;
    fn vector(&mut self, len: usize) -> Result<Word, OutOfMemory>;
    fn list(&mut self, len: u64) -> Word;
}

impl Make for Mutator<Tiny> {
    fn pair(&mut self, first: Word, rest: Word) -> Word {
        two(self, Layout::Slots, first, rest)
    }

    fn weak(&mut self, first: Word, rest: Word) -> Word {
        two(self, Layout::Weak, first, rest)
    }

    fn vector(&mut self, len: usize) -> Result<Word, OutOfMemory> {
        let vector = self.allocate(Layout::Custom, len + 1)?;
        // SAFETY: the vector has `len + 1` words.
        unsafe {
            assert!((0..=len).all(|index| vector.add(index).read() == 0), "not zero");
            vector.write(len as u64);
        }
        Ok(word(vector))
    }

    /// Allocates the list of the numbers `len - 1`, …, 1, 0.
    fn list(&mut self, len: u64) -> Word {
        (0..len).fold(NIL, |list, next| self.pair(number(next), list))
    }
}

fn two(thread: &mut Mutator<Tiny>, layout: Layout, first: Word, rest: Word) -> Word {
    let mark = thread.mark();
    thread.push(first).unwrap();
    thread.push(rest).unwrap();
    let pair = thread.allocate(layout, 2).unwrap();
    thread.release(mark);
    // SAFETY: two words of an object that no other thread has.
    unsafe {
        assert_eq!((pair.read(), pair.add(1).read()), (0, 0), "not zero");
        pair.write(first.0);
        pair.add(1).write(rest.0);
    }
    word(pair)
}

/// Checks that a list holds the numbers `len - 1`, …, 1, 0.
#[track_caller]
pub(crate) fn check_list(list: Word, len: u64) {
    let mut at = list;
    for wanted in (0..len).rev() {
        assert_eq!(value(slot(at, 0)), wanted);
        at = slot(at, 1);
    }
    assert_eq!(at, NIL);
}

pub(crate) fn memory(spans: usize) -> NearMemory {
    let range = Reserved::new(spans * SPAN, SPAN).unwrap();
    NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false)
}

/// Creates a heap that verifies itself and poisons dead objects at every collection.
pub(crate) fn heap(settings: GcSettings) -> Heap<Tiny> {
    heap_in(memory(512), settings)
}

/// Creates a heap that verifies itself and poisons dead objects at every collection, and of which three quarters are
/// not resident. With `traps`, reading a slot that need not be read panics; vectors, of which all slots are always read,
/// cannot be used then.
pub(crate) fn far_heap(settings: GcSettings, traps: bool) -> Heap<Tiny> {
    heap_in(SimulatedFar::new(512, traps), settings)
}

fn heap_in(backing: impl Backing + Send + 'static, settings: GcSettings) -> Heap<Tiny> {
    let settings = GcSettings { verify: true, poison: true, root_words: 1 << 12, ..settings };
    Heap::new(Tiny::default(), settings, backing).unwrap()
}
