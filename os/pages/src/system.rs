//! What this system offers, read at run time.

use crate::sys;

/// The mode of transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thp {
    /// Every mapping may get them.
    Always,
    /// Advised mappings get them.
    Madvise,
    /// Nobody gets them.
    Never,
    /// The kernel was built without: it refuses the advice.
    Absent,
    /// The kernel takes the advice, and its mode cannot be read (`/sys` is hidden).
    Unknown,
}

/// What multi-size THP says about one page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Given to advised mappings (`always`, `madvise`, or `inherit` of such a mode).
    Given,
    /// Not given.
    Refused,
}

/// Bytes of a base page.
#[must_use]
pub fn base_page() -> usize {
    sys::base_page()
}

/// Bytes of the transparent large page; `None` when the kernel has none.
#[must_use]
pub fn large_page() -> Option<usize> {
    let mut text = [0; 32];
    let read = sys::read_file(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &mut text)?;
    number(read)
}

/// Bytes of physical memory.
#[must_use]
pub fn physical_memory() -> usize {
    sys::physical_memory()
}

/// `prctl(PR_SET_THP_DISABLE)` is in force for this process, advised mappings included.
#[must_use]
pub fn thp_disabled_for_process() -> bool {
    sys::thp_disabled()
}

/// The system-wide mode.
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

/// Advises a page for transparent huge pages: a kernel without these refuses, whether or not its files can be read.
fn advice_is_taken() -> bool {
    let len = base_page();
    let Some(at) = crate::map_aligned(len, len, libc::PROT_READ | libc::PROT_WRITE, 0) else { return false };
    let taken = crate::advise_mapping(at, len, crate::PageKind::Thp).is_ok();
    // SAFETY: mapped just now, and no other code knows the address.
    unsafe { crate::raw_munmap(at, len) };
    taken
}

/// What the system gives advised mappings for pages of 64 KiB. A kernel without multi-size THP has none. Where the setting
/// cannot be read, a page is asked for.
#[must_use]
pub fn medium_pages() -> Offer {
    let path = c"/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    let is_given = || thp_mode() == Thp::Unknown && gives(64 << 10);
    offer(path, || if is_given() { Offer::Given } else { Offer::Refused })
}

/// Whether the first write to advised memory of `len` bytes makes all of it resident, as one page of that size does.
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

/// What the system gives advised mappings for pages of 2 MiB: the setting for this size, which may
/// differ from the system-wide one, or the system-wide one where there is no other.
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

/// The word in brackets of a sysfs choice such as `always [madvise] never`.
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
    fn the_chosen_word_is_the_bracketed_one() {
        assert_eq!(chosen(b"always [madvise] never\n"), Some(&b"madvise"[..]));
        assert_eq!(chosen(b"[never]"), Some(&b"never"[..]));
        assert_eq!(chosen(b"always madvise"), None);
        assert_eq!(chosen(b"[open"), None);
    }

    #[test]
    fn numbers_end_at_the_first_other_byte() {
        assert_eq!(number(b"2097152\n"), Some(2_097_152));
        assert_eq!(number(b"\n"), None);
        assert_eq!(number(b"99999999999999999999999"), None);
    }
}
