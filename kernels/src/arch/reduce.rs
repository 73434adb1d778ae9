//! Implements the loop of every sum, once for all instruction sets.
//!
//! # The lanes in registers
//! `N` registers hold the lanes. The elements of a vector are divided into rows of `N` registers, and all elements at
//! one position of their rows belong to one lane. If `N` exceeds the number of the processor's registers, `A` of the
//! `N` are processed at a time, over a block of rows, before the next `A`. `G` registers are loaded before the first
//! of them is added, because consecutive loads are faster than loads between additions.
//!
//! # Misaligned vectors take no longer
//! A load that crosses two cache lines takes the time of two. So positions are counted from the aligned address below
//! the vector, `shift` elements before its start, which are masked out. Each lane is then `shift` positions further,
//! but gets the same additions in the same order. The tree gives the same result: in halves, it joins positions half a
//! row apart, then a quarter, and so on, which are the same lanes wherever the row begins, and addition is commutative.
//! (The last two positions of complex numbers differ in meaning, so `shift` is even there.) A second vector with
//! another alignment is assembled from aligned loads, where the instruction set does that for less ([`Shifts::PAYS`]).

use super::simd::{Fused, Shifts, Simd};
use super::sums::Sums;
use super::terms::{Apart, Edges, Map, One, Terms, Two, TwoComplex};
use crate::Element;
use core::hint::{black_box, cold_path};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Range;

/// Number of rows from which a vector is loaded by aligned loads. It is at least one, because the first register of
/// the first row is masked.
const ALIGN_FROM: usize = 2;
/// Number of registers up to which a short vector is added by code that leaves the lanes of further registers out of
/// the tree, as they would be zero. (A zero that becomes negative by this is made positive in the end.)
const SHORT: usize = 4;
/// Number of rows in a block: 16 KiB of elements, half of the smallest first-level cache.
const BLOCK: usize = 32;

/// Returns the sum of `M` of each element of a vector of at most half a row, which is `H` registers.
///
/// # Safety
/// The processor has the instruction set; `n` elements at `x` can be read.
#[inline(always)]
pub(super) unsafe fn short_one<V: Simd, M: Map<V>, const H: usize>(
    x: *const V::Element,
    n: usize,
) -> V::Element {
    // SAFETY: the caller's promise.
    unsafe { half_a_row::<_, H>(One::<V, M>(x, PhantomData), n) }
}

/// Returns the sum of `M` of each element of a vector of any length.
///
/// # Safety
/// The processor has the instruction set; `n` elements at `x` can be read.
#[inline(always)]
pub(super) unsafe fn one<V: Simd, M: Map<V>, const N: usize, const A: usize, const G: usize>(
    x: *const V::Element,
    n: usize,
) -> V::Element {
    const { assert!(N * V::COUNT == V::Element::LANES) };
    if n <= N * V::COUNT {
        // SAFETY: the caller's promise.
        return unsafe { short::<_, N>(One::<V, M>(x, PhantomData), n) };
    }
    let shift = if n < ALIGN_FROM * N * V::COUNT { 0 } else { elements_behind::<V>(x.addr(), 1) };
    let terms = One::<V, M>(x.wrapping_sub(shift), PhantomData);
    // SAFETY: the caller's promise; position `shift` is `x`.
    unsafe { reduce::<_, _, N, A, G>(terms, terms, shift, n) }
}

/// Returns the sum of products of two vectors of at most half a row.
///
/// # Safety
/// The processor has the instruction set; `n` elements at `x` and at `y` can be read.
#[inline(always)]
pub(super) unsafe fn short_two<V: Fused, const H: usize>(
    x: *const V::Element,
    y: *const V::Element,
    n: usize,
) -> V::Element {
    // SAFETY: the caller's promise.
    unsafe { half_a_row::<_, H>(Two::<V>(x, y), n) }
}

/// Returns the sum of products of two vectors of any length.
///
/// # Safety
/// The processor has the instruction set; `n` elements at `x` and at `y` can be read.
#[inline(always)]
pub(super) unsafe fn two<V: Fused, S: Shifts<V>, const N: usize, const A: usize, const G: usize>(
    x: *const V::Element,
    y: *const V::Element,
    n: usize,
) -> V::Element {
    const { assert!(N * V::COUNT == V::Element::LANES) };
    if n <= N * V::COUNT {
        // SAFETY: the caller's promise.
        return unsafe { short::<_, N>(Two::<V>(x, y), n) };
    }
    let long = n >= ALIGN_FROM * N * V::COUNT;
    let shift = if long { elements_behind::<V>(x.addr(), 1) } else { 0 };
    let terms = Two::<V>(x.wrapping_sub(shift), y.wrapping_sub(shift));
    let by = if long && S::PAYS { elements_behind::<V>(terms.1.addr(), 1) } else { 0 };
    if by == 0 {
        // SAFETY: the caller's promise; position `shift` is `x` and `y`.
        return unsafe { reduce::<_, _, N, A, G>(terms, terms, shift, n) };
    }
    // SAFETY: the instruction set.
    let middle = Apart::<V, S>(Two(terms.0, terms.1.wrapping_sub(by)), unsafe { S::by(by) });
    // SAFETY: as above; the rows that `middle` reads are neither the first nor the last.
    unsafe { reduce::<_, _, N, A, G>(terms, middle, shift, n) }
}

/// Returns the four sums of products of complex vectors of at most half a row: see [`Pair`](super::sums::Pair).
///
/// # Safety
/// The processor has the instruction set; `2 * n` elements at `x` and at `y` can be read.
#[inline(always)]
pub(super) unsafe fn short_products<V: Fused, const H: usize>(
    x: *const V::Element,
    y: *const V::Element,
    n: usize,
) -> [V::Element; 4] {
    // SAFETY: the caller's promise.
    unsafe { half_a_row::<_, H>(TwoComplex::<V>(x, y), 2 * n) }
}

/// Returns the four sums of products of complex vectors of any length: see [`Pair`](super::sums::Pair).
///
/// # Safety
/// The processor has the instruction set; `2 * n` elements at `x` and at `y` can be read.
#[inline(always)]
pub(super) unsafe fn products<V: Fused, const N: usize, const A: usize, const G: usize>(
    x: *const V::Element,
    y: *const V::Element,
    n: usize,
) -> [V::Element; 4] {
    const { assert!(N * V::COUNT * 2 == V::Element::LANES) };
    if 2 * n <= N * V::COUNT {
        // SAFETY: the caller's promise.
        return unsafe { short::<_, N>(TwoComplex::<V>(x, y), 2 * n) };
    }
    let shift = if 2 * n < ALIGN_FROM * N * V::COUNT { 0 } else { elements_behind::<V>(x.addr(), 2) };
    let terms = TwoComplex::<V>(x.wrapping_sub(shift), y.wrapping_sub(shift));
    // SAFETY: the caller's promise; position `shift` is `x` and `y`.
    unsafe { reduce::<_, _, N, A, G>(terms, terms, shift, 2 * n) }
}

/// Returns the number of elements between an address and the aligned address below it. Returns 0 if their distance is
/// not a multiple of `unit` elements.
#[inline(always)]
fn elements_behind<V: Simd>(address: usize, unit: usize) -> usize {
    let size = size_of::<V::Element>();
    let bytes = address % (V::COUNT * size);
    if bytes.is_multiple_of(unit * size) { bytes / size } else { 0 }
}

/// Returns the sum over the positions `shift..shift + n`, which are at least a row. `middle` reads all rows but the
/// first and the last, which `edges` reads.
///
/// # Safety
/// The processor has the instruction set; the elements at these positions can be read; `shift` is less than the lanes
/// of a register.
#[inline(always)]
unsafe fn reduce<E, M, const N: usize, const A: usize, const G: usize>(
    edges: E,
    middle: M,
    shift: usize,
    n: usize,
) -> <E::Sums as Sums>::Output
where
    E: Edges,
    M: Terms<Sums = E::Sums>,
{
    const { assert!(N.is_multiple_of(A) && A.is_multiple_of(G)) };
    let end = shift + n;
    let rows = end / (N * <E::Sums as Sums>::Simd::COUNT);
    if A == N {
        // SAFETY: the caller's promise.
        return unsafe {
            tree(columns::<E, M, N, N, G>(edges, middle, [E::Sums::zero(); N], 0, 0..rows, shift, end))
        };
    }
    let mut sums = MaybeUninit::<[E::Sums; N]>::uninit();
    let mut done = 0;
    loop {
        let block = done..rows.min(done + BLOCK);
        for first in (0..N).step_by(A) {
            // The other lanes are in memory: compilers would let them take the registers of these.
            let some =
                black_box(sums.as_mut_ptr()).cast::<E::Sums>().wrapping_add(first).cast::<[E::Sums; A]>();
            // SAFETY: `A` of the `N` lanes, written when the first block was done; the instruction set.
            let before = unsafe { if done == 0 { [E::Sums::zero(); A] } else { some.read() } };
            // SAFETY: the caller's promise, and as above.
            unsafe {
                some.write(columns::<E, M, N, A, G>(edges, middle, before, first, block.clone(), shift, end))
            };
        }
        done = block.end;
        if done == rows {
            // SAFETY: all lanes were written; the instruction set.
            return unsafe { tree(sums.assume_init()) };
        }
    }
}

/// Adds some registers of each row of a block: the `A` registers from register `first` of the row on are added to
/// `sums`. If the block is the last, the elements after its last whole row are added, too.
///
/// # Safety
/// The requirements are those of [`reduce`], for these rows and positions.
#[inline(always)]
unsafe fn columns<E, M, const N: usize, const A: usize, const G: usize>(
    edges: E,
    middle: M,
    mut sums: [E::Sums; A],
    first: usize,
    block: Range<usize>,
    shift: usize,
    end: usize,
) -> [E::Sums; A]
where
    E: Edges,
    M: Terms<Sums = E::Sums>,
{
    let count = <E::Sums as Sums>::Simd::COUNT;
    let rows = end / (N * count);
    let at = |row: usize, k: usize| (row * N + first + k) * count;
    let mut from = block.start;
    // SAFETY (of all reads): the positions are within `shift..end`, except those masked out.
    if from == 0 {
        for k in 0..A {
            // SAFETY: as above.
            sums[k] = unsafe {
                E::begin(if k == 0 && first == 0 && shift > 0 {
                    edges.read_masked(0, <E::Sums as Sums>::Simd::mask(shift, count))
                } else {
                    edges.read(at(0, k))
                })
            };
        }
        from = 1;
    }
    let is_last = block.end == rows;
    for row in from..block.end - usize::from(is_last) {
        for some in (0..A).step_by(G) {
            // SAFETY: as above.
            let next: [_; G] = core::array::from_fn(|k| unsafe { middle.read(at(row, some + k)) });
            for k in 0..G {
                // SAFETY: the instruction set.
                sums[some + k] = unsafe { M::add(sums[some + k], next[k]) };
            }
        }
    }
    if is_last {
        if from < rows {
            for k in 0..A {
                // SAFETY: as above.
                sums[k] = unsafe { E::add(sums[k], edges.read(at(rows - 1, k))) };
            }
        }
        if rows * N * count == end {
            return sums;
        }
        // Two loops: compilers unroll a loop of eight turns, but not one of sixteen, and then keep the sums in memory.
        // No `break`: the code after it would be compiled once for all `k`, with the sums in memory.
        let (low, high) = sums.split_at_mut(A / 2);
        for k in 0..A / 2 {
            // SAFETY: as above.
            low[k] = unsafe { add_up_to(low[k], edges, at(rows, k), end) };
        }
        if at(rows, A / 2) < end {
            for k in 0..A / 2 {
                // SAFETY: as above.
                high[k] = unsafe { add_up_to(high[k], edges, at(rows, A / 2 + k), end) };
            }
        }
    }
    sums
}

/// Returns the sum over the positions `0..n`, at most half a row, which is `H` registers.
///
/// # Safety
/// The requirements are those of [`reduce`].
#[inline(always)]
unsafe fn half_a_row<E: Edges, const H: usize>(edges: E, n: usize) -> <E::Sums as Sums>::Output {
    if H > SHORT && n > SHORT * <E::Sums as Sums>::Simd::COUNT {
        // SAFETY: the caller's promise.
        unsafe { short::<_, H>(edges, n) }
    } else {
        // SAFETY: as above; when `H` is less, the other registers are not read.
        unsafe { short::<_, SHORT>(edges, n) }
    }
}

/// Returns the sum over the positions `0..n`, which fit into the first `K` registers of a row.
///
/// # Safety
/// The requirements are those of [`reduce`].
#[inline(always)]
unsafe fn short<E: Edges, const K: usize>(edges: E, n: usize) -> <E::Sums as Sums>::Output {
    let count = <E::Sums as Sums>::Simd::COUNT;
    // SAFETY: the instruction set.
    let mut sums = [unsafe { E::Sums::zero() }; K];
    // Two loops, as in `columns`.
    for k in 0..K / 2 {
        // SAFETY: the caller's promise.
        sums[k] = unsafe { begin_up_to(edges, k * count, n) };
    }
    for k in K / 2..K {
        // SAFETY: as above.
        sums[k] = unsafe { begin_up_to(edges, k * count, n) };
    }
    // SAFETY: the instruction set.
    unsafe { tree(sums) }
}

/// Returns the first sums of a register's lanes, from the elements in the register at position `at` that lie before
/// `end`.
///
/// # Safety
/// The requirements are those of [`read_up_to`].
#[inline(always)]
unsafe fn begin_up_to<E: Edges>(edges: E, at: usize, end: usize) -> E::Sums {
    // SAFETY: the caller's promise.
    match unsafe { read_up_to(edges, at, end) } {
        // SAFETY: the instruction set.
        Some(first) => unsafe { E::begin(first) },
        // SAFETY: as above.
        None => unsafe { E::Sums::zero() },
    }
}

/// Adds to `sums` the elements in the register at position `at` that lie before `end`.
///
/// # Safety
/// The requirements are those of [`read_up_to`].
#[inline(always)]
unsafe fn add_up_to<E: Edges>(sums: E::Sums, edges: E, at: usize, end: usize) -> E::Sums {
    // SAFETY: the caller's promise.
    match unsafe { read_up_to(edges, at, end) } {
        // SAFETY: the instruction set.
        Some(next) => unsafe { E::add(sums, next) },
        None => sums,
    }
}

/// Reads the elements in the register at position `at` that lie before `end`, or returns `None` if there are none.
///
/// # Safety
/// The processor has the instruction set; the elements at `at..end` can be read.
#[inline(always)]
unsafe fn read_up_to<E: Edges>(edges: E, at: usize, end: usize) -> Option<E::Read> {
    let count = <E::Sums as Sums>::Simd::COUNT;
    if end >= at + count {
        // SAFETY: the caller's promise.
        Some(unsafe { edges.read(at) })
    } else if end > at {
        // Makes this the branch that jumps: a jump takes as long as an addition.
        cold_path();
        // SAFETY: as above, but for those masked out.
        Some(unsafe { edges.read_masked(at, <E::Sums as Sums>::Simd::mask(0, end - at)) })
    } else {
        cold_path();
        None
    }
}

/// Adds the lanes in halves until one sum is left.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn tree<S: Sums, const N: usize>(mut sums: [S; N]) -> S::Output {
    let mut width = N / 2;
    while width > 0 {
        for k in 0..width {
            // SAFETY: the instruction set.
            sums[k] = unsafe { sums[k].join(sums[k + width]) };
        }
        width /= 2;
    }
    // SAFETY: the instruction set.
    unsafe { sums[0].finish() }
}
