//! Touches and frees memory, so that no run pays for pages that are new to a virtual machine.
//!
//! A hypervisor with free page reporting takes free 2 MiB pages back after two seconds, and the next
//! to touch one waits twenty times longer for it. A program that prepares its input for seconds
//! would so be charged for the preparation; therefore programs run [`COMMAND`] right before they
//! start the clock, every one of them under every setting.

use super::machine;
use largesse_pages::{MapError, PageKind, Reserved, SPAN, base_page};

/// The variable that holds the command line to run before the clock starts.
pub(super) const COMMAND: &str = "LARGESSE_BENCH_TOUCH";

/// The word after `largesse bench`.
pub(super) const NAME: &str = "touch";

/// The shell's command line that touches `mib` MiB, without the setting's own allocator.
pub(super) fn command(mib: u64) -> String {
    let own = largesse_terminal::own::path().unwrap_or_else(|_| "largesse-bench".into());
    let own = own.display().to_string().replace('\'', r"'\''");
    format!("env -u LD_PRELOAD -u GLIBC_TUNABLES '{own}' {NAME} --touch {mib}")
}

/// Touches `mib` MiB, and at most half of what is available. The error is what to tell.
pub(super) fn touch_mib(mib: u64) -> Result<(), String> {
    let mib = mib.min(machine::available_mib() / 2);
    let bytes = usize::try_from(mib << 20).unwrap_or(0);
    touch(bytes).map_err(|error| format!("{mib} MiB could not be touched before the run: {error:?}"))
}

/// Touches `bytes` on large pages where there are any, and gives them back to the kernel.
fn touch(bytes: usize) -> Result<(), MapError> {
    let len = bytes.next_multiple_of(SPAN);
    if len == 0 {
        return Ok(());
    }
    let range = Reserved::new(len, SPAN)?;
    range.commit(0, len, PageKind::Thp)?;
    if range.populate(0, len).is_err() {
        // Linux before 5.14 cannot be asked: write to every page.
        for offset in (0..len).step_by(base_page()) {
            // SAFETY: `offset` is below the length of a range that was just committed, and nobody
            // else knows it.
            unsafe { range.start().add(offset).write_volatile(1) };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_amount_can_be_touched() {
        for bytes in [0, 1, SPAN + 1] {
            touch(bytes).unwrap();
        }
    }
}
