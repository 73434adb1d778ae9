//! Finds the static arrays of the main program (data and bss) that can become far memory.
//!
//! Some parts of these ELF segments cannot, because the dynamic linker or the C library continues to use them: those
//! that are made read-only after relocation (RELRO), the tables of addresses (GOT), and objects that libraries share
//! with the program by copy relocation.

use crate::slots::object::{Object, main_program};
use core::ops::Range;
use largesse_pages::base_page;

/// Smallest size of a piece in bytes. Smaller ranges do not become far memory.
const SMALLEST: usize = 64 << 10;

/// A range of static arrays that may become far memory. It lies in one mapping, because one fill cannot span two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Addresses of the range, which consists of whole pages.
    pub(crate) at: Range<usize>,
    /// Whether the range has initial values from the program's file. Otherwise it was zero at the start.
    pub(crate) from_file: bool,
}

/// Returns every piece of the main program.
pub(crate) fn pieces() -> Vec<Piece> {
    main_program(of).unwrap_or_default()
}

/// Returns the writable parts of the main program that contain `pieces`. System calls on these are filtered, because an
/// object that reaches into a piece may begin before it.
pub(crate) fn around<'a>(pieces: impl Iterator<Item = &'a Piece> + Clone) -> Vec<Range<usize>> {
    let holds = |part: &Range<usize>| pieces.clone().any(|piece| part.contains(&piece.at.start));
    let parts = main_program(|object| object.writable().map(|part| part.memory).filter(holds).collect());
    parts.unwrap_or_default()
}

fn of(program: &Object<'_>) -> Vec<Piece> {
    let kept = program.kept_in_place();
    let mut found = Vec::new();
    for segment in program.writable() {
        let file_end = segment.file.end.next_multiple_of(base_page());
        for at in without(&segment.memory, &kept) {
            let border = file_end.clamp(at.start, at.end);
            for (at, from_file) in [(at.start..border, true), (border..at.end, false)] {
                if at.len() >= SMALLEST {
                    found.push(Piece { at, from_file });
                }
            }
        }
    }
    found
}

/// Returns the whole pages of `range` that do not overlap `kept`, in pieces of at least [`SMALLEST`] bytes.
fn without(range: &Range<usize>, kept: &[Range<usize>]) -> Vec<Range<usize>> {
    let page = base_page();
    let mut holes: Vec<_> = kept.iter().filter(|it| it.start < range.end && range.start < it.end).collect();
    holes.sort_by_key(|it| it.start);
    let mut found = Vec::new();
    let mut from = range.start;
    for (hole_start, hole_end) in holes.iter().map(|it| (it.start, it.end)).chain([(range.end, range.end)]) {
        let piece = from.next_multiple_of(page)..hole_start.max(from) / page * page;
        if piece.end >= piece.start + SMALLEST {
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
        let pieces = without(&(k(1)..k(1000) + 5), &kept);
        assert_eq!(pieces, [k(20)..k(300), k(304)..k(1000)]);
        assert_eq!(without(&(k(0)..k(63)), &[]), []);
        // Holes that overlap, and one that covers the end.
        let pieces = without(&(k(0)..k(400)), &[k(100)..k(300), k(200)..k(500)]);
        assert!(matches!(&pieces[..], [only] if *only == (k(0)..k(100))), "{pieces:?}");
    }

    #[test]
    fn pieces_exclude_linker_tables() {
        let (kept, pieces) = main_program(|object| (object.kept_in_place(), of(object))).unwrap();
        assert!(!kept.is_empty());
        for piece in pieces {
            assert!(kept.iter().all(|it| it.end <= piece.at.start || piece.at.end <= it.start));
        }
    }
}
