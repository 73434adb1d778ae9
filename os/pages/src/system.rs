//! Reads the page sizes that this system offers, at run time.

use crate::sys;

/// The system-wide mode of transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thp {
    /// Every mapping may get huge pages.
    Always,
    /// Only advised mappings get huge pages.
    Madvise,
    /// No mapping gets huge pages.
    Never,
    /// The kernel was built without transparent huge pages and refuses the advice.
    Absent,
    /// The kernel accepts the advice, but its mode cannot be read (`/sys` is hidden).
    Unknown,
}

/// Whether multi-size THP offers one size of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Advised mappings get pages of this size (`always`, `madvise`, or `inherit` of such a mode).
    Given,
    /// Advised mappings do not get pages of this size.
    Refused,
}

/// Returns the size of a base page in bytes.
#[must_use]
pub fn base_page() -> usize {
    sys::base_page()
}

/// Returns the size of a transparent huge page in bytes, or `None` if the kernel has none.
#[must_use]
pub fn large_page() -> Option<usize> {
    let mut text = [0; 32];
    let read = sys::read_file(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &mut text)?;
    number(read)
}

/// Returns the size of physical memory in bytes.
#[must_use]
pub fn physical_memory() -> usize {
    sys::physical_memory()
}

/// Returns whether `prctl(PR_SET_THP_DISABLE)` disables huge pages for this process, advised mappings included.
#[must_use]
pub fn thp_disabled_for_process() -> bool {
    sys::thp_disabled()
}

/// Reads the system-wide mode of transparent huge pages.
#[must_use]
pub fn thp_mode() -> Thp {
    let mut text = [0; 64];
    match sys::read_file(c"/sys/kernel/mm/transparent_hugepage/enabled", &mut text).and_then(chosen) {
        Some(b"always") => Thp::Always,
        Some(b"madvise") => Thp::Madvise,
        Some(_) => Thp::Never,
        None if advice_is_taken() => Thp::Unknown,
        None => Thp::Absent,
    }
}

/// Returns whether the kernel accepts the advice to use transparent huge pages for a page. A kernel without them
/// refuses, whether or not its files can be read.
fn advice_is_taken() -> bool {
    let len = base_page();
    let Some(at) = crate::map_aligned(len, len, libc::PROT_READ | libc::PROT_WRITE, 0) else { return false };
    let taken = crate::advise_mapping(at, len, crate::PageKind::Thp).is_ok();
    // SAFETY: the mapping is new, and no other code knows the address.
    unsafe { crate::raw_munmap(at, len) };
    taken
}

/// Returns whether advised mappings get pages of 64 KiB. On a kernel without multi-size THP they do not. Where the
/// setting cannot be read, a trial mapping is made to see.
#[must_use]
pub fn medium_pages() -> Offer {
    let path = c"/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    offer(path, || if gives(64 << 10) { Offer::Given } else { Offer::Refused })
}

/// Returns whether the first write to an advised mapping of `len` bytes makes all of it resident, which shows that it
/// is one page.
fn gives(len: usize) -> bool {
    let Some(at) = crate::map_aligned(len, len, libc::PROT_READ | libc::PROT_WRITE, 0) else { return false };
    let mut resident = 0;
    if crate::advise_mapping(at, len, crate::PageKind::Medium).is_ok() {
        // SAFETY: the start of a mapping that can be written to and that no other code knows.
        unsafe { at.cast::<u8>().write_volatile(1) };
        crate::each_resident(at, len, &mut |_| resident += base_page());
    }
    // SAFETY: mapped above, and no other code knows the address.
    unsafe { crate::raw_munmap(at, len) };
    resident == len
}

/// Returns whether advised mappings get pages of 2 MiB. The kernel's setting for this size says so, or, if there is
/// none, the system-wide one.
#[must_use]
pub fn large_pages() -> Offer {
    offer(c"/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", inherited)
}

fn inherited() -> Offer {
    if matches!(thp_mode(), Thp::Always | Thp::Madvise | Thp::Unknown) {
        Offer::Given
    } else {
        Offer::Refused
    }
}

fn offer(path: &core::ffi::CStr, without_file: impl Fn() -> Offer) -> Offer {
    let mut text = [0; 64];
    match sys::read_file(path, &mut text).and_then(chosen) {
        Some(b"always" | b"madvise") => Offer::Given,
        Some(b"inherit") => inherited(),
        Some(_) => Offer::Refused,
        None => without_file(),
    }
}

/// Returns the word in brackets of a sysfs file such as `always [madvise] never`.
fn chosen(text: &[u8]) -> Option<&[u8]> {
    let open = text.iter().position(|&b| b == b'[')?;
    let rest = &text[open + 1..];
    let close = rest.iter().position(|&b| b == b']')?;
    Some(&rest[..close])
}

fn number(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit());
    let mut value: Option<usize> = None;
    for digit in digits {
        value = value.unwrap_or(0).checked_mul(10)?.checked_add(usize::from(digit - b'0'));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_word_is_bracketed() {
        assert_eq!(chosen(b"always [madvise] never\n"), Some(&b"madvise"[..]));
        assert_eq!(chosen(b"[never]"), Some(&b"never"[..]));
        assert_eq!(chosen(b"always madvise"), None);
        assert_eq!(chosen(b"[open"), None);
    }

    #[test]
    fn number_stops_at_first_nondigit() {
        assert_eq!(number(b"2097152\n"), Some(2_097_152));
        assert_eq!(number(b"\n"), None);
        assert_eq!(number(b"99999999999999999999999"), None);
    }
}
