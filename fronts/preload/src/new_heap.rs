//! Makes a heap: reserves its range, and asks the kernel for the pages that the settings name.

use crate::backing::HeapBacking;
use crate::causes::note;
use crate::dense_spans::FIRST_SPANS;
use crate::heap::LargeHeap;
use crate::leak::leak;
use crate::limited::LimitedMemory;
use crate::message::refuse_to_start;
use crate::options::Options;
use crate::rlimit::soft_limit;
use crate::settings::options;
use crate::slots::r::header;
use crate::{far, late_filter, limit, near_statics, shortage, spill};
use largesse_arena::{NearMemory, Retention};
use largesse_malloc::{LargeBlockHeap, LargeHeapSettings};
use largesse_pages::{MapError, Offer, PageKind, Placement, Reserved, SPAN, Thp};
use largesse_paging::FarConfig;
use largesse_report::{Cause, PageChoice};

const GIB: usize = 1 << 30;
/// Number of bytes below `RLIMIT_DATA` that are left to the tables, stacks and buffers of far memory.
const FAR_DATA: usize = 64 << 20;

type Made = (&'static HeapBacking, &'static LargeHeap);

/// Reserves the range and makes the heap on it; counts the causes for which the kernel grants less than the settings
/// ask for.
pub(crate) fn make() -> Option<Made> {
    let options = options();
    if options.limit.is_some() {
        return make_limited(options);
    }
    match &options.far {
        None => {
            let backing = if may_become_far(options) {
                HeapBacking::Limited(limited(options)?)
            } else {
                near_backing(options)?
            };
            make_on(backing, Retention::default()).inspect(|(_, heap)| _ = limit::first(heap))
        }
        Some(config) => match make_far(config, options.static_data) {
            Ok(made) => Some(made),
            Err(why) => refuse_to_start(&format!("no far memory: {}", shortage::with_limits(why))),
        },
    }
}

/// Makes the heap on near memory that becomes far when the limit of the settings comes near.
fn make_limited(options: &Options) -> Option<Made> {
    let refuse = |why| -> ! {
        refuse_to_start(&format!("the program cannot be kept below --limit: {}", shortage::with_limits(why)))
    };
    let segments = if options.static_data { near_statics::begin() } else { Vec::new() };
    let calls = spill::begin().unwrap_or_else(|why| refuse(why));
    let memory = limited(options)?;
    memory.keep_free_memory();
    let made = make_on(HeapBacking::Limited(memory), Retention::default());
    made.inspect(|(backing, heap)| {
        heap.start_on_small_pages(FIRST_SPANS);
        let limit = limit::first(heap);
        if let Some(memory) = backing.limited() {
            late_filter::want(calls, memory, &segments, limit).unwrap_or_else(|why| refuse(why));
        }
    })
}

/// Returns whether memory with these settings can become far in place, should the program set a limit.
fn may_become_far(options: &Options) -> bool {
    let pool = matches!(options.pages, PageChoice::Hugetlb | PageChoice::Hugetlb1G | PageChoice::Medium);
    !pool && !options.lock && options.placement == Placement::FirstTouch
}

fn limited(options: &Options) -> Option<LimitedMemory> {
    let range = leak(reserve(SPAN, near_limit())?)?;
    Some(LimitedMemory::new(range, page_kind(options.pages)))
}

/// Makes the heap on far memory, and with `static_data` makes the static arrays of the program and its libraries far,
/// too. The error is a message for the user.
pub(crate) fn make_far(config: &FarConfig, static_data: bool) -> Result<Made, String> {
    // The two ranges share the bytes of a limit on data that the pager does not need.
    let data = soft_limit(libc::RLIMIT_DATA).saturating_sub(FAR_DATA) / 2;
    let most = (soft_limit(libc::RLIMIT_AS) / 4).min(data);
    let range = || reserve(SPAN, most).ok_or("no address space");
    let far = far::make(range()?, range()?, config, static_data)?;
    // Free memory should not occupy the store.
    let made = make_on(HeapBacking::Far(far), Retention { share: 0, floor: 0 });
    made.ok_or_else(|| "no address space for its tables".into())
}

fn make_on(backing: HeapBacking, retention: Retention) -> Option<Made> {
    let backing = leak(backing)?;
    let settings = LargeHeapSettings { header: header(), data: options().data, retention };
    let heap = leak(LargeBlockHeap::new(backing, settings)?)?;
    Some((backing, heap))
}

fn near_backing(options: &Options) -> Option<HeapBacking> {
    let kind = page_kind(options.pages);
    let align = if kind == PageKind::Hugetlb1G { GIB } else { SPAN };
    Some(HeapBacking::Near(NearMemory::new(
        reserve(align, near_limit())?,
        kind,
        options.placement,
        options.lock,
    )))
}

/// Returns the largest size in bytes of a range of near memory. Blocks cannot exceed the limit on data, and the tables
/// of a larger range would use that limit up.
fn near_limit() -> usize {
    (soft_limit(libc::RLIMIT_AS) / 2).min(soft_limit(libc::RLIMIT_DATA))
}

/// Reserves address space for four times the memory of the machine, at most `limit` bytes.
fn reserve(align: usize, limit: usize) -> Option<Reserved> {
    let wanted = largesse_pages::physical_memory().max(GIB).next_power_of_two().saturating_mul(4);
    let mut len = wanted.min(limit) / GIB.max(align) * GIB;
    while len >= 64 * SPAN {
        match Reserved::new(len, align) {
            Ok(range) => return Some(range),
            Err(MapError { .. }) => len = len / 2 / align * align,
        }
    }
    // The limit is below 1 GiB: reserve all of it, in whole spans.
    let len = limit / align * align;
    (len > 0 && len < GIB).then(|| Reserved::new(len, align).ok()).flatten()
}

/// Returns the kind of page to request for the setting `pages`, and counts the cause if the kernel does not offer it.
fn page_kind(pages: PageChoice) -> PageKind {
    match pages {
        PageChoice::Small => return PageKind::Small,
        PageChoice::Hugetlb => return PageKind::Hugetlb,
        PageChoice::Hugetlb1G => return PageKind::Hugetlb1G,
        PageChoice::Auto | PageChoice::Thp | PageChoice::Medium => {}
    }
    if largesse_pages::thp_disabled_for_process() {
        note(Cause::ThpDisabledForProcess);
    }
    let large = largesse_pages::large_pages();
    if pages != PageChoice::Medium {
        if largesse_pages::thp_mode() == Thp::Absent {
            note(Cause::ThpRefused);
        } else if large == Offer::Refused {
            note(Cause::ThpNever);
        }
        return PageKind::Thp;
    }
    if largesse_pages::medium_pages() == Offer::Refused {
        note(Cause::Pages64kNotOffered);
        return PageKind::Small;
    }
    if large == Offer::Given {
        note(Cause::Pages64kOvertaken);
    }
    PageKind::Medium
}
