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

/// Whether pages that are not locked may leave memory.
pub(crate) fn has_swap() -> bool {
    is_swap(std::fs::read_to_string("/proc/swaps").ok())
}

fn is_swap(text: Option<String>) -> bool {
    text.is_some_and(|text| text.lines().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_more_than_a_heading() {
        let with = |text: &str| is_swap(Some(text.to_owned()));
        assert!(!with("Filename Type Size Used Priority\n"));
        assert!(with("Filename Type Size Used Priority\n/dev/sda2 partition 9 0 -2\n"));
    }
}
