//! Makes the system calls that report which pages are resident, and how large they are.
#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_sign_loss, reason = "numbers of the kernel's interface")]

use super::call::raw_call;
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

/// Mirrors `struct pm_scan_arg` of linux/fs.h (Linux 6.7).
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

const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO_PAGE: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;

impl ScanRequest {
    /// Returns a request for the pages that have all categories in `mask` (or lack those that are also in `inverted`),
    /// and one of the categories in `any` unless `any` is 0.
    fn new((start, end): (u64, u64), mask: u64, inverted: u64, any: u64) -> ScanRequest {
        ScanRequest {
            size: size_of::<ScanRequest>() as u64,
            flags: 0,
            start,
            end,
            walk_end: 0,
            vec: 0,
            vec_len: 0,
            max_pages: 0,
            category_inverted: inverted,
            category_mask: mask,
            category_anyof_mask: any,
            return_mask: PRESENT | HUGE,
        }
    }

    /// Makes the request, and calls `f` for each run of pages that match.
    fn each(mut self, file: &Descriptor, mut f: impl FnMut(&ScannedRegion)) -> Result<(), i32> {
        const PAGEMAP_SCAN: usize = 0xC060_6610;
        let mut regions = [ScannedRegion::default(); 64];
        self.vec = regions.as_mut_ptr() as u64;
        self.vec_len = regions.len() as u64;
        while self.start < self.end {
            let arguments = [file.0 as usize, PAGEMAP_SCAN, (&raw mut self).addr(), 0, 0, 0];
            // By our own instruction: a filter of system calls would pin the pages that the request names.
            // SAFETY: the request has the layout the kernel documents, and names a live vector.
            let count = unsafe { raw_call(libc::SYS_ioctl, arguments) };
            if count < 0 {
                return Err(i32::try_from(-count).unwrap_or_default());
            }
            regions[..count as usize].iter().for_each(&mut f);
            if self.walk_end <= self.start {
                break;
            }
            self.start = self.walk_end;
        }
        Ok(())
    }
}

/// Returns the number of resident bytes of `[start, end)`, how many of these are on large pages, and the first
/// resident address.
pub(crate) fn scan(file: &Descriptor, start: u64, end: u64) -> Result<(u64, u64, Option<u64>), i32> {
    let (mut resident, mut large, mut first) = (0, 0, None);
    ScanRequest::new((start, end), PRESENT | ZERO_PAGE, ZERO_PAGE, 0).each(file, |region| {
        resident += region.end - region.start;
        if region.categories & HUGE != 0 {
            large += region.end - region.start;
        }
        first = first.or(Some(region.start));
    })?;
    Ok((resident, large, first))
}

/// Calls `f` with each part of `[start, end)` whose pages have contents, in memory or swapped out by the kernel.
pub(crate) fn each_populated(
    file: &Descriptor,
    start: u64,
    end: u64,
    f: &mut dyn FnMut(u64, u64),
) -> Result<(), i32> {
    ScanRequest::new((start, end), 0, 0, PRESENT | SWAPPED).each(file, |region| f(region.start, region.end))
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
