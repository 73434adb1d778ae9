//! Exports the placement of threads and memory to callers in C (`include/largesse.h`).
//!
//! The calls run outside the guard `Inside`, because starting a thread and reading a folder allocate from the C
//! library.

use crate::refusal::answer;
use crate::signals::Blocked;
use crate::status::{BAD_ARGUMENT, NOT_SUPPORTED};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Display;
use core::ptr::null_mut;
use largesse_machine::selection::{SelectionError, select_here};
use largesse_machine::{Bitmap, Topology, pin, process};
use largesse_pages::placement::{each_node, migrate, place, whole_pages};
use largesse_pages::{MapError, PageKind, Placement, SPAN};
use std::path::Path;

/// Binds the calling thread, or with `whole_process` all threads, to the processors that `cpus` selects as for
/// `largesse pin --cpus`.
///
/// # Safety
/// `cpus` must be NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_pin(cpus: *const c_char, whole_process: c_int) -> c_int {
    let _blocked = Blocked::handlers();
    if cpus.is_null() {
        return answer(Err((BAD_ARGUMENT, &"no processor was named")));
    }
    // SAFETY: the caller's promise, and not NULL.
    let text = unsafe { CStr::from_ptr(cpus) }.to_string_lossy();
    let cpus: Bitmap = match select_here(&text) {
        Ok(cpus) => cpus.into_iter().collect(),
        // A form that has a meaning, on another machine.
        Err(error) if !matches!(error, SelectionError::NotUnderstood(_)) => {
            return answer(Err((NOT_SUPPORTED, &error)));
        }
        Err(error) => return answer(Err((BAD_ARGUMENT, &error))),
    };
    let done = if whole_process == 0 {
        process::binding_one_thread(|| pin::thread(&cpus))
    } else {
        pin::process(&cpus)
    };
    match done {
        Ok(()) => {
            if whole_process != 0 {
                process::remember();
            }
            answer(Ok(()))
        }
        Err(error @ pin::PinError::Empty) => answer(Err((BAD_ARGUMENT, &error))),
        Err(error) => answer(Err((NOT_SUPPORTED, &error))),
    }
}

/// Maps `bytes` on one node, on large pages where one fits; returns NULL if that is refused.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_alloc_on_node(bytes: usize, node: c_int) -> *mut c_void {
    let _blocked = Blocked::handlers();
    let Ok(number) = u32::try_from(node) else {
        answer(Err((BAD_ARGUMENT, &NoNode(node))));
        return null_mut();
    };
    let len = bytes.checked_next_multiple_of(largesse_pages::base_page()).filter(|len| *len > 0);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let Some((address, len)) =
        len.and_then(|len| Some((largesse_pages::map_aligned(len, SPAN, protection, 0)?, len)))
    else {
        answer(Err((NOT_SUPPORTED, &"there is no memory of that size")));
        return null_mut();
    };
    if let Err(error) = place(address, len, Placement::Node(number)) {
        // SAFETY: the mapping is new, and no other code has its address.
        unsafe { largesse_pages::raw_munmap(address, len) };
        refused(number, error);
        return null_mut();
    }
    if len >= SPAN {
        // A kernel without large pages serves small ones.
        let _ = largesse_pages::advise_mapping(address, len, PageKind::Thp);
    }
    answer(Ok(()));
    address
}

/// Spreads the pages of a range that are touched from now on over all nodes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_interleave(address: *mut c_void, bytes: usize) -> c_int {
    let _blocked = Blocked::handlers();
    let Some((address, len)) = whole_pages(address, bytes) else { return no_page() };
    match place(address, len, Placement::Interleave) {
        Ok(()) => answer(Ok(())),
        Err(error) => answer(Err((NOT_SUPPORTED, &error))),
    }
}

/// Moves the resident pages of a range to a node, and places those touched from now on there.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_move(address: *mut c_void, bytes: usize, node: c_int) -> c_int {
    let _blocked = Blocked::handlers();
    let Ok(number) = u32::try_from(node) else { return answer(Err((BAD_ARGUMENT, &NoNode(node)))) };
    let Some((address, len)) = whole_pages(address, bytes) else { return no_page() };
    match migrate(address, len, number) {
        Ok(()) => answer(Ok(())),
        Err(error) => refused(number, error),
    }
}

/// Writes the node of each page to `nodes`, -1 for pages not touched, and returns the number of pages.
///
/// # Safety
/// `nodes` must have room for `capacity` numbers, or be NULL.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_where(
    address: *const c_void,
    bytes: usize,
    nodes: *mut i32,
    capacity: usize,
) -> usize {
    let _blocked = Blocked::handlers();
    let page = largesse_pages::base_page();
    let first = address.addr() / page;
    let pages = address.addr().saturating_add(bytes).div_ceil(page).saturating_sub(first);
    let wanted = if nodes.is_null() { 0 } else { capacity.min(pages) };
    if wanted > 0 {
        let from = core::ptr::without_provenance_mut(first * page);
        let put = |number: usize, node: Option<u32>| {
            let node = node.and_then(|node| i32::try_from(node).ok()).unwrap_or(-1);
            // SAFETY: `number < wanted <= capacity`, and the caller promises room for `capacity` numbers.
            unsafe { nodes.add(number).write(node) };
        };
        (0..wanted).for_each(|number| put(number, None));
        if let Err(error) = each_node(from, wanted * page, &mut |number, node| put(number, node)) {
            answer(Err((NOT_SUPPORTED, &error)));
            return pages;
        }
    }
    answer(Ok(()));
    pages
}

fn no_page() -> c_int {
    answer(Err((BAD_ARGUMENT, &"no whole page lies in that memory")))
}

struct NoNode(c_int);

impl Display for NoNode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} is not a NUMA node", self.0)
    }
}

/// Records why the kernel refused `node`, since the kernel's error number alone is ambiguous.
fn refused(node: u32, error: MapError) -> c_int {
    let root = Path::new("/");
    if let Ok(Err(missing)) = Topology::read(root).map(|here| here.node(node).map(drop)) {
        return answer(Err((NOT_SUPPORTED, &missing)));
    }
    let permitted = pin::permitted_nodes(root).filter(|nodes| !nodes.contains(node));
    if let Some(nodes) = permitted {
        let why = format!(
            "this process may not have memory on node {node}: its control group (cpuset) permits {nodes}"
        );
        return answer(Err((NOT_SUPPORTED, &why)));
    }
    match error.errno {
        libc::EIO => answer(Err((
            NOT_SUPPORTED,
            &"some pages could not be moved: they are shared, or in use by a device",
        ))),
        libc::EPERM | libc::ENOSYS => {
            let why = format!("{error}: a container's filter of system calls (seccomp) forbids mbind");
            answer(Err((NOT_SUPPORTED, &why)))
        }
        _ => answer(Err((NOT_SUPPORTED, &error))),
    }
}
