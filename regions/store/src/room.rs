//! Available memory, and whether memory that is not locked may be swapped out.

use largesse_machine::Room;
use std::path::Path;

/// Number of bytes that are left to the rest of the machine, or of the control group.
const SPARE: u64 = 32 << 20;

/// Returns the number of bytes that this process may still use, by the machine's and each surrounding control group's
/// limit; `u64::MAX` without any.
#[must_use]
pub fn available() -> u64 {
    Room::open(Path::new("/")).available().map_or(u64::MAX, |bytes| bytes.saturating_sub(SPARE))
}

/// Returns whether the kernel may swap out pages that are not locked.
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
    fn swap_list_without_entries_is_no_swap() {
        let with = |text: &str| is_swap(Some(text.to_owned()));
        assert!(!with("Filename Type Size Used Priority\n"));
        assert!(with("Filename Type Size Used Priority\n/dev/sda2 partition 9 0 -2\n"));
    }
}
