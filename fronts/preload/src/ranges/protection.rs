//! Reads the protection of a range from the kernel's list of mappings.

use core::ffi::c_int;
use core::ops::Range;
use largesse_machine::unread::{self, Unread};
use std::path::Path;

/// Returns the protection of a range; `None` if its parts have different protections, or one of them is not mapped.
pub(super) fn of(at: &Range<usize>) -> Result<Option<c_int>, Unread> {
    let maps = unread::text(Path::new("/"), "/proc/self/maps")?;
    Ok(among(&maps.unwrap_or_default(), at))
}

fn among(maps: &str, at: &Range<usize>) -> Option<c_int> {
    let mut reached = at.start;
    let mut all = None;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let mapping = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        if mapping.end <= reached {
            continue;
        }
        let here = letters(words.next()?);
        if mapping.start > reached || all.is_some_and(|all| all != here) {
            return None;
        }
        all = Some(here);
        reached = mapping.end;
        if reached >= at.end {
            return all;
        }
    }
    None
}

/// Converts permissions such as `rw-p` to `PROT_` bits.
fn letters(permissions: &str) -> c_int {
    let mut protection = libc::PROT_NONE;
    for (letter, bit) in [('r', libc::PROT_READ), ('w', libc::PROT_WRITE), ('x', libc::PROT_EXEC)] {
        if permissions.contains(letter) {
            protection |= bit;
        }
    }
    protection
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "1000-3000 rw-p 00000000 00:00 0\n3000-4000 rw-p 00000000 00:00 0 [anon: a b]\n\
        4000-5000 r--p 00000000 08:01 7 /a file\n8000-9000 ---p 00000000 00:00 0\n";

    #[test]
    fn mixed_ranges_have_no_protection() {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        for (range, want) in [
            (0x1000..0x2000, Some(both)),
            (0x2000..0x4000, Some(both)),
            (0x2000..0x5000, None),
            (0x4000..0x5000, Some(libc::PROT_READ)),
            (0x4000..0x6000, None),
            (0x5000..0x6000, None),
            (0x7000..0x9000, None),
            (0x8000..0x9000, Some(libc::PROT_NONE)),
            (0x9000..0xa000, None),
        ] {
            assert_eq!(among(MAPS, &range), want, "{range:x?}");
        }
    }

    #[test]
    fn protection_of_the_heap_is_found() {
        let word = Box::new(1_usize);
        let page = core::ptr::from_ref(&*word).addr() & !0xfff;
        assert_eq!(of(&(page..page + 1)), Ok(Some(libc::PROT_READ | libc::PROT_WRITE)));
    }
}
