//! Pages that cannot be moved: they are protected against writing, copied, and forgotten.
//!
//! Protection does not stop the kernel, which may hold a reference to the page from before (`process_vm_writev` by this
//! process or another): what it writes after the copy would be lost with the page. So a page is dropped only if nothing
//! refers to it ([`references`]), on kernels that can tell; a page that is in use stays resident.

use crate::PagerError;
use core::ops::Range;
use largesse_pages::fault::{FaultError, Userfault, read_guarded};
use largesse_pages::references::{self, PageTables};
use largesse_pages::{Table, base_page};
use largesse_policy::MAX_TRANSFER;

/// Finds out whether this kernel keeps pages to which it holds references when they are dropped. It tries this with the
/// page at `at`, which lies in a registered range and is not used otherwise, and which may be missing afterwards.
pub(super) fn are_references_respected(faults: &Userfault, at: usize) -> Result<bool, FaultError> {
    // A page that another processor has just made counts as in use, so that the first try may be in vain.
    const TRIES: usize = 4;
    let page = base_page();
    let Ok(tables) = PageTables::open() else { return Ok(false) };
    for _ in 0..TRIES {
        faults.fill(at, &vec![1; page], false)?;
        let mut refused = None;
        let mut protect = |on| refused = refused.or(faults.protect(at, page, on).err());
        // SAFETY: the caller's promise.
        let respected = unsafe { references::are_respected(&tables, at, &mut protect) };
        if let Some(error) = refused {
            return Err(error);
        }
        if respected == Ok(true) {
            return Ok(true);
        }
        forget(at, page)?;
    }
    Ok(false)
}

/// Number of pages that are compared at a time with their first copy.
const COMPARED: usize = 16;

/// The buffer for copies of pages that cannot be moved, one for each staging buffer.
#[derive(Debug)]
pub(super) struct Copies {
    copies: Table<u8>,
    /// A second copy of a few pages, with which their first copy is compared.
    again: Table<u8>,
    /// Descriptors of the kernel's page tables, opened when first needed and kept if all threads that take pages out
    /// share one descriptor table.
    tables: Option<PageTables>,
}

impl Copies {
    pub(super) fn new() -> Option<Copies> {
        let room = |pages| Table::new(pages * base_page());
        Some(Copies { copies: room(MAX_TRANSFER)?, again: room(COMPARED)?, tables: None })
    }

    /// Returns a part of the last copy, by offsets in bytes.
    pub(super) fn bytes(&mut self, part: Range<usize>) -> &mut [u8] {
        &mut self.copies[part]
    }

    /// Removes and returns the descriptors, which the caller closes in the descriptor table in which they are open.
    pub(super) fn descriptors(&mut self) -> Option<PageTables> {
        self.tables.take()
    }

    /// Copies `len` bytes of pages from `at` on and drops the pages; if the kernel `respects` references, only those to
    /// which nothing refers. Returns the offsets of the dropped pages. The others are in use, or cannot be read.
    pub(super) fn take(
        &mut self,
        faults: &Userfault,
        at: usize,
        len: usize,
        respects: bool,
    ) -> Result<Vec<Range<usize>>, PagerError> {
        let (copy, again) = (&mut self.copies[..len], &mut self.again[..]);
        faults.protect(at, len, true)?;
        if !read_guarded(at, copy) {
            faults.protect(at, len, false)?;
            return Ok(Vec::new());
        }
        let all = 0..len;
        if !respects {
            forget(at, len)?;
            return Ok(vec![all]);
        }
        let tables = match self.tables.take().map_or_else(PageTables::open, Ok) {
            Ok(tables) => tables,
            // No dump may be made of this process: no other process of its user may write to it.
            Err(libc::EACCES) => {
                forget(at, len)?;
                return Ok(vec![all]);
            }
            Err(_) => {
                faults.protect(at, len, false)?;
                return Ok(Vec::new());
            }
        };
        let mut in_use = Vec::new();
        let mut stay = |offset| in_use.push(offset);
        // SAFETY: the pages are far memory in state `Leaving`, and protected; those that stay are kept below.
        unsafe { references::forget_unused(&tables, at, copy, again, &mut stay) }
            .map_err(FaultError::from)?;
        let (page, mut gone, mut start) = (base_page(), Vec::new(), 0);
        for offset in in_use {
            let (copy, again) = (&copy[offset..offset + page], &mut again[..page]);
            if stays(faults, &tables, at + offset, copy, again)? {
                gone.push(start..offset);
                start = offset + page;
            }
        }
        gone.push(start..len);
        gone.retain(|part| !part.is_empty());
        // The thread that handles its fault itself has the program's descriptors, which are the program's to close.
        self.tables = Some(tables).filter(|_| !faults.by_signal());
        Ok(gone)
    }
}

/// Keeps a page that is in use, and returns `true`. Returns `false` if the page is gone: the kernel has dropped it
/// already, or the program may not write to it and it has not changed since the copy.
fn stays(
    faults: &Userfault,
    tables: &PageTables,
    at: usize,
    copy: &[u8],
    again: &mut [u8],
) -> Result<bool, PagerError> {
    faults.protect(at, copy.len(), false)?;
    if references::keep(at) {
        return Ok(true);
    }
    faults.protect(at, copy.len(), true)?;
    if tables.read_present(at, again) && again != copy {
        faults.protect(at, copy.len(), false)?;
        return Ok(true);
    }
    forget(at, copy.len())?;
    Ok(false)
}

/// Drops pages in state `Leaving`.
fn forget(at: usize, len: usize) -> Result<(), FaultError> {
    let pages = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: the pages are far memory in state `Leaving`: a touch is a fault that waits.
    Ok(unsafe { largesse_pages::forget(pages, len) }?)
}
