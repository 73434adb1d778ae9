//! Patches the function slots of the objects of a session, and of those that are opened later.
//!
//! Libraries that are opened with `RTLD_DEEPBIND` are patched in every process, since their `free` is the C library's
//! instead of ours: a block of ours that such a library frees or resizes would end the program in the C library. Blocks
//! that it allocates come from the C library.

use super::object::{self, Object, each_object, text};
use super::patch::patch;
use super::replacements::{for_all, for_r};
use crate::guard::Inside;
use crate::hooked::{Hooked, hooked, set_hooked};
use crate::{allocator, next};
use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

/// Patches every object of this process.
pub(crate) fn patch_session() {
    if patch_objects(|_| true) > 0 {
        set_hooked(Hooked::Patched);
    }
}

/// Patches the loaded objects that `wanted` accepts. Returns how many slots of R's own allocation calls point to us.
fn patch_objects(wanted: impl Fn(&Object<'_>) -> bool) -> usize {
    let of_dlopen = |name: &[u8]| (name == b"dlopen").then_some(dlopen as *const () as usize);
    let replacement = |name: &[u8], is_r: bool| {
        for_all(name).or_else(|| of_dlopen(name)).or_else(|| if is_r { for_r(name) } else { None })
    };
    patch(wanted, replacement)
}

/// Implements `dlopen(3)`.
///
/// Jumps to the function that [`choose`] returns instead of calling it: the C library takes the object with the return
/// address for the caller, and searches that object's RUNPATH.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "mov rdx, [rsp]",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {choose}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        choose = sym choose,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "mov x2, x30",
        "stp x29, x30, [sp, #-32]!",
        "stp x0, x1, [sp, #16]",
        "bl {choose}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "br x16",
        choose = sym choose,
    );
}

/// Returns the function that opens `file` for the code at `caller`.
extern "C" fn choose(file: *const c_char, mode: c_int, caller: *const c_void) -> *const c_void {
    let _inside = Inside::enter();
    if hooked() == Hooked::Patched as u32 {
        return dlopen_and_patch as *const c_void;
    }
    // In a program with another allocator no blocks are ours, and the slots of such a library are right.
    let deep = mode & libc::RTLD_DEEPBIND != 0 && allocator::other().is_none();
    if deep && is_the_same_from_here(text(file), caller) {
        return dlopen_deep as *const c_void;
    }
    next::dlopen_address()
}

/// Returns whether a name means the same file in a call from this library as in one from `caller`.
fn is_the_same_from_here(file: &[u8], caller: *const c_void) -> bool {
    let is_path = file.contains(&b'/');
    !file.contains(&b'$') && (is_path || !object::has_search_path(caller))
}

/// Opens a library in a patched session, and patches the objects loaded with it before the caller can use them.
///
/// The C library takes us for the caller, so that it does not search the caller's own RUNPATH for a name without a
/// slash. R and Python pass paths.
///
/// # Safety
/// The requirements are those of `dlopen(3)`.
unsafe extern "C" fn dlopen_and_patch(file: *const c_char, mode: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    let handle = unsafe { next::dlopen(file, mode) };
    if !handle.is_null() {
        let _inside = Inside::enter();
        patch_objects(|_| true);
    }
    handle
}

/// Opens a library, and patches the objects loaded with it.
unsafe extern "C" fn dlopen_deep(file: *const c_char, mode: c_int) -> *mut c_void {
    let before = {
        let _inside = Inside::enter();
        let mut before = Vec::new();
        each_object(|object| before.push(object.base()));
        before
    };
    // SAFETY: the caller's promise.
    let handle = unsafe { next::dlopen(file, mode) };
    let patched = !handle.is_null() && frees_to_c_library(handle);
    let _inside = Inside::enter();
    if patched {
        patch_objects(|object| !before.contains(&object.base()));
    }
    drop(before);
    handle
}

/// Returns whether a library opened with `RTLD_DEEPBIND`, and the objects loaded with it, call the C library's `free`.
/// Otherwise one of them defines an allocator, whose blocks they must keep freeing with it, so that their slots are not
/// patched.
fn frees_to_c_library(handle: *mut c_void) -> bool {
    // SAFETY: an open handle, and a C string.
    let free = unsafe { libc::dlsym(handle, c"free".as_ptr()) };
    if free.is_null() {
        // Clears the error, which the program did not cause and must not see.
        // SAFETY: no preconditions.
        unsafe { libc::dlerror() };
    }
    object::is_c_library(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_origin_depends_on_the_caller() {
        let here = is_the_same_from_here as *const c_void;
        for (file, want) in [
            ("/usr/lib/libm.so.6", true),
            ("./plugin.so", true),
            ("$ORIGIN/plugin.so", false),
            ("libm.so.6", true),
        ] {
            assert_eq!(is_the_same_from_here(file.as_bytes(), here), want, "{file}");
        }
    }
}
