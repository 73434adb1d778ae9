//! Touches and frees memory, so that no run pays for pages that are new to a virtual machine.

use largesse_pages::{MapError, PageKind, Reserved, SPAN, base_page};

/// Touches `bytes` on large pages where there are any, and gives them back to the kernel.
pub(super) fn touch(bytes: usize) -> Result<(), MapError> {
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
