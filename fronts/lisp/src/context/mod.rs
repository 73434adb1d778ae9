//! A thread's state: its root stack, its environment, what is on its way out.
//!
//! # Picture
//! ```text
//!   root stack   | fixed roots | arguments | entry: name value link | arguments | entry ...      top
//!                                             ^------ link ---------------------'  ^ environment
//! ```
//! # Invariants
//! 1. Who catches an [`Exit`], and who calls a builtin, sets the stack's top back to what it was
//!    before: builtins push and never pop.
//! 2. The environment's entries on the stack lie below the top for as long as they are linked.

mod allocate;
mod roots;
mod specials;

pub(crate) use roots::{Fixed, Mark};

use crate::error::Exit;
use crate::value::Value;
use crate::world::World;
use largesse_gc::Mutator;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a function gives: a value, or a way out whose details are in the context.
pub(crate) type Answer = Result<Value, Exit>;

/// One thread of Lisp.
pub(crate) struct Context {
    pub(crate) world: Arc<World>,
    pub(crate) mutator: Mutator<crate::heap::Lisp>,
    /// Where the collector keeps the stack's top for us.
    gc: *mut u8,
    roots: *mut Value,
    /// Link to the innermost environment entry, nil when there is none.
    pub(crate) environment: Value,
    /// Whether some entry of the environment binds a function.
    pub(crate) local_functions: bool,
    /// Address of the innermost dynamic binding, 0 when there is none.
    specials: usize,
    /// The block, tagbody or catch an [`Exit`] goes to.
    pub(crate) target: i64,
    next_target: i64,
    /// Below this address the machine's stack is too full to go on.
    pub(crate) stack_limit: usize,
    pub(crate) methods: Box<[crate::world::CachedMethod]>,
    /// The calls an error came through, innermost first: how many of the fixed roots are in use.
    pub(crate) depth: usize,
    /// Tags of the catches that are active; each is on the root stack too.
    pub(crate) catches: Vec<Value>,
    /// Where machine code that answered no value is going.
    pub(crate) leaving: Exit,
    /// Whether the program's error handler is running.
    pub(crate) handling: bool,
    /// Whether `*gc-hook*` is running: what it allocates may be collected, and is not told of.
    hooking: bool,
    /// Of the world's interrupts, those that what runs here has nothing to do with any more.
    interrupts: u32,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

/// Bytes of the machine's stack that stay free for builtins and the report of the overflow.
const STACK_RESERVE: usize = 192 << 10;

impl Context {
    /// Where machine code finds the collector's part.
    pub(crate) const GC_OFFSET: usize = std::mem::offset_of!(Context, gc);
    /// Words of the root stack that stay free above every frame.
    pub(crate) const RESERVE: usize = roots::RESERVE;

    /// The calling thread's state; its machine stack has about `stack` bytes left.
    pub(crate) fn new(world: Arc<World>, mutator: Mutator<crate::heap::Lisp>, stack: usize) -> Context {
        let here = (&raw const stack).addr();
        let gc = mutator.context().as_ptr().cast::<u8>();
        let mut cx = Context {
            world,
            mutator,
            gc,
            roots: std::ptr::null_mut(),
            environment: Value::NIL,
            local_functions: false,
            specials: 0,
            target: 0,
            next_target: 0,
            stack_limit: here - (stack - STACK_RESERVE.min(stack / 2)),
            methods: vec![crate::world::CachedMethod::default(); crate::world::CACHED_METHODS].into(),
            depth: 0,
            catches: Vec::new(),
            leaving: Exit::Error,
            handling: false,
            hooking: false,
            interrupts: 0,
        };
        cx.roots = cx.top();
        cx.reserve_fixed();
        cx
    }

    /// A number for a new block, tagbody or catch.
    pub(crate) fn new_target(&mut self) -> i64 {
        self.next_target += 1;
        self.next_target
    }

    /// A safepoint. Fails when somebody pressed Ctrl-C.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<(), Exit> {
        if self.mutator.poll() {
            return self.attend();
        }
        Ok(())
    }

    /// Something wants this thread: Ctrl-C, objects that died, a collection it made and is to tell of.
    #[cold]
    fn attend(&mut self) -> Result<(), Exit> {
        while let Some(object) = self.mutator.next_finalizable() {
            self.finalize(Value::object_at(object.as_ptr().expose_provenance()));
        }
        self.check_interrupt()?;
        self.tell_gc_hook()
    }

    /// Fails once for each Ctrl-C: what is cleaned up on the way out is not stopped by the same one.
    fn check_interrupt(&mut self) -> Result<(), Exit> {
        if self.forget_interrupts() { Err(Exit::Interrupt) } else { Ok(()) }
    }

    /// What runs from here on began after every Ctrl-C that came so far. Whether there was one.
    pub(crate) fn forget_interrupts(&mut self) -> bool {
        // Acquire: who sees the number sees what came before Ctrl-C.
        let all = self.world.interrupts.load(Ordering::Acquire);
        std::mem::replace(&mut self.interrupts, all) != all
    }

    /// The interrupts that this thread's evaluation began after, for work that it hands to another.
    pub(crate) fn interrupts(&self) -> u32 {
        self.interrupts
    }

    /// Takes up the work of a thread that had seen so many interrupts; fails when another came since.
    pub(crate) fn take_up(&mut self, interrupts: u32) -> Result<(), Exit> {
        self.interrupts = interrupts;
        self.check_interrupt()
    }

    /// Calls `*gc-hook*` with the free and all words of the heap, once for what was collected since the last call.
    pub(crate) fn tell_gc_hook(&mut self) -> Result<(), Exit> {
        let hook = self.global_value(self.world.names.gc_hook);
        if hook.is_nil() || hook == Value::UNBOUND || self.hooking {
            return Ok(());
        }
        let statistics = self.world.heap.statistics();
        let count = statistics.collections.pauses.count();
        // Relaxed: a number that decides nothing else.
        if self.world.collections_told.fetch_max(count, Ordering::Relaxed) >= count {
            return Ok(());
        }
        let [free, all] = crate::report::words(&statistics);
        self.hooking = true;
        let done = self.apply(hook, &[free, all]);
        self.hooking = false;
        done.map(|_| ())
    }

    /// Fails when the machine's stack or the root stack is nearly full.
    #[inline]
    pub(crate) fn check_stack(&mut self) -> Result<(), Exit> {
        let here = 0_u8;
        if (&raw const here).addr() < self.stack_limit || self.roots_left() < roots::RESERVE {
            return self.stack_overflow();
        }
        Ok(())
    }

    /// Bytes of the machine's stack that may still be used.
    pub(crate) fn machine_stack_left(&self) -> usize {
        let here = 0_u8;
        (&raw const here).addr().saturating_sub(self.stack_limit)
    }

    /// Signals the error that was made at start for this: there is no room for a new one.
    #[cold]
    pub(crate) fn stack_overflow(&mut self) -> Result<(), Exit> {
        let error = self.world.names.spare_overflow;
        self.set_fixed(Fixed::Error, error);
        self.depth = 0;
        Err(Exit::Error)
    }

    /// Runs `f`, which may wait and touches no value, as a thread that is stopped.
    pub(crate) fn blocked<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.mutator.blocked(f)
    }

    pub(crate) fn truth(&self, yes: bool) -> Value {
        if yes { self.world.names.t } else { Value::NIL }
    }
}
