//! Starts the library in a process before `main`, and finishes its reports at `exit`.

use crate::causes::note;
use crate::hooked::{Hooked, set_hooked};
use crate::make::heap_or_wait;
use crate::message::{refuse_to_start, warn};
use crate::notices::{Notice, warn_once};
use crate::options::Options;
use crate::routing::{ROUTING, serve_mappings_only};
use crate::settings::{environment, options};
use crate::signals::Blocked;
use crate::slots::eligibility::watched;
use crate::slots::object;
use crate::{
    allocator, atfork, coverage, last_thread, notices, record, report, small, spill, thread_start, timeline,
};
use core::ffi::{c_char, c_int};
use largesse_machine::{process, service};
use largesse_report::Cause;
use largesse_settings::{Remark, SettingsReader};

/// File name of this library.
const NAME: &str = "liblargesse.so";

/// Prints a line for each environment variable of Largesse that has no effect, unless the parent process has the
/// library and so has printed it. The launcher prints the lines for programs that it starts.
fn remark_on_settings() {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let preload = environment("LD_PRELOAD").unwrap_or_default();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    let remarks: Vec<String> = variables
        .filter_map(|(name, value)| {
            Some(Remark::of(SettingsReader::Library, &name, &value, &preload)?.to_string())
        })
        .collect();
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
    atfork::watch();
    service::set_thread_local_size(object::thread_local_bytes());
    thread_start::find();
    find_bound_threads();
    last_thread::hold();
    notices::start();
    if object::is_preloaded() {
        set_hooked(Hooked::Preloaded);
        let ours = options.children || options.pid.is_none_or(|pid| pid == std::process::id());
        if ours && watched().is_none() {
            begin_to_serve(options);
        }
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

/// Has the library serve what the program allocates and maps.
fn begin_to_serve(options: &Options) {
    // Made now, so that an error of the store is reported before the program starts.
    let is_made_now = options.far.is_some() || options.limit.is_some();
    if is_made_now && heap_or_wait().is_none() {
        return;
    }
    spill::before_program();
    match allocator::other() {
        None => {
            if is_made_now {
                small::begin(options);
            }
            ROUTING.enable(true);
        }
        Some(other) => leave_blocks_to(&other.to_string_lossy()),
    }
}

/// Finds out whether a runtime binds the program's threads by calls that this library does not see: `largesse pin
/// --threads`, and OpenMP runtimes that call the kernel or were there before this library.
fn find_bound_threads() {
    let set = |name: &str| environment(name).filter(|value| !value.is_empty());
    let list = set("LARGESSE_THREAD_CPUS").unwrap_or_default();
    let openmp =
        ["OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"].into_iter().any(|name| set(name).is_some())
            || set("OMP_PROC_BIND").is_some_and(|value| !value.eq_ignore_ascii_case("false"));
    if openmp || !list.is_empty() {
        process::declare_threads_bound(list.split(',').filter_map(|number| number.parse().ok()));
    }
}

/// Leaves all blocks to another allocator.
fn leave_blocks_to(other: &str) {
    serve_mappings_only();
    note(Cause::OtherAllocator);
    let text = format!("{other}; Largesse serves only what else the program maps (mmap)");
    warn_once(Notice::NotGranted(Cause::OtherAllocator), &text);
}

extern "C" fn finish() {
    let _blocked = Blocked::handlers();
    record::finish();
    coverage::update();
    spill::announce();
    small::note();
    report::write("finished");
}
