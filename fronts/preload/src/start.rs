//! Starts the library in a process before `main`, and finishes its reports at `exit`.

use crate::causes::note;
use crate::hooked::{Hooked, set_hooked};
use crate::make::heap_or_make;
use crate::message::{refuse_to_start, warn};
use crate::routing::{ROUTING, is_enabled, serve_mappings_only};
use crate::settings::{is_launched, options};
use crate::signals::Blocked;
use crate::slots::eligibility::watched;
use crate::slots::object;
use crate::{allocator, atfork, coverage, last_thread, record, report, small, spill, thread_start, timeline};
use core::ffi::{c_char, c_int};
use largesse_report::Cause;
use largesse_settings::Unknown;

/// File name of this library.
const NAME: &str = "liblargesse.so";

/// Prints a line for each environment variable of Largesse that has no effect, unless the parent process has the
/// library and so has printed it. The launcher prints the lines for programs that it starts.
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
    atfork::watch();
    thread_start::find();
    last_thread::hold();
    if object::is_preloaded() {
        set_hooked(Hooked::Preloaded);
        let ours = options.children || options.pid.is_none_or(|pid| pid == std::process::id());
        match allocator::other() {
            _ if !ours || watched().is_some() => {}
            None => ROUTING.enable(true),
            Some(other) => leave_blocks_to(&other.to_string_lossy()),
        }
    }
    if (options.far.is_some() || options.limit.is_some()) && is_enabled() {
        // Made now, so that an error of the store is reported before the program starts.
        heap_or_make();
        if ROUTING.limits().2 {
            small::begin(options);
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

/// Leaves all blocks to another allocator. Only the process that the user started prints a line: a program may read the
/// output of processes that are started by that one.
fn leave_blocks_to(other: &str) {
    serve_mappings_only();
    note(Cause::OtherAllocator);
    if is_launched() || options().pid.is_none() {
        warn(&format!("{other}; Largesse serves only what else the program maps (mmap)"));
    }
}

extern "C" fn finish() {
    let _blocked = Blocked::handlers();
    record::finish();
    coverage::update();
    spill::announce();
    small::note();
    report::write("finished");
}
