//! Overwrites function slots of loaded objects.

use super::object::{FunctionSlot, Object, RAllocator, each_object};
use crate::ranges::calls;
use crate::{exports, mapping};
use core::sync::atomic::{AtomicUsize, Ordering};
use largesse_report::Cause;

/// Returns our replacement for a function with which R itself allocates blocks.
fn for_r(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"malloc" => exports::malloc as *const () as usize,
        b"calloc" => exports::calloc as *const () as usize,
        _ => return None,
    })
}

/// Returns our replacement for a function that handles blocks, maps memory or loads objects, in any object.
fn for_all(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"free" => exports::free as *const () as usize,
        b"realloc" => exports::realloc as *const () as usize,
        b"reallocarray" => exports::reallocarray as *const () as usize,
        b"malloc_usable_size" => exports::malloc_usable_size as *const () as usize,
        b"mmap" => mapping::mmap as *const () as usize,
        b"mmap64" => mapping::mmap64 as *const () as usize,
        b"munmap" => calls::munmap as *const () as usize,
        b"mremap" => calls::mremap as *const () as usize,
        b"madvise" => calls::madvise as *const () as usize,
        b"mlock" => calls::mlock as *const () as usize,
        b"mlock2" => calls::mlock2 as *const () as usize,
        b"mlockall" => calls::mlockall as *const () as usize,
        b"dlopen" => super::deepbind::dlopen as *const () as usize,
        _ => return None,
    })
}

/// Patches the loaded objects that `wanted` accepts; patching twice changes nothing. Returns how many slots of R's own
/// allocation calls point to us.
pub(super) fn patch(wanted: impl Fn(&Object<'_>) -> bool) -> usize {
    let (mut of_r, allocator) = (0, RAllocator::find());
    each_object(|object| {
        if !object.may_be_patched() || !wanted(object) {
            return;
        }
        let is_r = object.is_r(allocator);
        object.each_slot(|slot| {
            let wanted = for_all(slot.name).or_else(|| if is_r { for_r(slot.name) } else { None });
            let Some(target) = wanted else { return };
            if !point(object, &slot, target) {
                crate::serve::note(Cause::SlotNotPatched);
            } else if slot.name == b"malloc" {
                of_r += 1;
            }
        });
    });
    of_r
}

/// Makes a slot point to `target`. Returns `false` if the page cannot be made writable.
fn point(object: &Object<'_>, slot: &FunctionSlot, target: usize) -> bool {
    let cell = core::ptr::with_exposed_provenance_mut::<usize>(slot.address);
    // SAFETY: a relocation of a loaded object names a word of its data, aligned and readable.
    let cell = unsafe { AtomicUsize::from_ptr(cell) };
    // Relaxed: other threads call the old or the new function, and both are right for every block that exists.
    if cell.load(Ordering::Relaxed) == target {
        return true;
    }
    let protected = object.relro().contains(&slot.address);
    // SAFETY: the word belongs to the object's data.
    if protected && unsafe { largesse_pages::writable(slot.address, size_of::<usize>(), true) }.is_err() {
        return false;
    }
    cell.store(target, Ordering::Relaxed);
    if protected {
        // SAFETY: as above. If this fails the page stays writable, which is harmless.
        let _ = unsafe { largesse_pages::writable(slot.address, size_of::<usize>(), false) };
    }
    true
}
