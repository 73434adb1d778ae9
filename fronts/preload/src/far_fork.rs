//! Far memory across `fork`: the pager is at rest meanwhile, and a child has its own.
//!
//! What a child finds missing before it has its own pager would read as zeros. So nothing of the
//! program may run between: `fork.rs` blocks signals, and our handlers are the last before the fork and
//! the first after it. The C library runs handlers in an order that follows their registration, so
//! the name by which every library registers them is ours: whoever comes first, we were before.

use crate::{far, io, serve, start};
use core::ffi::{c_int, c_void};
use largesse_pager::{HeldPager, Mappings};
use largesse_store::PageStore;
use std::sync::MutexGuard;

type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// What `pthread_atfork` calls.
///
/// # Safety
/// As `pthread_atfork`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __register_atfork(
    before: Handler,
    in_parent: Handler,
    in_child: Handler,
    object: *mut c_void,
) -> c_int {
    crate::fork::watch();
    // SAFETY: the caller's promise, handed on.
    unsafe { register(before, in_parent, in_child, object) }
}

/// The C library's own.
///
/// # Safety
/// The handlers live as long as `object`, or for good without one.
pub(crate) unsafe fn register(
    before: Handler,
    in_parent: Handler,
    in_child: Handler,
    object: *mut c_void,
) -> c_int {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__register_atfork".as_ptr()) };
    if found.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: the C library's function has this type since it exists.
    let register: Register = unsafe { core::mem::transmute(found) };
    // SAFETY: the caller's promise.
    unsafe { register(before, in_parent, in_child, object) }
}

/// Far memory at rest while the process forks.
pub(crate) struct Resting {
    held: HeldPager<'static, Box<dyn PageStore>>,
    mappings: MutexGuard<'static, Mappings>,
}

/// Before `fork`, with the heap kept: nobody asks for far memory. `None` without far memory.
pub(crate) fn before() -> Option<Resting> {
    let far = serve::far()?;
    let on_stack = 0_u8;
    let here = (&raw const on_stack).addr();
    if [here, largesse_pages::thread_handle()].iter().any(|&at| far.pager().kernel().page_at(at).is_some()) {
        // The child would stand on pages that may be missing, before it could make its own pager.
        give_up("the stack of the thread that forks is far memory");
    }
    let mappings = far.mappings();
    Some(Resting { held: far.pager().hold(), mappings })
}

/// After it, in the parent, with the heap still kept.
pub(crate) fn in_parent(resting: Option<Resting>) {
    if let Some(Resting { held, mappings }) = resting {
        held.in_parent();
        drop(mappings);
    }
}

/// In the child.
pub(crate) fn in_child(resting: Option<Resting>) {
    let Some(far) = serve::far() else { return };
    let Some(Resting { held, mappings }) = resting else { return not_held() };
    // SAFETY: the child has one thread, and its program does not run yet.
    if let Err(trouble) = unsafe { held.in_child() } {
        give_up(&trouble.to_string());
    }
    io::in_this_process();
    if let Err(error) = far::start_threads(far.pager()) {
        give_up(&format!("its threads could not be started: {error}"));
    }
    drop(mappings);
}

/// In a child whose fork found no heap: if one was made meanwhile, its pages are out of reach.
pub(crate) fn not_held() {
    if serve::far().is_some() {
        give_up("it was made at the same moment");
    }
}

/// Never zeros: whoever cannot have its pages does not go on.
fn give_up(why: &str) -> ! {
    start::warn(&format!("far memory cannot follow this fork: {why}"));
    // SAFETY: no preconditions; handlers of the program could touch memory that is not there.
    unsafe { libc::_exit(far::LOST) }
}
