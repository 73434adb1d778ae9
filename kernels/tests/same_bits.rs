//! Every instruction set gives the reference's bits, for any alignment, step and contents of the vectors.

mod support;

use largesse_kernels::{Alone, Complex, Kernels, Vector, VectorMut, reference};
use proptest::prelude::*;
use support::{Number, everywhere, fewer, lengths, numbers, placed};

/// Checks that two numbers have the same bits; `what` names the kernel in a message.
#[track_caller]
fn same<T: Number>(kernels: Kernels, what: &str, got: T, want: T) {
    assert_eq!(got.bits(), want.bits(), "{what} on {}: {got:?}, not {want:?}", kernels.isa());
}

#[track_caller]
fn same_complex<T: Number>(kernels: Kernels, what: &str, got: Complex<T>, want: Complex<T>) {
    same(kernels, what, got.re, want.re);
    same(kernels, what, got.im, want.im);
}

/// Checks all kernels on two vectors, which begin `places.0` and `places.1` elements after the start of a cache line.
#[track_caller]
fn agrees<T: Number>(kernels: Kernels, x: &[T], y: &[T], places: (usize, usize)) {
    let (a, b) = (placed(x, places.0), placed(y, places.1));
    let (px, py) = (a.get(), b.get());
    let at = format!("n = {}, {places:?}", x.len());
    same(kernels, &format!("sum, {at}"), kernels.sum(px, &Alone), reference::sum(x));
    same(kernels, &format!("asum, {at}"), kernels.asum(px, &Alone), reference::asum(x));
    same(kernels, &format!("sumsq, {at}"), kernels.sumsq(px, &Alone), reference::sumsq(x));
    same(kernels, &format!("nrm2, {at}"), kernels.nrm2(px, &Alone), reference::nrm2(x));
    same(kernels, &format!("amax, {at}"), kernels.amax(px, &Alone), reference::amax(x));
    same(kernels, &format!("amin, {at}"), kernels.amin(px, &Alone), reference::amin(x));
    same(kernels, &format!("dot, {at}"), kernels.dot(px, py, &Alone), reference::dot(x, y));
    let factor = x.first().copied().unwrap_or(T::ZERO);
    let (mut new, mut want) = (placed(y, places.1), y.to_vec());
    kernels.axpy(factor, px, new.get_mut(), &Alone);
    reference::axpy(factor, x, &mut want);
    for (got, want) in new.get().iter().zip(&want) {
        same(kernels, &format!("axpy, {at}"), *got, *want);
    }
    let (cx, cy) = (complex(px), complex(py));
    let what = format!("dotu, {at}");
    same_complex(kernels, &what, kernels.dotu(cx, cy, &Alone), reference::dotu(cx, cy));
    let what = format!("dotc, {at}");
    same_complex(kernels, &what, kernels.dotc(cx, cy, &Alone), reference::dotc(cx, cy));
}

/// Returns pairs of elements as complex numbers, without the last element of an odd number.
fn complex<T>(x: &[T]) -> &[Complex<T>] {
    // SAFETY: a complex number is two of its parts, and is aligned as they are.
    unsafe { core::slice::from_raw_parts(x.as_ptr().cast(), x.len() / 2) }
}

fn every_length_and_place<T: Number>() {
    for kernels in everywhere() {
        for n in lengths(T::LANES) {
            // 1, 1/2, 1/3, …: an element in a wrong lane changes the bits.
            let x: Vec<T> = (1..=n).map(|i| T::of(1.0 / i as f64)).collect();
            let y: Vec<T> =
                (1..=n).map(|i| T::of((i as f64).sqrt() * if i % 3 == 0 { -1.0 } else { 1.0 })).collect();
            let line = 64 / size_of::<T>();
            for place in 0..line {
                agrees(kernels, &x, &y, (place, place));
                agrees(kernels, &x, &y, (place, (place * 5 + 3) % line));
            }
        }
    }
}

#[test]
fn f64_matches_at_every_alignment() {
    every_length_and_place::<f64>();
}

#[test]
fn f32_matches_at_every_alignment() {
    every_length_and_place::<f32>();
}

/// Checks lengths around the borders of blocks of rows, and of parts.
fn long_vectors<T: Number>() {
    let blocks = [32, 33, 64, 65].into_iter().flat_map(|rows| [rows * T::LANES - 1, rows * T::LANES + 5]);
    let parts = [reference::PART - 1, reference::PART, reference::PART + 1, 3 * reference::PART + 77];
    for n in blocks.chain(parts) {
        let x: Vec<T> = (1..=n).map(|i| T::of(1.0 / i as f64)).collect();
        let y: Vec<T> = (1..=n).map(|i| T::of((i as f64).sqrt())).collect();
        for kernels in everywhere() {
            agrees(kernels, &x, &y, (0, 0));
            agrees(kernels, &x, &y, (3, 6));
        }
    }
}

#[test]
fn f64_matches_in_long_vectors() {
    long_vectors::<f64>();
}

#[test]
fn f32_matches_in_long_vectors() {
    long_vectors::<f32>();
}

/// Checks vectors larger than the second-level cache, for which sums of squares have a loop of their own.
fn far_squares<T: Number>() {
    let n = (4 << 20) / size_of::<T>() + 77;
    // Numbers of similar size: the last one changes the result even in `f32`.
    let x: Vec<T> = (1..=n).map(|i| T::of(1.0 + (i % 97) as f64 / 97.0)).collect();
    let want = reference::sumsq(&x);
    for kernels in everywhere() {
        for place in [0, 3] {
            let x = placed(&x, place);
            same(kernels, &format!("sumsq, n = {n}, {place}"), kernels.sumsq(x.get(), &Alone), want);
        }
    }
}

#[test]
fn f64_matches_beyond_cache() {
    far_squares::<f64>();
}

#[test]
fn f32_matches_beyond_cache() {
    far_squares::<f32>();
}

fn steps<T: Number>(x: &[T], y: &[T], (step_x, step_y): (isize, isize)) {
    let n = x.len();
    let (a, b) = (spread(x, step_x), spread(y, step_y));
    let (vx, vy) = (Vector::strided(&a, step_x, n).unwrap(), Vector::strided(&b, step_y, n).unwrap());
    for kernels in everywhere() {
        let at = format!("n = {n}, steps {step_x} {step_y}");
        same(kernels, &format!("sum, {at}"), kernels.sum(vx, &Alone), reference::sum(x));
        same(kernels, &format!("asum, {at}"), kernels.asum(vx, &Alone), reference::asum(x));
        same(kernels, &format!("sumsq, {at}"), kernels.sumsq(vx, &Alone), reference::sumsq(x));
        same(kernels, &format!("nrm2, {at}"), kernels.nrm2(vx, &Alone), reference::nrm2(x));
        same(kernels, &format!("amax, {at}"), kernels.amax(vx, &Alone), reference::amax(x));
        same(kernels, &format!("amin, {at}"), kernels.amin(vx, &Alone), reference::amin(x));
        same(kernels, &format!("dot, {at}"), kernels.dot(vx, vy, &Alone), reference::dot(x, y));
        let factor = T::of(0.75);
        let (mut new, mut want) = (b.clone(), y.to_vec());
        kernels.axpy(factor, vx, VectorMut::strided(&mut new, step_y, n).unwrap(), &Alone);
        reference::axpy(factor, x, &mut want);
        let want = spread_into(b.clone(), &want, step_y);
        assert!(new.iter().zip(&want).all(|(a, b)| a.bits() == b.bits()), "axpy on {}, {at}", kernels.isa());

        let (x, y) = (complex(x), complex(y));
        let (a, b) = (spread(x, step_x), spread(y, step_y));
        let (vx, vy) =
            (Vector::strided(&a, step_x, x.len()).unwrap(), Vector::strided(&b, step_y, x.len()).unwrap());
        same_complex(kernels, &format!("dotu, {at}"), kernels.dotu(vx, vy, &Alone), reference::dotu(x, y));
        same_complex(kernels, &format!("dotc, {at}"), kernels.dotc(vx, vy, &Alone), reference::dotc(x, y));
    }
}

/// Returns memory that has `elements` at distance `step`: element `i` at index `i * step`. With a negative step the
/// first element is at the end, as in BLAS: element `i` at index `(i - (n - 1)) * step`.
fn spread<E: Copy + Default>(elements: &[E], step: isize) -> Vec<E> {
    let room = elements.len().saturating_sub(1) * step.unsigned_abs() + 1;
    spread_into(vec![E::default(); room], elements, step)
}

fn spread_into<E: Copy>(mut memory: Vec<E>, elements: &[E], step: isize) -> Vec<E> {
    for (i, element) in elements.iter().enumerate() {
        let i = if step < 0 { elements.len() - 1 - i } else { i };
        memory[i * step.unsigned_abs()] = *element;
    }
    memory
}

#[test]
fn zero_step_repeats_one_element() {
    for kernels in everywhere() {
        let three = Vector::strided(&[3.0], 0, 100).unwrap();
        assert_eq!(kernels.sum(three, &Alone), 300.0);
        assert_eq!(kernels.dot(three, &[0.5; 100][..], &Alone), 150.0);
        let mut y = [1.0];
        // SAFETY: one element, changed a hundred times.
        let one = unsafe { VectorMut::from_raw(y.as_mut_ptr(), 0, 100) };
        kernels.axpy(1.0, three, one, &Alone);
        assert_eq!(y, [301.0]);
    }
}

#[test]
fn vector_outside_memory_is_refused() {
    let x = [1.0; 10];
    assert!(Vector::strided(&x, 3, 4).is_some());
    for (step, len) in [(3, 5), (-4, 4), (1, 11), (isize::MIN, 2), (isize::MAX, usize::MAX), (0, 0)] {
        assert_eq!(Vector::strided(&x, step, len).is_some(), len == 0, "{step} {len}");
    }
    assert!(Vector::<f64>::strided(&[], 0, 1).is_none());
    assert!(VectorMut::strided(&mut [1.0; 10], 0, 2).is_none());
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn f64_matches_for_any_values(
        (x, y) in numbers::<f64>(), places in (0..8_usize, 0..8_usize),
    ) {
        everywhere().for_each(|kernels| agrees(kernels, &x, &y, places));
    }

    #[test]
    fn f32_matches_for_any_values(
        (x, y) in numbers::<f32>(), places in (0..16_usize, 0..16_usize),
    ) {
        everywhere().for_each(|kernels| agrees(kernels, &x, &y, places));
    }

    #[test]
    fn f64_matches_for_any_steps((x, y) in numbers::<f64>(), step_x in -5..=5_isize, step_y in -5..=5_isize) {
        prop_assume!(step_x != 0 && step_y != 0);
        steps(&x, &y, (step_x, step_y));
    }

    #[test]
    fn f32_matches_for_any_steps((x, y) in numbers::<f32>(), step_x in -3..=3_isize, step_y in -3..=3_isize) {
        prop_assume!(step_x != 0 && step_y != 0);
        steps(&x, &y, (step_x, step_y));
    }
}
