//! Accesses the root stack through the collector's context.

use super::Context;
use super::roots::{BACKTRACE, FIXED, Fixed, RootMark};
use crate::error::Exit;
use crate::value::Value;

impl Context {
    #[inline]
    fn top_place(&self) -> *mut *mut Value {
        // SAFETY: the offset is one of the collector's context, which lives as long as the mutator.
        unsafe { self.gc.add(largesse_gc::Context::ROOTS_TOP).cast() }
    }

    /// Returns the address above the top root.
    #[inline]
    pub(crate) fn top(&self) -> *mut Value {
        // SAFETY: see `top_place`; a `Value` and a `Word` are the same 64 bits.
        unsafe { *self.top_place() }
    }

    #[inline]
    fn set_top(&mut self, top: *mut Value) {
        // SAFETY: see `top_place`; the callers pass an earlier top, or one increased by a push.
        unsafe { *self.top_place() = top }
    }

    fn limit(&self) -> *mut Value {
        // SAFETY: as in `top_place`.
        unsafe { *self.gc.add(largesse_gc::Context::ROOTS_LIMIT).cast() }
    }

    /// Returns the number of words left on the stack.
    #[inline]
    pub(crate) fn roots_left(&self) -> usize {
        (self.limit().addr() - self.top().addr()) / 8
    }

    /// Pushes a root, which stays alive until [`Context::release`] or until the current builtin returns.
    #[inline]
    pub(crate) fn push(&mut self, value: Value) -> Result<(), Exit> {
        let top = self.top();
        if top >= self.limit() {
            return self.stack_overflow();
        }
        // SAFETY: memory below the limit belongs to the stack, and above the top it is unused.
        unsafe { top.write(value) };
        self.set_top(top.wrapping_add(1));
        Ok(())
    }

    pub(crate) fn mark(&self) -> RootMark {
        RootMark(self.top())
    }

    /// Lowers the stack to an earlier height.
    #[inline]
    pub(crate) fn release(&mut self, mark: RootMark) {
        debug_assert!(mark.0 <= self.top());
        self.set_top(mark.0);
    }

    /// Pushes the items of a list and returns them: code that runs later may modify the list.
    pub(crate) fn alive(&mut self, list: Value) -> Result<Vec<Value>, Exit> {
        let items: Vec<Value> = list.iter().collect();
        for item in &items {
            self.push(*item)?;
        }
        Ok(items)
    }

    /// Returns the number of roots above a mark.
    pub(crate) fn above(&self, mark: RootMark) -> usize {
        (self.top().addr() - mark.0.addr()) / 8
    }

    /// Returns root `index` above a mark.
    pub(crate) fn root(&self, mark: RootMark, index: usize) -> Value {
        assert!(index < self.above(mark));
        // SAFETY: every word between the mark and the top was pushed.
        unsafe { *mark.0.add(index) }
    }

    /// Writes root `index` above a mark.
    pub(crate) fn set_root(&mut self, mark: RootMark, index: usize, value: Value) {
        assert!(index < self.above(mark));
        // SAFETY: as in `root`.
        unsafe { *mark.0.add(index) = value }
    }

    /// Writes the first root above a mark, which the owner of the mark has pushed.
    #[inline]
    pub(crate) fn put_root(&mut self, mark: RootMark, value: Value) {
        debug_assert!(self.above(mark) > 0);
        // SAFETY: a mark lies within the stack, and below its top, as its owner pushed at least one word.
        unsafe { *mark.0 = value }
    }

    /// Returns the mark for an address of the stack, for the arguments of machine code.
    pub(crate) fn mark_at(&self, address: *mut Value) -> RootMark {
        debug_assert!(address >= self.roots && address <= self.top());
        RootMark(address)
    }

    /// Returns the address of a mark, for arguments and environment entries.
    pub(crate) fn place(mark: RootMark) -> *mut Value {
        mark.0
    }

    pub(super) fn reserve_fixed(&mut self) {
        let bottom = self.top();
        for index in 0..FIXED {
            // SAFETY: the collector gives every thread a stack larger than the fixed roots.
            unsafe { bottom.add(index).write(Value::NIL) };
        }
        self.set_top(bottom.wrapping_add(FIXED));
    }

    pub(crate) fn fixed(&self, which: Fixed) -> Value {
        self.fixed_at(which as usize)
    }

    pub(crate) fn set_fixed(&mut self, which: Fixed, value: Value) {
        self.set_fixed_at(which as usize, value);
    }

    fn fixed_at(&self, index: usize) -> Value {
        debug_assert!(index < FIXED);
        // SAFETY: `reserve_fixed` wrote these words, and the top never falls below them.
        unsafe { *self.roots.add(index) }
    }

    fn set_fixed_at(&mut self, index: usize, value: Value) {
        debug_assert!(index < FIXED);
        // SAFETY: as in `fixed_at`.
        unsafe { *self.roots.add(index) = value }
    }

    /// Adds a call to the backtrace of the error that passes it.
    #[cold]
    pub(crate) fn passed(&mut self, form: Value) {
        if self.depth < BACKTRACE {
            self.set_fixed_at(Fixed::Backtrace as usize + self.depth, form);
            self.depth += 1;
        }
    }

    /// Returns the backtrace of the last error, innermost call first.
    pub(crate) fn backtrace(&self) -> Vec<Value> {
        (0..self.depth).map(|index| self.fixed_at(Fixed::Backtrace as usize + index)).collect()
    }
}

impl Context {
    /// Pushes an environment entry and returns its address.
    #[inline]
    pub(crate) fn push_entry(&mut self, name: Value, value: Value, link: Value) -> Result<usize, Exit> {
        let top = self.top();
        if self.roots_left() < 3 {
            self.stack_overflow()?;
        }
        // SAFETY: the three words above the top belong to the stack and are unused.
        unsafe { top.cast::<[Value; 3]>().write([name, value, link]) };
        self.set_top(top.wrapping_add(3));
        Ok(top.expose_provenance())
    }
}
