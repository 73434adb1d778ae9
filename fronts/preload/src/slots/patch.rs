//! Overwrites function slots of loaded objects.

use super::object::{FunctionSlot, Object, each_object};
use super::r::RAllocator;
use crate::causes::note;
use core::sync::atomic::{AtomicUsize, Ordering};
use largesse_report::Cause;

/// Patches the loaded objects that `wanted` accepts; patching twice changes nothing. `replacement` returns the address
/// of our function for a name, in R's own object if its second argument is `true`. Returns how many slots of R's own
/// allocation calls point to us.
pub(super) fn patch(
    wanted: impl Fn(&Object<'_>) -> bool,
    replacement: impl Fn(&[u8], bool) -> Option<usize>,
) -> usize {
    let (mut of_r, allocator) = (0, RAllocator::find());
    each_object(|object| {
        if !object.may_be_patched() || !wanted(object) {
            return;
        }
        let is_r = allocator.is_in(object);
        object.each_slot(|slot| {
            let Some(target) = replacement(slot.name, is_r) else { return };
            if !point(object, &slot, target) {
                note(Cause::SlotNotPatched);
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
