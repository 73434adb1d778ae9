//! Where threads run and memory lies, for callers in C (`include/largesse.h`).
//!
//! Not `Inside` our code: starting a thread, reading a folder and their like ask the C library for memory.

use crate::control::{BAD_ARGUMENT, NOT_SUPPORTED};
use crate::refusal::answer;
use crate::signals::Blocked;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Display;
use core::ptr::null_mut;
use largesse_machine::{Bitmap, Topology, pin};
use largesse_pages::placement::{each_node, migrate, place, whole_pages};
use largesse_pages::{MapError, PageKind, Placement, SPAN};
use std::path::Path;

/// Stay on some processors.
///
/// # Safety
/// `cpus` is NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_pin(cpus: *const c_char, whole_process: c_int) -> c_int {
    let _blocked = Blocked::handlers();
    if cpus.is_null() {
        return answer(Err((BAD_ARGUMENT, &"no processor was named")));
    }
    // SAFETY: the caller's promise, and not NULL.
    let text = unsafe { CStr::from_ptr(cpus) }.to_string_lossy();
    let cpus: Bitmap = match text.parse() {
        Ok(cpus) => cpus,
        Err(error) => return answer(Err((BAD_ARGUMENT, &error))),
    };
    let done = if whole_process == 0 { pin::thread(&cpus) } else { pin::process(&cpus) };
    match done {
        Ok(()) => {
            if whole_process != 0 {
                crate::kernels::remember();
            }
            answer(Ok(()))
        }
        Err(error @ pin::PinError::Empty) => answer(Err((BAD_ARGUMENT, &error))),
        Err(error) => answer(Err((NOT_SUPPORTED, &error))),
    }
}

/// Memory on one node.
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
        // SAFETY: mapped just now, and nobody knows it.
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

/// Spread what is touched from now on over all nodes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_interleave(address: *mut c_void, bytes: usize) -> c_int {
    let _blocked = Blocked::handlers();
    let Some((address, len)) = whole_pages(address, bytes) else { return no_page() };
    match place(address, len, Placement::Interleave) {
        Ok(()) => answer(Ok(())),
        Err(error) => answer(Err((NOT_SUPPORTED, &error))),
    }
}

/// Put what is there, and what will be, on a node.
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

/// The node of each page.
///
/// # Safety
/// `nodes` has room for `capacity` numbers, or is NULL.
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
            // SAFETY: `number < wanted <= capacity` numbers, by the caller's promise.
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
        write!(f, "{} is no NUMA node", self.0)
    }
}

/// The kernel's one number for many reasons, taken apart.
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
