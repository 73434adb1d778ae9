//! How much memory the agent may still take, and whether what it does not lock may be swapped out.

use largesse_machine::Room;
use std::path::Path;

/// Bytes left to the rest of the machine, or of the control group.
const SPARE: u64 = 32 << 20;

/// Bytes that this process may still take, by the machine and by each control group around it; `u64::MAX` where neither
/// says.
#[must_use]
pub fn available() -> u64 {
    Room::open(Path::new("/")).available().map_or(u64::MAX, |bytes| bytes.saturating_sub(SPARE))
}

/// Whether pages that are not locked may be swapped out. By a system call: `/proc/swaps` may be hidden.
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
