//! Calls the next allocator, which serves every request that the heap does not.
//!
//! Its functions are looked up once with `dlsym`, which may itself allocate: until it returns, requests of the
//! searching thread are served from a small buffer whose cells are never reused.

use crate::slots::object;
use crate::symbol::symbol;
use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Memalign = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
type ReallocArray = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
type Trim = unsafe extern "C" fn(usize) -> c_int;
type SetStack = unsafe extern "C" fn(*mut libc::pthread_attr_t, *mut c_void, usize) -> c_int;
type Open = unsafe extern "C" fn(*const core::ffi::c_char, c_int) -> *mut c_void;

type SystemCall = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// Declares a slot for each function of the next allocator. A slot first holds a stub that looks up all functions.
macro_rules! functions {
    ($($slot:ident = $name:literal, $stub:ident: fn($($arg:ident: $ty:ty),*) $(-> $ret:ty)?, as $kind:ty;)*) => {
        $(
            static $slot: AtomicPtr<c_void> = AtomicPtr::new($stub as *mut c_void);

            unsafe extern "C" fn $stub($($arg: $ty),*) $(-> $ret)? {
                find();
                // SAFETY: `find` has stored a function of this type: every name is one of the C library's, whose
                // absence the linker would have reported.
                let f: $kind = unsafe { core::mem::transmute($slot.load(Ordering::Relaxed)) };
                // SAFETY: the caller's promise.
                unsafe { f($($arg),*) }
            }
        )*
        fn find_all() {
            $(find_one(&$slot, $name);)*
            find_one(&SYSTEM_CALL, c"syscall");
        }
    };
}

functions! {
    MALLOC = c"malloc", first_malloc: fn(size: usize) -> *mut c_void, as Malloc;
    CALLOC = c"calloc", first_calloc: fn(count: usize, size: usize) -> *mut c_void, as Calloc;
    REALLOC = c"realloc", first_realloc: fn(old: *mut c_void, size: usize) -> *mut c_void, as Realloc;
    FREE = c"free", first_free: fn(old: *mut c_void), as Free;
    ARRAY = c"reallocarray", first_array: fn(old: *mut c_void, count: usize, size: usize) -> *mut c_void, as ReallocArray;
    MEMALIGN = c"memalign", first_memalign: fn(align: usize, size: usize) -> *mut c_void, as Memalign;
    ALIGNED = c"aligned_alloc", first_aligned: fn(align: usize, size: usize) -> *mut c_void, as Memalign;
    POSIX = c"posix_memalign", first_posix: fn(out: *mut *mut c_void, align: usize, size: usize) -> c_int, as PosixMemalign;
    VALLOC = c"valloc", first_valloc: fn(size: usize) -> *mut c_void, as Malloc;
    PVALLOC = c"pvalloc", first_pvalloc: fn(size: usize) -> *mut c_void, as Malloc;
    USABLE = c"malloc_usable_size", first_usable: fn(block: *mut c_void) -> usize, as Usable;
    TRIM = c"malloc_trim", first_trim: fn(keep: usize) -> c_int, as Trim;
    DLOPEN = c"dlopen", first_dlopen: fn(file: *const core::ffi::c_char, mode: c_int) -> *mut c_void, as Open;
    SET_STACK = c"pthread_attr_setstack", first_set_stack: fn(attributes: *mut libc::pthread_attr_t, stack: *mut c_void, bytes: usize) -> c_int, as SetStack;
}

/// The C library's `syscall`. Until it is found this library makes the calls itself, since the search may need one.
static SYSTEM_CALL: AtomicPtr<c_void> = AtomicPtr::new(early_system_call as *mut c_void);

/// Calls the function in a slot. Relaxed: no slot depends on another one, and code needs no ordering.
macro_rules! call {
    ($slot:ident as $kind:ty, $($arg:expr),*) => {{
        // SAFETY: the slot holds a function of this type: the stub, or the one that `find_one` stored.
        let f: $kind = unsafe { core::mem::transmute($slot.load(Ordering::Relaxed)) };
        // SAFETY: the caller's promise.
        unsafe { f($($arg),*) }
    }};
}

#[inline]
pub(crate) unsafe fn malloc(size: usize) -> *mut c_void {
    call!(MALLOC as Malloc, size)
}
#[inline]
pub(crate) unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    call!(CALLOC as Calloc, count, size)
}
#[inline]
pub(crate) unsafe fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if in_early_buffer(old) {
        return copy_out_of_early_buffer(old, size);
    }
    call!(REALLOC as Realloc, old, size)
}
#[inline]
pub(crate) unsafe fn free(old: *mut c_void) {
    if !in_early_buffer(old) {
        call!(FREE as Free, old);
    }
}
pub(crate) unsafe fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    call!(ARRAY as ReallocArray, old, count, size)
}
pub(crate) unsafe fn memalign(align: usize, size: usize) -> *mut c_void {
    call!(MEMALIGN as Memalign, align, size)
}
pub(crate) unsafe fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    call!(ALIGNED as Memalign, align, size)
}
pub(crate) unsafe fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    call!(POSIX as PosixMemalign, out, align, size)
}
pub(crate) unsafe fn valloc(size: usize) -> *mut c_void {
    call!(VALLOC as Malloc, size)
}
pub(crate) unsafe fn pvalloc(size: usize) -> *mut c_void {
    call!(PVALLOC as Malloc, size)
}
pub(crate) unsafe fn usable_size(block: *mut c_void) -> usize {
    if in_early_buffer(block) {
        return early_size(block);
    }
    call!(USABLE as Usable, block)
}
pub(crate) unsafe fn trim(keep: usize) -> c_int {
    call!(TRIM as Trim, keep)
}
pub(crate) unsafe fn pthread_attr_setstack(
    attributes: *mut libc::pthread_attr_t,
    stack: *mut c_void,
    bytes: usize,
) -> c_int {
    call!(SET_STACK as SetStack, attributes, stack, bytes)
}
/// Makes a system call by the instruction of the C library, which the filter of system calls knows.
#[inline]
pub(crate) unsafe fn syscall(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> c_long {
    call!(SYSTEM_CALL as SystemCall, number, a, b, c, d, e, f)
}
/// Returns the address of the C library's `dlopen`.
pub(crate) fn dlopen_address() -> *const c_void {
    find();
    DLOPEN.load(Ordering::Relaxed)
}
pub(crate) unsafe fn dlopen(file: *const core::ffi::c_char, mode: c_int) -> *mut c_void {
    call!(DLOPEN as Open, file, mode)
}

/// State of the search for the next allocator: 0 before it, the number of the searching thread during it, [`DONE`]
/// after it.
static SEARCHER: AtomicUsize = AtomicUsize::new(0);
const DONE: usize = usize::MAX;

#[cold]
fn find() {
    let me = largesse_pages::thread_id() as usize;
    match SEARCHER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // At the first request of the process no other library has bound a thread yet.
            largesse_machine::process::remember();
            // During the search, requests of the dynamic linker go to the early buffer.
            MALLOC.store(early_malloc as *mut c_void, Ordering::Relaxed);
            CALLOC.store(early_calloc as *mut c_void, Ordering::Relaxed);
            FREE.store(early_free as *mut c_void, Ordering::Relaxed);
            find_all();
            SEARCHER.store(DONE, Ordering::Release);
        }
        Err(DONE) => {}
        // The first thread allocates before a second one exists, so this is the searching thread itself, which
        // calls a function without an early version.
        Err(_) => core::hint::spin_loop(),
    }
}

fn find_one(slot: &AtomicPtr<c_void>, name: &CStr) {
    // The first in the search order is the one that the program would use without this library. A preloaded library is
    // usually the first itself. A stub calls through a slot that may be patched, which would lead back here.
    let mut found = symbol(name);
    let behind = if object::is_stub(found) { object::behind_stub(name) } else { None };
    found = behind.unwrap_or(found);
    // A copy of this library that precedes this one calls this one: two copies must not call each other.
    let own = object::is_own(found) || object::is_another_copy(found);
    if found.is_null() || own || object::is_stub(found) {
        // SAFETY: the name is a C string.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    }
    if !found.is_null() {
        slot.store(found, Ordering::Relaxed);
    }
}

/// Returns the address of the next allocator's `malloc`.
pub(crate) fn malloc_address() -> *const c_void {
    find();
    MALLOC.load(Ordering::Relaxed)
}

/// Size of the early buffer in bytes: enough for `dlsym`, which allocates an error text at most.
const EARLY: usize = 64 << 10;

#[repr(align(64))]
struct EarlyBuffer(core::cell::UnsafeCell<[u8; EARLY]>);

// SAFETY: an atomic counter hands out each cell once.
unsafe impl Sync for EarlyBuffer {}

static BUFFER: EarlyBuffer = EarlyBuffer(core::cell::UnsafeCell::new([0; EARLY]));
static USED: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn in_early_buffer(address: *mut c_void) -> bool {
    address.addr().wrapping_sub(BUFFER.0.get().addr()) < EARLY
}

/// Stands for the C library's `syscall` until that is found.
unsafe extern "C" fn early_system_call(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // SAFETY: the caller's promise.
    unsafe { largesse_pages::system_call(number, [a, b, c, d, e, f]) as c_long }
}

/// Ignores the dynamic linker's `free` of an error text in the early buffer, whose cells are never reused.
unsafe extern "C" fn early_free(_: *mut c_void) {}

unsafe extern "C" fn early_malloc(size: usize) -> *mut c_void {
    let total = size.saturating_add(31) & !15;
    let at = USED.fetch_add(total, Ordering::Relaxed);
    if at.saturating_add(total) > EARLY {
        return null_mut();
    }
    // SAFETY: `at + total` is inside the buffer, and the counter gives this part to no other caller.
    unsafe {
        let cell = BUFFER.0.get().cast::<u8>().add(at);
        cell.cast::<usize>().write(size);
        cell.add(16).cast()
    }
}

unsafe extern "C" fn early_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as `early_malloc`; the buffer starts as zeros and no cell is used twice.
    unsafe { early_malloc(count.saturating_mul(size)) }
}

fn early_size(block: *mut c_void) -> usize {
    // SAFETY: `early_malloc` wrote the size 16 bytes before each cell.
    unsafe { block.cast::<u8>().sub(16).cast::<usize>().read() }
}

#[cold]
fn copy_out_of_early_buffer(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `malloc` has no preconditions.
    let new = unsafe { malloc(size) };
    if !new.is_null() {
        // SAFETY: the old block has `early_size` bytes, the new one `size`, and they are distinct.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), early_size(old).min(size)) };
    }
    new
}
