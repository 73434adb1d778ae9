//! Goes over the words of bit-vectors, up to 64 bits at a time.

use crate::value::Value;
use std::ops::Range;

/// Number of bits of a word.
const WORD: usize = 64;

/// Returns a word whose lowest `count` bits are set, for at most 64.
fn mask(count: usize) -> u64 {
    if count == WORD { u64::MAX } else { (1 << count) - 1 }
}

/// Returns `count` bits, at most 64, from `start` on; the first one is the lowest.
fn chunk(vector: Value, start: usize, count: usize) -> u64 {
    let (word, shift) = (1 + start / WORD, start % WORD);
    if count == WORD && shift == 0 {
        return vector.get(word).0;
    }
    let low = vector.get(word).0 >> shift;
    let high = if shift + count > WORD { vector.get(word + 1).0 << (WORD - shift) } else { 0 };
    (low | high) & mask(count)
}

/// Writes `count` bits, at most 64, from `start` on.
fn put_chunk(vector: Value, start: usize, count: usize, bits: u64) {
    let (word, shift) = (1 + start / WORD, start % WORD);
    if count == WORD && shift == 0 {
        vector.set(word, Value(bits));
        return;
    }
    let write = |word: usize, mask: u64, bits: u64| {
        vector.set(word, Value(vector.get(word).0 & !mask | bits & mask));
    };
    write(word, mask(count) << shift, bits << shift);
    if shift + count > WORD {
        write(word + 1, mask(count) >> (WORD - shift), bits >> (WORD - shift));
    }
}

/// Returns the starts and lengths of pieces of at most 64 bits of a range of a vector, in order.
fn pieces(vector: Value, range: Range<usize>) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    assert!(range.start <= range.end && range.end <= vector.length());
    let count = range.len().div_ceil(WORD);
    (0..count).map(move |piece| {
        let start = range.start + piece * WORD;
        (start, WORD.min(range.end - start))
    })
}

/// Copies the bits in `range` to another vector, or to another place of the same one, from `to` on.
pub(crate) fn copy_bits(from: Value, range: Range<usize>, into: Value, to: usize) {
    assert!(to + range.len() <= into.length());
    let first = range.start;
    let copy = |(start, count): (usize, usize)| {
        put_chunk(into, to + (start - first), count, chunk(from, start, count));
    };
    // Copying upwards within one vector begins at the end, so that no bit is overwritten before it was copied.
    if to > first { pieces(from, range).rev().for_each(copy) } else { pieces(from, range).for_each(copy) }
}

/// Sets the bits in `range` to one value.
pub(crate) fn fill_bits(vector: Value, range: Range<usize>, on: bool) {
    let bits = if on { u64::MAX } else { 0 };
    pieces(vector, range).for_each(|(start, count)| put_chunk(vector, start, count, bits));
}

/// Reverses the bits in `range`.
pub(crate) fn reverse_bits(vector: Value, range: Range<usize>) {
    let (mut low, mut high) = (range.start, range.end);
    while high - low >= 2 {
        let count = WORD.min((high - low) / 2);
        let turned = |start| chunk(vector, start, count).reverse_bits() >> (WORD - count);
        let (first, last) = (turned(low), turned(high - count));
        put_chunk(vector, low, count, last);
        put_chunk(vector, high - count, count, first);
        (low, high) = (low + count, high - count);
    }
}

/// Returns the number of bits in `range` with this value.
pub(crate) fn count_bits(vector: Value, range: Range<usize>, on: bool) -> usize {
    let all = range.len();
    let ones: usize =
        pieces(vector, range).map(|(start, count)| chunk(vector, start, count).count_ones() as usize).sum();
    if on { ones } else { all - ones }
}

/// Returns the index of the first bit in `range` with this value, or of the last one.
pub(crate) fn find_bit(vector: Value, range: Range<usize>, on: bool, last: bool) -> Option<usize> {
    let hit = |(start, count): (usize, usize)| {
        let bits = chunk(vector, start, count);
        let hits = if on { bits } else { !bits & mask(count) };
        let index = if last { u64::BITS - 1 - hits.leading_zeros().min(63) } else { hits.trailing_zeros() };
        (hits != 0).then_some(start + index as usize)
    };
    if last { pieces(vector, range).rev().find_map(hit) } else { pieces(vector, range).find_map(hit) }
}

/// Returns whether two bit-vectors have the same bits.
pub(crate) fn same_bits(a: Value, b: Value) -> bool {
    a.length() == b.length()
        && pieces(a, 0..a.length()).all(|(start, count)| chunk(a, start, count) == chunk(b, start, count))
}

/// Writes the combination of the bits of two vectors of one length to a third one.
pub(crate) fn combine_bits(result: Value, a: Value, b: Value, op: fn(u64, u64) -> u64) {
    assert!(a.length() == b.length() && b.length() == result.length());
    pieces(result, 0..result.length()).for_each(|(start, count)| {
        put_chunk(result, start, count, op(chunk(a, start, count), chunk(b, start, count)));
    });
}
