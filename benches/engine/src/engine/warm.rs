//! Touches and frees memory, so that no run pays for pages that a virtual machine does not have yet.
//!
//! A hypervisor with free page reporting takes free 2 MiB pages back after two seconds, and the next touch takes
//! twenty times longer. A program that prepares its input for seconds would be charged for this; therefore every
//! program under every setting runs [`TOUCH_VARIABLE`] right before it starts the clock.

use super::{Result, available_mib};
use crate::args::TOUCH;
use largesse_pages::{MapError, PageKind, Reserved, SPAN, base_page};

/// Variable with the command line to run before the clock starts.
pub(crate) const TOUCH_VARIABLE: &str = "LARGESSE_BENCH_TOUCH";

/// Returns a shell command that touches `mib` MiB without the setting's own allocator.
pub(crate) fn touch_command(mib: u64) -> String {
    let own = largesse_terminal::own::path().unwrap_or_else(|_| "largesse-bench".into());
    let own = own.display().to_string().replace('\'', r"'\''");
    format!("env -u LD_PRELOAD -u GLIBC_TUNABLES '{own}' {TOUCH} --touch {mib}")
}

/// Touches `mib` MiB, and at most half of the available memory.
pub(crate) fn touch_mib(mib: u64) -> Result<()> {
    let mib = mib.min(available_mib() / 2);
    let touched = touch(usize::try_from(mib << 20).unwrap_or(0));
    touched.map_err(|error| format!("{mib} MiB could not be touched before the run: {error:?}"))
}

/// Touches `bytes` bytes, on large pages where possible, and returns them to the kernel.
fn touch(bytes: usize) -> std::result::Result<(), MapError> {
    let len = bytes.next_multiple_of(SPAN);
    if len == 0 {
        return Ok(());
    }
    let range = Reserved::new(len, SPAN)?;
    range.commit(0, len, PageKind::Thp)?;
    if range.populate(0, len).is_err() {
        // Linux before 5.14 cannot populate on request, so every page is written.
        for offset in (0..len).step_by(base_page()) {
            // SAFETY: `offset` is below the length of a range that was just committed, and no other code has its
            // address.
            unsafe { range.start().add(offset).write_volatile(1) };
        }
    }
    Ok(())
}
