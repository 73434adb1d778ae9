//! Prints each warning once for all processes that `largesse run` started, in the first one that notices. The warning
//! about memory that is not covered comes again when the amount has doubled.
//!
//! A script, or a program with workers, has many processes that would say the same. So all of them share one page of
//! memory with a bit for each warning. Forked processes inherit the page. Executed ones find it through the process
//! that the launcher became, which keeps its descriptor:
//!
//! ```text
//!   launched process: page, descriptor 900 ◄── /proc/PID/fd/900 ── executed process: the same page
//!         └─ fork ─► the same page                   └─ fork ─► the same page
//! ```
//! Where the page cannot be found (no `/proc`, another user, a program that closes all descriptors), a process and its
//! forked children share one of their own: a warning too many is better than none. So does a session that loaded the
//! library by itself.

use crate::message::warn;
use crate::settings::{environment, is_launched, options};
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use largesse_pages::base_page;
use largesse_pages::shared::MemoryFile;
use largesse_report::{CAUSES, Cause};
use std::fs::OpenOptions;
use std::os::fd::IntoRawFd as _;
use std::sync::OnceLock;

/// A warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Requests for which this is the cause are not granted in full.
    NotGranted(Cause),
    /// The memory that far memory does not cover cannot be measured.
    CoverageUnknown,
    /// The program waits for far memory most of the time.
    LongWaits,
    /// A limit comes near, and memory is written to a store.
    Spilling,
}

impl Notice {
    const fn bit(self) -> u64 {
        1 << match self {
            Notice::NotGranted(cause) => cause as usize,
            Notice::CoverageUnknown => CAUSES,
            Notice::LongWaits => CAUSES + 1,
            Notice::Spilling => CAUSES + 2,
        }
    }
}

/// The page that the processes share. Zero bytes are valid: no warning was printed.
#[derive(Debug, Default)]
struct Page {
    /// A bit for each [`Notice`] that was printed.
    printed: AtomicU64,
    /// Number of bytes outside far memory that the last warning about them reported.
    uncovered: AtomicU64,
}

// Relaxed throughout: no other memory depends on the words.
impl Page {
    /// Returns whether the caller is to print a warning, which is the case for the first caller only.
    fn is_first(&self, notice: Notice) -> bool {
        self.printed.fetch_or(notice.bit(), Ordering::Relaxed) & notice.bit() == 0
    }

    /// Returns whether the caller is to report that `bytes` are outside far memory, since they are at least [`GROWTH`]
    /// times those of the last report.
    fn is_much_more(&self, bytes: u64) -> bool {
        let raised = |last: u64| (bytes >= last.saturating_mul(GROWTH)).then_some(bytes);
        self.uncovered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised).is_ok()
    }
}

/// Factor by which the bytes outside far memory must have grown since the last warning to be reported again.
const GROWTH: u64 = 2;
/// Name of the memory file with the page.
const NAME: &CStr = c"largesse-notices";
/// Link in `/proc/PID/fd` to the memory file.
const LINK: &str = "/memfd:largesse-notices (deleted)";
/// Numbers of the descriptor that the launched process keeps, the first that its limit permits: above those that
/// programs expect for their next files, and low enough to need no large table.
const PLACES: [c_int; 2] = [900, 200];
/// Variable with the names, separated by commas, of the causes that the launcher has warned of.
const FORETOLD: &str = "LARGESSE_FORETOLD";

static PAGE: OnceLock<&'static Page> = OnceLock::new();
/// The process in which the library was loaded; a forked child has another number.
static LOADED_IN: AtomicU32 = AtomicU32::new(0);

/// Finds or makes the shared page, before the program starts threads or children.
pub(crate) fn start() {
    LOADED_IN.store(std::process::id(), Ordering::Relaxed);
    let made = || MemoryFile::new(NAME, size_of::<Page>()).ok();
    let file = match options().pid {
        Some(_) if is_launched() => made().inspect(keep_open),
        Some(launched) => find(launched).or_else(made),
        None => made(),
    };
    let Some(page) = file.and_then(|file| file.map(true).ok()) else { return };
    // Never unmapped.
    let start = core::mem::ManuallyDrop::new(page).start().cast::<Page>();
    // SAFETY: a page of zero bytes, or with the words that other processes have stored, which use atomics only.
    let _ = PAGE.set(unsafe { start.as_ref() });
}

/// Keeps a descriptor of the file at one of [`PLACES`], where executed children look for it.
fn keep_open(file: &MemoryFile) {
    for place in PLACES {
        // SAFETY: numbers only.
        let kept = unsafe { libc::fcntl(file.descriptor(), libc::F_DUPFD_CLOEXEC, place) };
        if kept == place {
            return;
        }
        if kept >= 0 {
            // SAFETY: the descriptor was just made, and no other code knows it.
            unsafe { libc::close(kept) };
        }
    }
}

/// Returns the file of the launched process.
fn find(launched: u32) -> Option<MemoryFile> {
    let paths = PLACES.map(|place| format!("/proc/{launched}/fd/{place}"));
    let path = paths.iter().find(|path| std::fs::read_link(path).is_ok_and(|it| it.as_os_str() == LINK))?;
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    MemoryFile::received(file.into_raw_fd()).ok().filter(|file| file.len() == base_page())
}

fn page() -> &'static Page {
    static OWN: Page = Page { printed: AtomicU64::new(0), uncovered: AtomicU64::new(0) };
    PAGE.get().copied().unwrap_or(&OWN)
}

/// Prints a warning, unless a process that the launcher started with this one has printed it, or the launcher itself.
pub(crate) fn warn_once(notice: Notice, text: &str) {
    if !is_foretold(notice) && page().is_first(notice) {
        print(text);
    }
}

/// Prints how many bytes are outside far memory, unless the last report was of more than half as many.
pub(crate) fn warn_uncovered(bytes: u64, text: impl FnOnce() -> String) {
    if page().is_much_more(bytes) {
        print(&text());
    }
}

fn is_foretold(notice: Notice) -> bool {
    let Notice::NotGranted(cause) = notice else { return false };
    let foretold = environment(FORETOLD).unwrap_or_default();
    foretold.split(',').any(|name| name.as_bytes() == cause.name().to_bytes())
}

/// Prints a warning, with the name of this process if the user did not start it.
fn print(text: &str) {
    let is_users = match options().pid {
        Some(_) => is_launched(),
        None => LOADED_IN.load(Ordering::Relaxed) == std::process::id(),
    };
    if is_users {
        return warn(text);
    }
    let name = largesse_text::line(invocation_name().to_bytes());
    warn(&format!("{name} (process {}): {text}", std::process::id()));
}

/// Returns the name by which the program was started, without its folder.
fn invocation_name() -> &'static CStr {
    unsafe extern "C" {
        static program_invocation_short_name: *const c_char;
    }
    // SAFETY: the C library sets it before it calls any constructor.
    let name = unsafe { program_invocation_short_name };
    // SAFETY: it is a C string that the C library never frees.
    unsafe { CStr::from_ptr(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_has_a_bit() {
        let others = [Notice::CoverageUnknown, Notice::LongWaits, Notice::Spilling];
        let all = Cause::ALL.into_iter().map(Notice::NotGranted).chain(others);
        let page = Page::default();
        for notice in all {
            assert!(page.is_first(notice) && !page.is_first(notice), "{notice:?} is printed once");
        }
    }

    #[test]
    fn doubled_bytes_are_reported_again() {
        let page = Page::default();
        let reported: Vec<_> = [70, 100, 139, 140, 100, 280].map(|mib| page.is_much_more(mib)).into();
        assert_eq!(reported, [true, false, false, true, false, true]);
    }
}
