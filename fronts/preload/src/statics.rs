//! Finds the static arrays (data and bss) of the main program and of its libraries that can become far memory.
//!
//! Some parts of these ELF segments cannot, because the dynamic linker or the C library continues to use them: those
//! that are made read-only after relocation (RELRO), the tables of addresses (GOT), initial values of thread-local
//! storage, and objects that libraries share with the program by copy relocation.
//!
//! Of libraries, those are taken that the program needs by name, and their libraries: the dynamic linker never unloads
//! these. Left out are this library, what it needs and calls, and the allocator behind it, because the threads that
//! fill pages would wait for themselves there.
//! ```text
//!   program ─needs─► libsolver.so ─needs─► libarrays.so        their arrays of 8 MiB or more become far
//!      └─────needs──────┴────────────► libc.so ◄─needs─ liblargesse.so   no array of these
//! ```

use crate::slots::object::{Object, called_by_own, each_object, main_program};
use crate::{guard, next};
use core::ops::Range;
use largesse_machine::{service, thread};
use largesse_pages::base_page;

/// Smallest size in bytes of a piece of the main program. Smaller ranges do not become far memory.
const SMALLEST: usize = 64 << 10;
/// Smallest size in bytes of a piece of a library. The libraries of languages, of MPI and of OpenMP have smaller ones,
/// which are in use all the time.
const SMALLEST_OF_LIBRARY: usize = 8 << 20;
/// Largest number of pieces of libraries. The filter of system calls compares pointers with each.
const MOST_OF_LIBRARIES: usize = 4;

/// A range of static arrays that may become far memory. It lies in one mapping, because one fill cannot span two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Addresses of the range, which consists of whole pages.
    pub(crate) at: Range<usize>,
    /// Whether the range has initial values from the file. Otherwise it was zero at the start.
    pub(crate) from_file: bool,
    /// Whether the range belongs to a library, whose threads may run already.
    pub(crate) of_library: bool,
    /// Addresses of the writable segment that has the range. System calls on all of it are filtered, because an object
    /// that reaches into the range may begin before it.
    pub(crate) segment: Range<usize>,
}

/// Returns every piece of the main program, and the largest ones of its libraries.
pub(crate) fn pieces() -> Vec<Piece> {
    let mut pieces = main_program(|program| of(program, SMALLEST)).unwrap_or_default();
    pieces.extend(of_libraries().into_iter().map(|piece| Piece { of_library: true, ..piece }));
    pieces
}

/// Returns the segments that have `pieces`.
pub(crate) fn around<'a>(pieces: impl Iterator<Item = &'a Piece>) -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    for piece in pieces {
        if !segments.contains(&piece.segment) {
            segments.push(piece.segment.clone());
        }
    }
    segments
}

/// Returns whether the calling thread is the program's only one. No service thread may be about to start or to end.
pub(crate) fn runs_alone() -> bool {
    let own = largesse_pages::thread_id();
    // `outside`, because reading a folder allocates.
    guard::outside(thread::all)
        .is_some_and(|all| all.into_iter().all(|it| it == own || service::is_listed(it)))
}

fn of(object: &Object<'_>, smallest: usize) -> Vec<Piece> {
    let mut found = Vec::new();
    if object.writable().all(|segment| segment.memory.len() < smallest) {
        return found;
    }
    let kept = object.kept_in_place();
    for segment in object.writable() {
        let file_end = segment.file.end.next_multiple_of(base_page());
        let has_tables = object.has_tables_in(&segment.file);
        for at in without(&segment.memory, &kept, smallest) {
            let border = file_end.clamp(at.start, at.end);
            for (at, from_file) in [(at.start..border, true), (border..at.end, false)] {
                if at.len() >= smallest && !(from_file && has_tables) {
                    found.push(Piece { at, from_file, of_library: false, segment: segment.memory.clone() });
                }
            }
        }
    }
    found
}

/// A loaded object, and the objects that it needs, by name.
#[derive(Debug)]
struct Loaded {
    name: &'static [u8],
    needed: Vec<&'static [u8]>,
    /// Whether the object is this library, or has functions that it calls.
    is_used: bool,
    pieces: Vec<Piece>,
}

/// Returns the largest pieces of libraries.
fn of_libraries() -> Vec<Piece> {
    let mut called = called_by_own();
    called.push(next::malloc_address().addr());
    let mut loaded = Vec::new();
    each_object(|object| {
        let (name, needed) = object.names();
        let is_used = object.is_own() || called.iter().any(|&at| object.holds(at));
        let pieces = if is_used { Vec::new() } else { of(object, SMALLEST_OF_LIBRARY) };
        loaded.push(Loaded { name, needed, is_used, pieces });
    });
    let mut pieces: Vec<_> = libraries(&loaded).flat_map(|library| library.pieces.clone()).collect();
    pieces.sort_by_key(|piece| core::cmp::Reverse(piece.at.len()));
    pieces.truncate(MOST_OF_LIBRARIES);
    pieces
}

/// Returns the libraries whose arrays may become far, of all objects in the order of loading. The first is the program.
fn libraries(loaded: &[Loaded]) -> impl Iterator<Item = &Loaded> {
    let of_program = needed_by(loaded, |number, _| number == 0);
    // A program may replace functions of the C library, which the library then calls.
    let of_own = needed_by(loaded, |number, object| number > 0 && object.is_used);
    let chosen = move |&(number, _): &(usize, &Loaded)| number > 0 && of_program[number] && !of_own[number];
    loaded.iter().enumerate().filter(chosen).map(|(_, object)| object)
}

/// Returns for each object whether it is one of those that `first` accepts, or is needed by one of them, directly or not.
fn needed_by(loaded: &[Loaded], first: impl Fn(usize, &Loaded) -> bool) -> Vec<bool> {
    let mut is_needed: Vec<bool> =
        loaded.iter().enumerate().map(|(number, object)| first(number, object)).collect();
    let mut open: Vec<usize> = (0..loaded.len()).filter(|&number| is_needed[number]).collect();
    while let Some(number) = open.pop() {
        for name in &loaded[number].needed {
            // The first one of a name was loaded at the start, a second one from another folder later.
            if let Some(found) = loaded.iter().position(|object| object.name == *name)
                && !is_needed[found]
            {
                is_needed[found] = true;
                open.push(found);
            }
        }
    }
    is_needed
}

/// Returns the whole pages of `range` that do not overlap `kept`, in pieces of at least `smallest` bytes.
fn without(range: &Range<usize>, kept: &[Range<usize>], smallest: usize) -> Vec<Range<usize>> {
    let page = base_page();
    let mut holes: Vec<_> = kept.iter().filter(|it| it.start < range.end && range.start < it.end).collect();
    holes.sort_by_key(|it| it.start);
    let mut found = Vec::new();
    let mut from = range.start;
    for (hole_start, hole_end) in holes.iter().map(|it| (it.start, it.end)).chain([(range.end, range.end)]) {
        let piece = from.next_multiple_of(page)..hole_start.max(from) / page * page;
        if piece.end >= piece.start + smallest {
            found.push(piece);
        }
        from = from.max(hole_end);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_and_small_pieces_are_excluded() {
        let k = |kib: usize| kib << 10;
        let kept = [k(300)..k(301), k(10)..k(20), k(5000)..k(6000)];
        let pieces = without(&(k(1)..k(1000) + 5), &kept, SMALLEST);
        assert_eq!(pieces, [k(20)..k(300), k(304)..k(1000)]);
        assert_eq!(without(&(k(0)..k(63)), &[], SMALLEST), []);
        // Holes that overlap, and one that covers the end.
        let pieces = without(&(k(0)..k(400)), &[k(100)..k(300), k(200)..k(500)], SMALLEST);
        assert!(matches!(&pieces[..], [only] if *only == (k(0)..k(100))), "{pieces:?}");
    }

    #[test]
    fn pieces_exclude_linker_tables() {
        let (kept, pieces) = main_program(|object| (object.kept_in_place(), of(object, SMALLEST))).unwrap();
        assert!(!kept.is_empty());
        for piece in pieces {
            assert!(kept.iter().all(|it| it.end <= piece.at.start || piece.at.end <= it.start));
        }
    }
    #[test]
    fn used_and_unneeded_libraries_are_excluded() {
        let loaded = |name: &'static str, needed: &[&'static str], is_used| Loaded {
            name: name.as_bytes(),
            needed: needed.iter().map(|name| name.as_bytes()).collect(),
            is_used,
            pieces: Vec::new(),
        };
        let all = [
            loaded("", &["solver", "c", "hooks"], true),
            loaded("largesse", &["c", "gcc_s"], true),
            loaded("hooks", &["shared"], true),
            loaded("solver", &["arrays", "c", "solver"], false),
            loaded("arrays", &["c", "missing"], false),
            loaded("gcc_s", &["c"], false),
            loaded("shared", &[], false),
            loaded("c", &["ld"], false),
            loaded("ld", &[], false),
            // Opened by a constructor.
            loaded("plugin", &["of_plugin"], false),
            loaded("of_plugin", &[], false),
            loaded("arrays", &[], false),
        ];
        let chosen: Vec<_> = libraries(&all).map(|object| str::from_utf8(object.name).unwrap()).collect();
        assert_eq!(chosen, ["solver", "arrays"]);
        assert!(core::ptr::eq(libraries(&all).nth(1).unwrap(), &raw const all[4]));
    }

    #[test]
    fn segments_are_listed_once() {
        let piece = |at, segment| Piece { at, from_file: false, of_library: false, segment };
        let pieces = [piece(5..6, 4..9), piece(7..8, 4..9), piece(21..22, 20..30)];
        assert_eq!(around(pieces.iter()), [4..9, 20..30]);
    }
}
