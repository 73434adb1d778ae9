//! Implements the control calls of `include/largesse.h`.

use crate::guard::Inside;
use crate::handed_out::{REFUSED, Structure, fill, fill_all};
use crate::heap::heap;
use crate::hooked::{Hooked, hooked, way_in};
use crate::routing::ROUTING;
use crate::settings::options;
use crate::slots::r::{header, r_is_loaded};
use crate::slots::{dlopen, eligibility};
use crate::status::{BAD_ARGUMENT, NOT_SUPPORTED, OK};
use crate::{causes, far_counters, serve};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null;
use largesse_pager::Count;
use largesse_pages::residency::{Answer, Inspector};
use largesse_report::{BlockRecord, CAUSES, Cause};

/// Number of the binary interface, as `LARGESSE_ABI` of the header; `build.rs` gives it to the library's name.
const ABI: u32 = 2;
/// Number of additions since [`ABI`] changed.
const MINOR: u32 = 1;

/// Mirrors `largesse_stats_t` of `largesse.h` field by field.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Stats {
    struct_size: usize,
    enabled: u32,
    hooked: u32,
    pages: u32,
    header: u32,
    min_bytes: u64,
    max_bytes: u64,
    large_page_bytes: u64,
    blocks: u64,
    live_bytes: u64,
    peak_bytes: u64,
    allocations: u64,
    frees: u64,
    reused: u64,
    retained_bytes: u64,
    returned_bytes: u64,
    populated_bytes: u64,
    fresh_bytes: u64,
    clear_skipped_bytes: u64,
    resized_in_place: u64,
    moved_by_mremap: u64,
    advised_mappings: u64,
    advised_bytes: u64,
    far: [u64; FAR.len()],
}

/// Lists the counters behind the fields `far_…` of `largesse_stats_t`, in their order.
const FAR: [Count; 14] = [
    Count::LocalBytes,
    Count::ResidentBytes,
    Count::StoredBytes,
    Count::MappedBytes,
    Count::SetBytes,
    Count::Faults,
    Count::Fills,
    Count::Prefetched,
    Count::PrefetchHits,
    Count::Evictions,
    Count::WriteBacks,
    Count::BytesIn,
    Count::BytesOut,
    Count::WaitNs,
];

// SAFETY: it is `repr(C)`, and its first field is its size.
unsafe impl Structure for Stats {
    // Bytes in interface 2.0: a later field does not change what older callers may ask for.
    const FIRST: usize = 280;
}

/// Mirrors `largesse_block_t` of `largesse.h` field by field.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BlockInfo {
    struct_size: usize,
    address: u64,
    size: u64,
    large_bytes: u64,
    kind: u32,
    node: i32,
    exact: u32,
    rest_kind: u32,
    rest_bytes: u64,
}

// SAFETY: it is `repr(C)`, and its first field is its size.
unsafe impl Structure for BlockInfo {
    // Bytes in interface 2.0, which had no `rest_kind` and `rest_bytes`.
    const FIRST: usize = 48;
}

/// Returns the version of the interface, `major << 16 | minor`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_version() -> u32 {
    ABI << 16 | MINOR
}

/// Collects the settings and counters of this process.
pub(crate) fn stats() -> Stats {
    let _inside = Inside::enter();
    let (min, max, enabled) = ROUTING.limits();
    let counters = heap().map(|heap| heap.with_report(|report| report.counters)).unwrap_or_default();
    Stats {
        struct_size: size_of::<Stats>(),
        enabled: u32::from(enabled),
        hooked: hooked(),
        pages: options().pages as u32,
        header: header() as u32,
        min_bytes: min as u64,
        max_bytes: max as u64,
        large_page_bytes: largesse_pages::large_page().unwrap_or(0) as u64,
        blocks: counters.allocations - counters.frees,
        live_bytes: counters.live_bytes,
        peak_bytes: counters.peak_bytes,
        allocations: counters.allocations,
        frees: counters.frees,
        reused: counters.reused,
        retained_bytes: counters.retained_bytes,
        returned_bytes: counters.returned_bytes,
        populated_bytes: counters.populated_bytes,
        fresh_bytes: counters.fresh_bytes,
        clear_skipped_bytes: counters.clear_skipped_bytes,
        resized_in_place: counters.resized_in_place,
        moved_by_mremap: counters.moved_by_mremap,
        advised_mappings: counters.advised_mappings,
        advised_bytes: counters.advised_bytes,
        far: far_counters::all().map_or([0; FAR.len()], |words| FAR.map(|count| words.get(count))),
    }
}

/// Writes [`stats`] to the caller's structure, up to its `struct_size`.
///
/// # Safety
/// `out` must be null, or point to `struct_size` writable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_stats(out: *mut Stats) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { fill(out, stats()) }
}

/// Writes the counts of the first `capacity` causes to `counts`, and returns the number of causes.
///
/// # Safety
/// `counts` must point to `capacity` writable numbers, or `capacity` be 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_not_granted(counts: *mut u64, capacity: usize) -> usize {
    let now = causes::not_granted();
    if !counts.is_null() {
        // SAFETY: `counts` has room for `capacity` numbers, by the caller's promise, and `now` has `CAUSES`.
        unsafe { counts.copy_from_nonoverlapping(now.as_ptr(), capacity.min(CAUSES)) };
    }
    CAUSES
}

/// Writes descriptions of at most `capacity` live blocks to `out`, ordered by address, and returns the number of live
/// blocks.
///
/// # Safety
/// `out` must point to `capacity` structures of `out[0].struct_size` bytes each, or `capacity` be 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_blocks(out: *mut BlockInfo, capacity: usize) -> usize {
    let _inside = Inside::enter();
    let mut count = 0;
    let mut records: Vec<BlockRecord> = Vec::with_capacity(capacity.min(1 << 20));
    if let Some(heap) = heap() {
        heap.each_block(|record| {
            count += 1;
            if records.len() < records.capacity() {
                records.push(record); // within the capacity: no allocation under the heap's lock
            }
        });
    }
    records.truncate(capacity);
    records.sort_unstable_by_key(|record| record.address);
    let inspector = Inspector::open(None).ok();
    let described = records.iter().map(|record| describe(record, inspector.as_ref()));
    // SAFETY: the caller's promise.
    if unsafe { fill_all(out, capacity, described) } { count } else { REFUSED }
}

/// Writes to `out` on which pages the `bytes` bytes from `address` on are. They need not be a block of the heap.
///
/// # Safety
/// `out` must be NULL, or point to `struct_size` writable bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_inspect(
    address: *const c_void,
    bytes: usize,
    out: *mut BlockInfo,
) -> c_int {
    let _inside = Inside::enter();
    let (address, size) = (address.addr() as u64, bytes as u64);
    let mut memory = BlockRecord { address, size, ..BlockRecord::default() };
    if let Some(heap) = heap() {
        heap.each_block(|block| {
            if (block.address..block.address + block.size.max(1)).contains(&address) {
                memory = block.cut(address, size);
            }
        });
    }
    // SAFETY: the caller's promise.
    unsafe { fill(out, describe(&memory, Inspector::open(None).ok().as_ref())) }
}

fn describe(record: &BlockRecord, inspector: Option<&Inspector>) -> BlockInfo {
    let answer = inspector.map(|inspector| inspector.ask(record.address, record.size));
    let (large, node, exact) = match answer {
        Some(Answer::Exact(seen)) => (seen.large, seen.node, 1),
        _ => (0, None, 0),
    };
    let rest = record.parts().1;
    BlockInfo {
        struct_size: size_of::<BlockInfo>(),
        address: record.address,
        size: record.size,
        large_bytes: large,
        kind: record.kind,
        node: node.and_then(|node| i32::try_from(node).ok()).unwrap_or(-1),
        exact,
        rest_kind: rest.map_or(0, |part| part.kind),
        rest_bytes: rest.map_or(0, |part| part.size),
    }
}

/// Starts (`on` is not 0) or stops serving new blocks. Starting patches an R session whose calls do not reach the
/// library yet.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_enable(on: c_int) -> c_int {
    let _inside = Inside::enter();
    if on != 0 {
        if eligibility::why_not().is_some() {
            return NOT_SUPPORTED;
        }
        // R's own calls do not reach the library by the functions that it gave to NumPy in the same process.
        if hooked() == Hooked::No as u32 || hooked() == Hooked::Functions as u32 && r_is_loaded() {
            dlopen::patch_session();
        }
        if hooked() == Hooked::No as u32 {
            return NOT_SUPPORTED;
        }
    }
    ROUTING.enable(on != 0);
    publish_limits();
    OK
}

/// Changes the bounds, in bytes, between which requests are served from the heap.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_set_limits(min_bytes: u64, max_bytes: u64) -> c_int {
    let (Ok(min), Ok(max)) = (usize::try_from(min_bytes), usize::try_from(max_bytes)) else {
        return BAD_ARGUMENT;
    };
    if ROUTING.set(min, max).is_err() {
        return BAD_ARGUMENT;
    }
    publish_limits();
    OK
}

fn publish_limits() {
    let _inside = Inside::enter();
    let (min, max, enabled) = ROUTING.limits();
    if let Some(heap) = heap() {
        heap.edit_report(|report| {
            report.min_bytes = min as u64;
            report.max_bytes = max as u64;
            report.enabled = u32::from(enabled);
            report.patched = way_in();
        });
    }
}

/// Returns free memory beyond `keep` bytes to the kernel, and returns the number of bytes returned.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_trim(keep: usize) -> usize {
    serve::trim(keep)
}

/// Returns the reason why this process cannot be served; NULL if it can.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_why_not() -> *const c_char {
    let _inside = Inside::enter();
    eligibility::why_not().map_or(null(), |text| text.as_ptr())
}

/// Returns the name of a cause; NULL for an unknown number.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_cause_name(cause: u32) -> *const c_char {
    Cause::ALL.get(cause as usize).map_or(null(), |cause| cause.name().as_ptr())
}

/// Returns the advice for a cause; NULL for an unknown number.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_cause_advice(cause: u32) -> *const c_char {
    Cause::ALL.get(cause as usize).map_or(null(), |cause| cause.advice().as_ptr())
}

/// Calls the exported `malloc` from the library's own code. A test checks that this aborts the process.
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_debug_recurse() {
    let _inside = Inside::enter();
    // SAFETY: `malloc` has no preconditions; the guard aborts.
    core::hint::black_box(unsafe { crate::exports::malloc(core::hint::black_box(1 << 20)) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_the_same_abi() {
        let line = format!("#define LARGESSE_ABI {ABI}\n");
        assert!(include_str!("../include/largesse.h").contains(&line), "largesse.h lacks {line}");
        assert_eq!(largesse_version() >> 16, ABI);
    }

    #[test]
    fn not_granted_writes_within_its_capacity() {
        let mut counts = [u64::MAX; CAUSES + 1];
        for capacity in [0, 1, CAUSES, CAUSES + 1] {
            // SAFETY: the array has room for `capacity` numbers.
            assert_eq!(unsafe { largesse_not_granted(counts.as_mut_ptr(), capacity) }, CAUSES);
            let untouched = counts.iter().filter(|count| **count == u64::MAX).count();
            assert_eq!(untouched, counts.len() - capacity.min(CAUSES), "capacity {capacity}");
        }
        // SAFETY: nothing is written without an array.
        assert_eq!(unsafe { largesse_not_granted(core::ptr::null_mut(), 0) }, CAUSES);
    }
}
