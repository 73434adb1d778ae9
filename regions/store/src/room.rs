//! Finds out how much memory is available, and whether memory that is not locked may be swapped out.

use largesse_machine::Room;
use std::path::Path;

/// Number of available bytes that are left to other processes of the machine or of the control group.
const SPARE: u64 = 32 << 20;

/// Returns the number of bytes that this process may still use, according to the machine's limit and that of each
/// control group around the process; `u64::MAX` if there is no limit.
#[must_use]
pub fn available() -> u64 {
    Room::open(Path::new("/")).available().map_or(u64::MAX, |bytes| bytes.saturating_sub(SPARE))
}

/// Returns whether the kernel has swap space for pages that are not locked. It asks by a system call, because
/// `/proc/swaps` may be hidden.
pub(crate) fn has_swap() -> bool {
    // SAFETY: plain numbers, for which zero is a value.
    let mut system: libc::sysinfo = unsafe { core::mem::zeroed() };
    // SAFETY: `system` has room for the answer. The call fails for a bad address only.
    unsafe { libc::sysinfo(&raw mut system) };
    system.totalswap > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_that_of_proc() {
        let listed = std::fs::read_to_string("/proc/swaps").expect("a readable /proc");
        // A heading comes first.
        assert_eq!(has_swap(), listed.lines().count() > 1, "{listed}");
    }
}
