//! Defines vectors as BLAS does: elements at equal distances.

use core::marker::PhantomData;

/// A vector whose elements are a slice, or every `step`-th element of one.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a, E> {
    first: *const E,
    step: isize,
    len: usize,
    life: PhantomData<&'a [E]>,
}

/// The address of a vector's element 0 and the vector's step. A rarely called function takes these instead of a
/// [`Vector`]: they fit into registers, while a `Vector` argument would be written to memory even in calls that do not
/// reach the function.
pub(crate) type Location<E> = (*const E, isize);

/// A writable vector whose elements are a slice, or every `step`-th element of one.
#[derive(Debug)]
pub struct VectorMut<'a, E> {
    /// The same vector for reading, made from a writable pointer. It is never returned to callers, because it would be
    /// a second borrow.
    place: Vector<'a, E>,
    life: PhantomData<&'a mut [E]>,
}

// SAFETY: it reads through a shared borrow of elements.
unsafe impl<E: Sync> Send for Vector<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for Vector<'_, E> {}
// SAFETY: it is an exclusive borrow of elements.
unsafe impl<E: Send> Send for VectorMut<'_, E> {}
// SAFETY: a shared `VectorMut` changes nothing; only this crate calls `VectorMut::part`, and gives disjoint parts to
// threads.
unsafe impl<E: Send + Sync> Sync for VectorMut<'_, E> {}

/// Returns the distance in elements from the lowest address of a vector to its element 0, which is the element at the
/// highest address if the step is negative.
fn offset_of_first(len: usize, step: isize) -> isize {
    if step < 0 { step.wrapping_mul(1_isize.wrapping_sub_unsigned(len)) } else { 0 }
}

/// Returns whether `len` elements at distance `step` lie within memory of `have` elements.
fn fits(len: usize, step: isize, have: usize) -> bool {
    match len.checked_sub(1) {
        None => true,
        Some(steps) => step.unsigned_abs().checked_mul(steps).is_some_and(|last| last < have),
    }
}

impl<'a, E> Vector<'a, E> {
    /// Returns the vector of `len` elements of `memory` at distance `step`, or `None` unless the slice contains them
    /// all. A negative step runs from the end of the slice to its start, like a negative `incx` in BLAS; 0 repeats one
    /// element.
    #[must_use]
    pub fn strided(memory: &'a [E], step: isize, len: usize) -> Option<Vector<'a, E>> {
        // SAFETY: every element lies in the slice.
        fits(len, step, memory.len()).then(|| unsafe { Vector::from_raw(memory.as_ptr(), step, len) })
    }

    /// Returns a vector as [`strided`](Vector::strided) does, given the address of its lowest element.
    ///
    /// # Safety
    /// The elements can be read, and no other code than the same call's `VectorMut` changes them during `'a`.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(memory: *const E, step: isize, len: usize) -> Vector<'a, E> {
        let first = memory.wrapping_offset(offset_of_first(len, step));
        Vector { first, step, len, life: PhantomData }
    }

    #[inline]
    pub(crate) fn location(&self) -> Location<E> {
        (self.first, self.step)
    }

    /// Returns the vector of `len` elements whose element 0 and step are given.
    ///
    /// # Safety
    /// The requirements are those of [`from_raw`](Vector::from_raw).
    #[inline]
    pub(crate) unsafe fn at_location((first, step): Location<E>, len: usize) -> Vector<'a, E> {
        Vector { first, step, len, life: PhantomData }
    }

    /// Returns the number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the elements are adjacent, in ascending order.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.step == 1
    }

    /// Returns the address of element 0.
    #[inline]
    pub(crate) fn first(&self) -> *const E {
        self.first
    }

    /// Returns the `len` elements from `start` on, which must lie within the vector.
    #[inline]
    pub(crate) fn part(&self, start: usize, len: usize) -> Vector<'a, E> {
        debug_assert!(start + len <= self.len);
        Vector { first: self.address(start), len, ..*self }
    }

    /// Returns the address of element `i`.
    #[inline(always)]
    pub(crate) fn address(&self, i: usize) -> *const E {
        self.first.wrapping_offset(i as isize * self.step)
    }
}

impl<E: Copy> Vector<'_, E> {
    /// Returns element `i`.
    ///
    /// # Safety
    /// `i` is less than `len`.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, i: usize) -> E {
        // SAFETY: `i < len`, and all elements can be read.
        unsafe { self.address(i).read() }
    }

    /// Returns an iterator over the elements in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = E> {
        // SAFETY: `i < len`.
        (0..self.len).map(move |i| unsafe { self.at(i) })
    }
}

impl<'a, E> VectorMut<'a, E> {
    /// Returns a vector as [`Vector::strided`] does. Returns `None` also for a step of 0 and more than one element,
    /// because that element would be changed repeatedly.
    #[must_use]
    pub fn strided(memory: &'a mut [E], step: isize, len: usize) -> Option<VectorMut<'a, E>> {
        let fits = fits(len, step, memory.len()) && (step != 0 || len <= 1);
        // SAFETY: every element lies in the slice.
        fits.then(|| unsafe { VectorMut::from_raw(memory.as_mut_ptr(), step, len) })
    }

    /// Returns a vector as [`Vector::from_raw`] does. With a step of 0, element 0 is changed `len` times, in order.
    ///
    /// # Safety
    /// The elements can be read and written, and no other code uses them during `'a`, except that the other vector of
    /// the same call may have the same elements at the same step.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(memory: *mut E, step: isize, len: usize) -> VectorMut<'a, E> {
        // SAFETY: the caller's promise.
        VectorMut { place: unsafe { Vector::from_raw(memory, step, len) }, life: PhantomData }
    }

    #[inline]
    pub(crate) fn location(&self) -> Location<E> {
        self.place.location()
    }

    /// Returns the vector of `len` elements whose element 0 and step are given.
    ///
    /// # Safety
    /// The requirements are those of [`from_raw`](VectorMut::from_raw).
    #[inline]
    pub(crate) unsafe fn at_location(location: Location<E>, len: usize) -> VectorMut<'a, E> {
        // SAFETY: the caller's promise.
        VectorMut { place: unsafe { Vector::at_location(location, len) }, life: PhantomData }
    }

    /// Returns the number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.place.len
    }

    /// Returns whether there are no elements.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Returns whether the elements are adjacent, in ascending order.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.place.is_contiguous()
    }

    /// Returns whether the step is zero, so that every element is the same.
    pub(crate) fn is_one(&self) -> bool {
        self.place.step == 0
    }

    /// Returns the address of element 0.
    #[inline]
    pub(crate) fn first(&self) -> *mut E {
        self.place.first.cast_mut()
    }

    /// Returns the `len` elements from `start` on, which must lie within the vector.
    ///
    /// # Safety
    /// Parts that are in use at the same time do not overlap.
    #[inline]
    pub(crate) unsafe fn part(&self, start: usize, len: usize) -> VectorMut<'a, E> {
        VectorMut { place: self.place.part(start, len), life: PhantomData }
    }

    /// Returns the address of element `i`.
    #[inline(always)]
    pub(crate) fn address(&self, i: usize) -> *mut E {
        self.place.address(i).cast_mut()
    }
}

impl<'a, E> From<&'a [E]> for Vector<'a, E> {
    #[inline]
    fn from(slice: &'a [E]) -> Self {
        // SAFETY: a slice is borrowed for `'a`.
        unsafe { Vector::from_raw(slice.as_ptr(), 1, slice.len()) }
    }
}

impl<'a, E> From<&'a Vec<E>> for Vector<'a, E> {
    #[inline]
    fn from(vec: &'a Vec<E>) -> Self {
        vec.as_slice().into()
    }
}

impl<'a, E> From<&'a mut [E]> for VectorMut<'a, E> {
    #[inline]
    fn from(slice: &'a mut [E]) -> Self {
        // SAFETY: a slice is borrowed for `'a`, exclusively.
        unsafe { VectorMut::from_raw(slice.as_mut_ptr(), 1, slice.len()) }
    }
}

impl<'a, E> From<&'a mut Vec<E>> for VectorMut<'a, E> {
    #[inline]
    fn from(vec: &'a mut Vec<E>) -> Self {
        vec.as_mut_slice().into()
    }
}
