//! Holds a thread's state: its root stack, its environment, and the details of an exit.
//!
//! # Picture
//! ```text
//!   root stack   | fixed roots | arguments | entry: name value link | arguments | entry ...      top
//!                                             ^------ link ---------------------'  ^ environment
//! ```
//! # Invariants
//! 1. Code that catches an [`Exit`] or calls a builtin restores the height of the root stack from before:
//!    builtins need not pop what they push.
//! 2. The environment's entries on the stack lie below the top for as long as they are linked.

mod allocate;
mod roots;
mod specials;
mod stack;

pub(crate) use crate::error::Answer;
pub(crate) use roots::{Fixed, RootMark};

use crate::error::Exit;
use crate::value::Value;
use crate::world::LispWorld;
use largesse_gc::Mutator;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Holds the state of one thread of Lisp.
pub(crate) struct Context {
    pub(crate) world: Arc<LispWorld>,
    pub(crate) mutator: Mutator<crate::heap::Lisp>,
    /// Address of the collector's context, which holds the top of the root stack.
    gc: *mut u8,
    roots: *mut Value,
    /// Link to the innermost environment entry; nil without any.
    pub(crate) environment: Value,
    /// Whether an entry of the environment binds a function.
    pub(crate) local_functions: bool,
    /// Whether `*evalhook*` evaluates forms in place of the interpreter.
    pub(crate) stepping: bool,
    /// Address of the innermost dynamic binding, or 0 without any.
    specials: usize,
    /// Number of the block or tagbody that an [`Exit`] goes to.
    pub(crate) target: i64,
    next_target: i64,
    /// Address below which the machine stack counts as full.
    pub(crate) stack_limit: usize,
    pub(crate) methods: Box<[crate::world::CachedMethod]>,
    /// Number of methods that this thread found in its cache.
    pub(crate) method_hits: u64,
    /// Number of methods that this thread did not find in its cache.
    pub(crate) method_misses: u64,
    /// Number of forms that the thread evaluated in the running interpreted definition.
    pub(crate) evaluated: u32,
    /// For interpreted definitions that the thread called: how much it evaluated there, and the machine code that replaces
    /// each of them. An entry is overwritten when the thread calls many others.
    pub(crate) called: Box<[crate::world::library::CalledDefinition]>,
    /// Number of fixed roots in use for the backtrace of an error, innermost call first.
    pub(crate) depth: usize,
    /// Tags of the active catches; each is on the root stack, too.
    pub(crate) catches: Vec<Value>,
    /// The exit that machine code returned instead of a value.
    pub(crate) leaving: Exit,
    /// File and line of the innermost loaded form that the last error ended.
    pub(crate) failed_at: Option<String>,
    /// Whether the program's error handler is running.
    pub(crate) handling: bool,
    /// Whether `*gc-hook*` is running: it is not called for collections during its own run.
    hooking: bool,
    /// Whether the program's functions for signals, interrupts and collections are called later, by [`Context::attend`].
    pub(crate) deferring: bool,
    /// Number of interrupts of the world that do not concern the current evaluation.
    interrupts: u32,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

/// Bytes of the machine stack reserved for builtins and the report of an overflow.
const STACK_RESERVE: usize = 192 << 10;

impl Context {
    /// Offset of the address of the collector's context, for machine code.
    pub(crate) const GC_OFFSET: usize = std::mem::offset_of!(Context, gc);
    /// Offset of the address of the root stack, for machine code.
    pub(crate) const ROOTS_OFFSET: usize = std::mem::offset_of!(Context, roots);
    /// Number of words of the root stack that are free above every frame.
    pub(crate) const RESERVE: usize = roots::RESERVE;

    /// Creates the calling thread's state; its machine stack has about `stack` bytes left.
    pub(crate) fn new(world: Arc<LispWorld>, mutator: Mutator<crate::heap::Lisp>, stack: usize) -> Context {
        let here = (&raw const stack).addr();
        let gc = mutator.context().as_ptr().cast::<u8>();
        let mut cx = Context {
            world,
            mutator,
            gc,
            roots: std::ptr::null_mut(),
            environment: Value::NIL,
            local_functions: false,
            stepping: false,
            specials: 0,
            target: 0,
            next_target: 0,
            stack_limit: here - (stack - STACK_RESERVE.min(stack / 2)),
            methods: vec![crate::world::CachedMethod::default(); crate::world::CACHED_METHODS].into(),
            method_hits: 0,
            method_misses: 0,
            evaluated: 0,
            called: crate::world::library::called_definitions(),
            depth: 0,
            catches: Vec::new(),
            leaving: Exit::Error,
            failed_at: None,
            handling: false,
            hooking: false,
            deferring: false,
            interrupts: 0,
        };
        cx.roots = cx.top();
        cx.reserve_fixed();
        cx
    }

    /// Returns a number for a new block or tagbody.
    pub(crate) fn new_target(&mut self) -> i64 {
        self.next_target += 1;
        self.next_target
    }

    /// Polls at a safepoint. Fails after Ctrl-C.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<(), Exit> {
        if self.mutator.poll() {
            return self.attend();
        }
        Ok(())
    }

    /// Handles the reasons for a poll: Ctrl-C, other signals, objects to finalize, a collection to report to
    /// `*gc-hook*`.
    #[cold]
    pub(crate) fn attend(&mut self) -> Result<(), Exit> {
        while let Some(object) = self.mutator.next_finalizable() {
            self.finalize(Value::object_at(object.as_ptr().expose_provenance()));
        }
        if self.deferring {
            // Ctrl-C for which the program has no function ends the evaluation at once.
            return if self.handles_interrupts() { Ok(()) } else { self.check_interrupt() };
        }
        self.check_interrupt()?;
        self.handle_signals()?;
        self.tell_gc_hook()
    }

    /// Fails once for each Ctrl-C, so that cleanup forms run during the exit, unless the program handles it.
    fn check_interrupt(&mut self) -> Result<(), Exit> {
        if self.forget_interrupts() && !self.handle_interrupt()? { Err(Exit::Interrupt) } else { Ok(()) }
    }

    /// Ignores all interrupts up to now in this evaluation. Returns whether there was one.
    pub(crate) fn forget_interrupts(&mut self) -> bool {
        // Acquire: a thread that reads the number sees all writes before the interrupt.
        let all = self.world.interrupts.load(Ordering::Acquire);
        std::mem::replace(&mut self.interrupts, all) != all
    }

    /// Returns the number of interrupts before this thread's evaluation, for work that it passes to another thread.
    pub(crate) fn interrupts(&self) -> u32 {
        self.interrupts
    }

    /// Continues the work of a thread that had seen `interrupts` interrupts; fails when another arrived since.
    pub(crate) fn take_up(&mut self, interrupts: u32) -> Result<(), Exit> {
        self.interrupts = interrupts;
        self.check_interrupt()
    }

    /// Calls `*gc-hook*` with the number of free and of all words of the heap, once for the collections since the
    /// last call.
    pub(crate) fn tell_gc_hook(&mut self) -> Result<(), Exit> {
        let hook = self.global_value(self.world.names.gc_hook);
        if hook.is_nil() || hook == Value::UNBOUND || self.hooking || self.deferring {
            return Ok(());
        }
        let statistics = self.world.heap.statistics();
        let count = statistics.collections.pauses.count();
        // Relaxed: the number orders no other access.
        if self.world.collections_told.fetch_max(count, Ordering::Relaxed) >= count {
            return Ok(());
        }
        let [free, all] = crate::report::words(&statistics);
        self.hooking = true;
        let done = self.apply(hook, &[free, all]);
        self.hooking = false;
        done.map(|_| ())
    }

    /// Fails when the machine stack or the root stack is nearly full.
    #[inline]
    pub(crate) fn check_stack(&mut self) -> Result<(), Exit> {
        let here = 0_u8;
        if (&raw const here).addr() < self.stack_limit || self.roots_left() < roots::RESERVE {
            return self.stack_overflow();
        }
        Ok(())
    }

    /// Returns the number of bytes of the machine stack that may still be used.
    pub(crate) fn machine_stack_left(&self) -> usize {
        let here = 0_u8;
        (&raw const here).addr().saturating_sub(self.stack_limit)
    }

    /// Signals the stack overflow with the error object made at start, as a new one would need stack.
    #[cold]
    pub(crate) fn stack_overflow(&mut self) -> Result<(), Exit> {
        let error = self.world.names.spare_overflow;
        self.set_fixed(Fixed::Error, error);
        self.depth = 0;
        self.failed_at = None;
        Err(Exit::Error)
    }

    /// Runs a closure that may wait and accesses no value, in state native: collections do not wait for it.
    pub(crate) fn blocked<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.mutator.blocked(f)
    }

    pub(crate) fn truth(&self, yes: bool) -> Value {
        if yes { self.world.names.t } else { Value::NIL }
    }
}
