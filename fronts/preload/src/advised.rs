//! The mappings of the program that get large pages, and whether they fit into the limit on its memory.

use crate::guard::Inside;
use crate::heap::{self, LargeHeap};
use crate::make::heap_or_make;
use crate::{causes, near_mappings};
use core::ffi::c_void;
use core::ops::Range;
use largesse_pages::{PageKind, SPAN};
use largesse_report::{Cause, MAX_ADVISED};

/// Smallest size in bytes of mappings that get large pages: in smaller ones none fits.
pub(crate) const SMALLEST: usize = SPAN;

/// Gives large pages to a new mapping, if the program stays below the limit on its memory with it.
pub(crate) fn advise(at: *mut c_void, len: usize) {
    if !has_room_for(len) {
        return;
    }
    if largesse_pages::advise_mapping(at, len, PageKind::Thp).is_err() {
        causes::note(Cause::ThpRefused);
        return;
    }
    record(at.addr(), len);
}

/// Returns the heap, or `None` in a signal handler that interrupted it. Mappings of the handler get large pages without
/// a check of the limit, and without a record.
fn free_heap() -> Option<&'static LargeHeap> {
    heap_or_make().filter(|heap| !heap.is_interrupted())
}

/// Returns whether a new mapping of `len` bytes may get large pages; otherwise counts the cause.
pub(crate) fn has_room_for(len: usize) -> bool {
    let _inside = Inside::enter_heap();
    let fits = free_heap().is_none_or(|heap| has_room(heap, len));
    if !fits {
        causes::note(Cause::NearLimit);
    }
    fits
}

/// Notes a mapping that gets large pages.
pub(crate) fn record(at: usize, len: usize) {
    let _inside = Inside::enter_heap();
    let Some(heap) = free_heap() else { return };
    heap.edit_report(|report| {
        let slot = report.counters.advised_mappings as usize % MAX_ADVISED;
        report.advised[slot] = [at as u64, len as u64];
        report.counters.advised_mappings += 1;
        report.counters.advised_bytes += len as u64;
    });
}

/// Updates the record of a mapping that `mremap` moved or resized. Takes the advice back if the mapping has grown, and
/// the program could exceed the limit on its memory with it.
pub(crate) fn moved(from: &Range<usize>, to: &Range<usize>) {
    if from.len().max(to.len()) < SMALLEST {
        return;
    }
    let _inside = Inside::enter_heap();
    let Some(heap) = heap::heap().filter(|heap| !heap.is_interrupted()) else { return };
    let mut is_recorded = false;
    heap.edit_report(|report| {
        let is_it = |&&mut [at, len]: &&mut [u64; 2]| at == from.start as u64 && len <= from.len() as u64;
        if let Some(slot) = report.advised.iter_mut().find(is_it) {
            *slot = [to.start as u64, to.len() as u64];
            is_recorded = true;
        }
    });
    if !is_recorded || to.len() <= from.len() || has_room(heap, 0) {
        return;
    }
    causes::note(Cause::NearLimit);
    // For the whole mapping: `mremap` refuses one whose parts have different advice.
    let start = core::ptr::with_exposed_provenance_mut(to.start);
    if largesse_pages::advise_mapping(start, to.len(), PageKind::Small).is_ok() {
        heap.edit_report(|report| {
            report
                .advised
                .iter_mut()
                .filter(|slot| slot[0] == to.start as u64)
                .for_each(|slot| *slot = [0, 0]);
        });
    }
}

/// Returns whether the program stays below the limit on its memory even if it touches all `len` bytes of a new mapping,
/// the last [`MAX_ADVISED`] advised mappings that are still mapped and near, and all of the heap.
fn has_room(heap: &LargeHeap, len: usize) -> bool {
    let room = heap.room() as u64;
    let mut fits = false;
    heap.edit_report(|report| {
        let fits_now = |advised: &[[u64; 2]]| {
            advised.iter().fold(len as u64, |sum, [_, len]| sum.saturating_add(*len)) <= room
        };
        if !fits_now(&report.advised) {
            let is_mapped = |at: usize| {
                largesse_pages::is_mapped(core::ptr::without_provenance_mut(at))
                    && !near_mappings::has_no_near(at)
            };
            let is_gone = |[at, _]: &&mut [u64; 2]| *at != 0 && !is_mapped(*at as usize);
            report.advised.iter_mut().filter(is_gone).for_each(|slot| *slot = [0, 0]);
        }
        fits = fits_now(&report.advised);
    });
    fits
}
