//! Makes the system calls that report which pages are resident, and how large they are.
#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_sign_loss, reason = "numbers of the kernel's interface")]

use super::files::{Descriptor, open};
use super::linux::{base_page, errno};
use core::ffi::CStr;
use core::ptr::NonNull;

pub(crate) fn open_pagemap(pid: Option<u32>) -> Result<Descriptor, i32> {
    let Some(pid) = pid else { return open(c"/proc/thread-self/pagemap") };
    let mut path = *b"/proc/0000000000/pagemap\0";
    let mut rest = pid;
    // Leading zeros are not a pid: write the digits, then close the gap.
    let mut digits = [0_u8; 10];
    let mut count = 0;
    while rest > 0 || count == 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    for (i, digit) in digits[..count].iter().rev().enumerate() {
        path[6 + i] = *digit;
    }
    path[6 + count..6 + count + 9].copy_from_slice(b"/pagemap\0");
    open(CStr::from_bytes_until_nul(&path).map_err(|_| libc::ENOENT)?)
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScannedRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// Mirrors `struct pm_scan_arg` of linux/fs.h (kernel 6.7).
#[repr(C)]
struct ScanRequest {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Returns the number of resident bytes, that of bytes on large pages, and the first resident address of `[start,
/// end)`.
pub(crate) fn scan(file: &Descriptor, start: u64, end: u64) -> Result<(u64, u64, Option<u64>), i32> {
    const PAGEMAP_SCAN: u64 = 0xC060_6610;
    const PRESENT: u64 = 1 << 3;
    const ZERO_PAGE: u64 = 1 << 5;
    const HUGE: u64 = 1 << 6;
    let mut regions = [ScannedRegion::default(); 64];
    let (mut resident, mut large, mut first) = (0, 0, None);
    let mut request = ScanRequest {
        size: size_of::<ScanRequest>() as u64,
        flags: 0,
        start,
        end,
        walk_end: 0,
        vec: regions.as_mut_ptr() as u64,
        vec_len: regions.len() as u64,
        max_pages: 0,
        category_inverted: ZERO_PAGE,
        category_mask: PRESENT | ZERO_PAGE,
        category_anyof_mask: 0,
        return_mask: PRESENT | HUGE,
    };
    while request.start < end {
        // SAFETY: the request has the layout the kernel documents, and names a live vector.
        let count = unsafe { libc::ioctl(file.0, PAGEMAP_SCAN as _, &raw mut request) };
        if count < 0 {
            return Err(errno());
        }
        for region in &regions[..count as usize] {
            resident += region.end - region.start;
            if region.categories & HUGE != 0 {
                large += region.end - region.start;
            }
            first = first.or(Some(region.start));
        }
        if request.walk_end <= request.start {
            break;
        }
        request.start = request.walk_end;
    }
    Ok((resident, large, first))
}

pub(crate) fn any_resident(at: NonNull<u8>, len: usize) -> bool {
    let mut any = false;
    each_resident(at, len, &mut |_| any = true);
    any
}

pub(crate) fn is_mapped(at: NonNull<u8>) -> bool {
    let mut seen = 0_u8;
    // SAFETY: one page has one byte; the kernel checks the address.
    let rc = unsafe { libc::mincore(at.as_ptr().cast(), base_page(), &raw mut seen) };
    rc == 0 || errno() != libc::ENOMEM
}

pub(crate) fn each_resident(at: NonNull<u8>, len: usize, f: &mut dyn FnMut(usize)) {
    let page = base_page();
    let mut seen = [0_u8; 512];
    for offset in (0..len).step_by(seen.len() * page) {
        let part = (seen.len() * page).min(len - offset);
        // SAFETY: `offset < len`, inside the caller's range.
        let from = unsafe { at.add(offset) };
        // SAFETY: `seen` has one byte for each page of the part.
        if unsafe { libc::mincore(from.as_ptr().cast(), part, seen.as_mut_ptr()) } != 0 {
            // Unknown: assume touched, which costs time but loses no contents.
            seen.fill(1);
        }
        let here = seen[..part.div_ceil(page)].iter().enumerate().filter(|(_, byte)| **byte & 1 != 0);
        here.for_each(|(number, _)| f(offset + number * page));
    }
}
