//! Vectors as BLAS has them: elements at equal steps.

use core::marker::PhantomData;

/// Elements to read: a slice, or every `step`-th of one.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a, E> {
    first: *const E,
    step: isize,
    len: usize,
    life: PhantomData<&'a [E]>,
}

/// Where a vector's element 0 is, and the step: what fits into registers. A [`Vector`] that goes to a function which is
/// seldom called would be written to memory for every call that does not need it.
pub(crate) type Place<E> = (*const E, isize);

/// Elements to change.
#[derive(Debug)]
pub struct VectorMut<'a, E> {
    /// Made from a pointer that may write. Never handed out: it would be a second borrow.
    place: Vector<'a, E>,
    life: PhantomData<&'a mut [E]>,
}

// SAFETY: it reads through a shared borrow of elements.
unsafe impl<E: Sync> Send for Vector<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for Vector<'_, E> {}
// SAFETY: it is an exclusive borrow of elements.
unsafe impl<E: Send> Send for VectorMut<'_, E> {}
// SAFETY: a shared `VectorMut` changes nothing; `Vector::part` of one is this crate's, which hands
// disjoint parts to threads.
unsafe impl<E: Send + Sync> Sync for VectorMut<'_, E> {}

/// The distance from the start of the memory to element 0: a negative step starts at the far end.
fn offset_of_first(len: usize, step: isize) -> isize {
    if step < 0 { step.wrapping_mul(1_isize.wrapping_sub_unsigned(len)) } else { 0 }
}

/// Whether `len` elements at this step lie within `have` of them.
fn fits(len: usize, step: isize, have: usize) -> bool {
    match len.checked_sub(1) {
        None => true,
        Some(steps) => step.unsigned_abs().checked_mul(steps).is_some_and(|last| last < have),
    }
}

impl<'a, E> Vector<'a, E> {
    /// `len` elements of `memory`, `step` apart. A negative step walks from the far end to the start of
    /// the slice, as a negative `incx` of BLAS does; 0 is the same element again and again. `None` when
    /// they are not all in the slice.
    #[must_use]
    pub fn strided(memory: &'a [E], step: isize, len: usize) -> Option<Vector<'a, E>> {
        // SAFETY: every element lies in the slice.
        fits(len, step, memory.len()).then(|| unsafe { Vector::from_raw(memory.as_ptr(), step, len) })
    }

    /// As [`strided`](Vector::strided), from an address: that of the lowest element.
    ///
    /// # Safety
    /// The elements can be read, and nobody but the same call's `VectorMut` changes them during `'a`.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(memory: *const E, step: isize, len: usize) -> Vector<'a, E> {
        let first = memory.wrapping_offset(offset_of_first(len, step));
        Vector { first, step, len, life: PhantomData }
    }

    #[inline]
    pub(crate) fn place(&self) -> Place<E> {
        (self.first, self.step)
    }

    /// `len` elements at a place.
    ///
    /// # Safety
    /// As [`from_raw`](Vector::from_raw).
    #[inline]
    pub(crate) unsafe fn at_place((first, step): Place<E>, len: usize) -> Vector<'a, E> {
        Vector { first, step, len, life: PhantomData }
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// None at all.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Side by side, ascending.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.step == 1
    }

    /// The address of element 0.
    #[inline]
    pub(crate) fn first(&self) -> *const E {
        self.first
    }

    /// `len` elements from `start` on, both within.
    #[inline]
    pub(crate) fn part(&self, start: usize, len: usize) -> Vector<'a, E> {
        debug_assert!(start + len <= self.len);
        Vector { first: self.address(start), len, ..*self }
    }

    /// The address of element `i`.
    #[inline(always)]
    pub(crate) fn address(&self, i: usize) -> *const E {
        self.first.wrapping_offset(i as isize * self.step)
    }
}

impl<E: Copy> Vector<'_, E> {
    /// Element `i`.
    ///
    /// # Safety
    /// `i` is less than `len`.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, i: usize) -> E {
        // SAFETY: `i < len`, and all elements can be read.
        unsafe { self.address(i).read() }
    }

    /// The elements in their order.
    pub(crate) fn iter(self) -> impl Iterator<Item = E> {
        // SAFETY: `i < len`.
        (0..self.len).map(move |i| unsafe { self.at(i) })
    }
}

impl<'a, E> VectorMut<'a, E> {
    /// As [`Vector::strided`]. A step of 0 is refused unless there is one element or none: it would be
    /// changed again and again.
    #[must_use]
    pub fn strided(memory: &'a mut [E], step: isize, len: usize) -> Option<VectorMut<'a, E>> {
        let fits = fits(len, step, memory.len()) && (step != 0 || len <= 1);
        // SAFETY: every element lies in the slice.
        fits.then(|| unsafe { VectorMut::from_raw(memory.as_mut_ptr(), step, len) })
    }

    /// As [`Vector::from_raw`]. With a step of 0, element 0 is changed once for each of `len`, in order.
    ///
    /// # Safety
    /// The elements can be read and written, and are nobody else's during `'a`, but that the vector
    /// handed in beside this one may be the very same elements at the same step.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(memory: *mut E, step: isize, len: usize) -> VectorMut<'a, E> {
        // SAFETY: the caller's promise.
        VectorMut { place: unsafe { Vector::from_raw(memory, step, len) }, life: PhantomData }
    }

    #[inline]
    pub(crate) fn place(&self) -> Place<E> {
        self.place.place()
    }

    /// `len` elements at a place.
    ///
    /// # Safety
    /// As [`from_raw`](VectorMut::from_raw).
    #[inline]
    pub(crate) unsafe fn at_place(place: Place<E>, len: usize) -> VectorMut<'a, E> {
        // SAFETY: the caller's promise.
        VectorMut { place: unsafe { Vector::at_place(place, len) }, life: PhantomData }
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.place.len
    }

    /// None at all.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// Side by side, ascending.
    #[inline]
    pub(crate) fn is_contiguous(&self) -> bool {
        self.place.is_contiguous()
    }

    /// All the same element.
    pub(crate) fn is_one(&self) -> bool {
        self.place.step == 0
    }

    /// The address of element 0.
    #[inline]
    pub(crate) fn first(&self) -> *mut E {
        self.place.first.cast_mut()
    }

    /// `len` elements from `start` on, both within.
    ///
    /// # Safety
    /// Parts that are in use at the same time do not overlap.
    #[inline]
    pub(crate) unsafe fn part(&self, start: usize, len: usize) -> VectorMut<'a, E> {
        VectorMut { place: self.place.part(start, len), life: PhantomData }
    }

    /// The address of element `i`.
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
        // SAFETY: a slice is borrowed for `'a`, by us alone.
        unsafe { VectorMut::from_raw(slice.as_mut_ptr(), 1, slice.len()) }
    }
}

impl<'a, E> From<&'a mut Vec<E>> for VectorMut<'a, E> {
    #[inline]
    fn from(vec: &'a mut Vec<E>) -> Self {
        vec.as_mut_slice().into()
    }
}
