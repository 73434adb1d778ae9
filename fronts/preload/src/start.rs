//! Starts the library in a process: reads the settings, asks the kernel for its page sizes and reserves the heap's
//! range.

use crate::backing::HeapBacking;
use crate::far_config::FarConfig;
use crate::options::Options;
use crate::serve::{self, LargeHeap, ROUTING};
use crate::signals::Blocked;
use crate::slots::object;
use crate::{
    allocator, coverage, far, fork, helper, last_thread, limit, record, report, shortage, slots, timeline,
};
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicU32, Ordering};
use largesse_arena::{NearMemory, Retention};
use largesse_malloc::{LargeBlockHeap, LargeHeapSettings};
use largesse_pages::{MapError, Offer, PageKind, Placement, Reserved, SPAN, Thp};
use largesse_report::{Cause, MEMFD_NAME, PageChoice, Signpost};
use largesse_settings::Unknown;
use std::ffi::CString;
use std::sync::OnceLock;

/// An R vector has this many bytes before its data (R 3.5 and later).
pub(crate) const R_HEADER: usize = 48;
/// The launcher exits with this status for its own failures, as `env` and `timeout` do.
pub(crate) const OWN_FAILURE: c_int = 125;
const GIB: usize = 1 << 30;
/// This library has this file name.
const NAME: &str = "liblargesse.so";
/// This many bytes of a limit on data remain for the tables, stacks and buffers of far memory.
const FAR_DATA: usize = 64 << 20;

static OPTIONS: OnceLock<Options> = OnceLock::new();
static BAD_SETTING: OnceLock<CString> = OnceLock::new();

/// Tells how the program's calls reach the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Hooked {
    /// No call reaches it.
    No = 0,
    /// The dynamic linker finds the library first.
    Preloaded = 1,
    /// The slots of an R session were patched.
    Patched = 2,
}

static HOOKED: AtomicU32 = AtomicU32::new(Hooked::No as u32);

pub(crate) fn hooked() -> u32 {
    HOOKED.load(Ordering::Acquire)
}

pub(crate) fn set_hooked(how: Hooked) {
    HOOKED.store(how as u32, Ordering::Release);
}

/// Returns the settings of this process, which the first call reads.
pub(crate) fn options() -> &'static Options {
    OPTIONS.get_or_init(|| match Options::parse(&environment) {
        Ok(options) => options,
        Err(error) if object::is_preloaded() => refuse_to_start(&error.to_string()),
        Err(error) => {
            // A session that loaded the library holds data and must not be ended for a setting.
            let _ = BAD_SETTING.set(CString::new(error.to_string()).unwrap_or_default());
            Options::default()
        }
    })
}

/// Returns the message on a wrong setting, in a session that loaded the library late.
pub(crate) fn bad_setting() -> Option<&'static CStr> {
    options();
    BAD_SETTING.get().map(CString::as_c_str)
}

#[expect(clippy::disallowed_methods, reason = "the one place where this front reads settings")]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Prints a line for each variable that has no effect, unless the parent process has the library and prints it. For
/// programs that it starts, the launcher prints them.
fn remark_on_settings() {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let mut remarks = Vec::new();
    for (name, value) in variables {
        remarks.extend(Unknown::of(&name, &value).map(|unknown| unknown.to_string()));
        if name == "OMP_NUM_THREADS" && !value.is_empty() {
            remarks.extend(largesse_settings::threads(&value).err().map(|wrong| wrong.to_string()));
        }
    }
    if !remarks.is_empty() && !parent_has_library() {
        remarks.iter().for_each(|remark| warn(remark));
    }
}

/// Returns whether the parent process has this library; `false` if its mappings cannot be read.
fn parent_has_library() -> bool {
    let maps = format!("/proc/{}/maps", std::os::unix::process::parent_id());
    std::fs::read(maps).is_ok_and(|maps| maps.windows(NAME.len()).any(|part| part == NAME.as_bytes()))
}

/// Makes the dynamic linker call [`start`] when it has loaded the library, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Makes `exit` call [`finish`].
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = finish;

extern "C" fn start(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    let _blocked = Blocked::handlers();
    let options = options();
    if ROUTING.set(options.min, options.max).is_err() {
        refuse_to_start("LARGESSE_MIN_KB must be at least 64 and not above LARGESSE_MAX_KB");
    }
    fork::watch();
    last_thread::hold();
    if object::is_preloaded() {
        set_hooked(Hooked::Preloaded);
        let ours = options.children || options.pid.is_none_or(|pid| pid == std::process::id());
        match allocator::other() {
            _ if !ours || slots::watched().is_some() => {}
            None => ROUTING.enable(true),
            Some(other) => leave_blocks_to(&other.to_string_lossy()),
        }
    }
    if options.far.is_some() && serve::is_enabled() {
        // Made now, so that an error of the store is reported before the program starts.
        serve::heap_or_make();
    }
    if options.pid.is_none() {
        remark_on_settings();
    }
    if options.report.is_some() {
        record::start();
        report::write("running");
        timeline::start();
    }
}

/// Leaves all blocks to another allocator. Only the process that the user started prints a line: a program may read the
/// output of processes that are started by that one.
fn leave_blocks_to(other: &str) {
    serve::serve_mappings_only();
    serve::note(Cause::OtherAllocator);
    if is_launched() || options().pid.is_none() {
        warn(&format!("{other}; Largesse serves only what else the program maps (mmap)"));
    }
}

extern "C" fn finish() {
    let _blocked = Blocked::handlers();
    record::finish();
    coverage::update();
    report::write("finished");
}

/// Returns whether this process is the one that `largesse run` became.
pub(crate) fn is_launched() -> bool {
    options().pid == Some(std::process::id())
}

/// Returns the number of bytes before the data of blocks.
pub(crate) fn header() -> usize {
    options().header.unwrap_or(if slots::r_is_loaded() { R_HEADER } else { 0 })
}

type Made = (&'static HeapBacking, &'static LargeHeap);

/// Reserves the range and makes the heap on it; counts the causes for which the kernel grants less.
pub(crate) fn make_heap() -> Option<Made> {
    let options = options();
    match &options.far {
        None => {
            let made = make_on(near_backing(options)?, Retention::default());
            made.inspect(|(_, heap)| limit::first(heap))
        }
        Some(config) => match make_far_heap(config) {
            Ok(made) => Some(made),
            Err(why) => refuse_to_start(&format!("no far memory: {}", shortage::with_limits(why))),
        },
    }
}

/// Makes the heap on far memory; otherwise returns a message for the user.
pub(crate) fn make_far_heap(config: &FarConfig) -> Result<Made, String> {
    // The two ranges share the bytes of a limit on data that the pager does not need.
    let data = limit(libc::RLIMIT_DATA).saturating_sub(FAR_DATA) / 2;
    let most = (limit(libc::RLIMIT_AS) / 4).min(data);
    let range = || reserve(SPAN, most).ok_or("no address space");
    let far = far::make(range()?, range()?, config)?;
    // Free memory should not occupy the store.
    let made = make_on(HeapBacking::Far(far), Retention { share: 0, floor: 0 });
    made.ok_or_else(|| "no address space for its tables".into())
}

fn make_on(backing: HeapBacking, retention: Retention) -> Option<Made> {
    let backing = serve::leak(backing)?;
    let settings = LargeHeapSettings { header: header(), data: options().data, retention };
    let heap = serve::leak(LargeBlockHeap::new(backing, settings)?)?;
    Some((backing, heap))
}

fn near_backing(options: &Options) -> Option<HeapBacking> {
    let kind = page_kind(options.pages);
    let align = if kind == PageKind::Hugetlb1G { GIB } else { SPAN };
    // Blocks cannot exceed the limit on data, and the tables of a larger range would use it up.
    let most = (limit(libc::RLIMIT_AS) / 2).min(limit(libc::RLIMIT_DATA));
    Some(HeapBacking::Near(NearMemory::new(reserve(align, most)?, kind, options.placement, options.lock)))
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

/// Returns a limit of this process in bytes; `usize::MAX` if there is none.
pub(crate) fn limit(what: libc::__rlimit_resource_t) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for writing.
    let rc = unsafe { libc::getrlimit(what, &raw mut limit) };
    if rc != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        usize::MAX
    } else {
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    }
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
        serve::note(Cause::ThpDisabledForProcess);
    }
    let large = largesse_pages::large_pages();
    if pages != PageChoice::Medium {
        if largesse_pages::thp_mode() == Thp::Absent {
            serve::note(Cause::ThpRefused);
        } else if large == Offer::Refused {
            serve::note(Cause::ThpNever);
        }
        return PageKind::Thp;
    }
    if largesse_pages::medium_pages() == Offer::Refused {
        serve::note(Cause::Pages64kNotOffered);
        return PageKind::Small;
    }
    if large == Offer::Given {
        serve::note(Cause::Pages64kOvertaken);
    }
    PageKind::Medium
}

/// Lets `largesse status` find the heap, and starts the helper thread.
pub(crate) fn publish(heap: &LargeHeap) {
    let options = options();
    let (min, max, enabled) = ROUTING.limits();
    heap.edit_report(|report| {
        report.pages = options.pages as u32;
        report.locked = u32::from(options.lock);
        report.patched = u32::from(hooked() == Hooked::Patched as u32);
        report.node = match options.placement {
            Placement::FirstTouch => -1,
            Placement::Interleave => -2,
            Placement::Node(node) => i32::try_from(node).unwrap_or(i32::MAX),
        };
        report.min_bytes = min as u64;
        report.max_bytes = max as u64;
        report.enabled = u32::from(enabled);
        report.far = far::counters().map_or(0, |words| (&raw const *words).addr() as u64);
        report.far_store = far::about_store().map_or(0, |store| (&raw const *store).addr() as u64);
        report.far_segments = far::segments().map_or(0, |words| words.as_ptr().addr() as u64);
    });
    let signpost = Signpost::to(heap.report_address() as u64);
    // SAFETY: the structure has no padding, so all of its bytes are initialised.
    let bytes =
        unsafe { core::slice::from_raw_parts((&raw const signpost).cast::<u8>(), size_of::<Signpost>()) };
    if largesse_pages::publish(MEMFD_NAME, bytes).is_err() {
        serve::note(Cause::SignpostRefused);
    }
    // Pages of the hugetlb pool are taken when they are committed; other programs may need those prepared too early.
    let ahead = options.ahead && !matches!(options.pages, PageChoice::Hugetlb | PageChoice::Hugetlb1G);
    let far = far::counters().is_some();
    if ahead || far {
        helper::start(!far);
    }
}

/// Prints a message on standard error, with escapes for harmful characters in names of files, hosts and servers.
pub(crate) fn warn(text: &str) {
    print(&["largesse: ", &largesse_text::lines(text), "\n"]);
}

fn print(parts: &[&str]) {
    for part in parts {
        // SAFETY: the text is readable for its length. An error of `write` cannot be reported anywhere.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}

/// Ends the process before `main` because a setting is wrong or cannot be granted.
fn refuse_to_start(text: &str) -> ! {
    warn(text);
    // SAFETY: before `main` no code of the program needs its exit handlers.
    unsafe { libc::_exit(OWN_FAILURE) }
}

/// Aborts because the program, or the library's own code, broke a rule of `malloc`.
pub(crate) fn die(parts: &[&str]) -> ! {
    print(&["largesse: "]);
    print(parts);
    print(&["\n"]);
    // SAFETY: no preconditions.
    unsafe { libc::abort() }
}

/// Returns the bytes of a C string that the dynamic linker owns; none for a null pointer.
pub(crate) fn text(string: *const c_char) -> &'static [u8] {
    if string.is_null() {
        return b"";
    }
    // SAFETY: names of loaded objects and symbols are C strings that live as long as the object.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}
