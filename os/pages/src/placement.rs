//! Sets the NUMA policy of memory before its first touch, migrates pages afterwards, and looks up their nodes.
//!
//! Any memory of this process can be placed; its contents do not change. Addresses and lengths are whole pages. For a
//! block that is not, [`whole_pages`] returns the pages inside it, so that its neighbours are not moved.

use crate::{MapError, MapOp, Placement, sys};
use core::ffi::c_void;
use core::ptr::NonNull;

/// Number of pages passed to one `move_pages` call.
const AT_ONCE: usize = 512;

/// Returns the address and the total length of the pages that lie wholly in `[address, address + len)`, or `None` if
/// there are none.
#[must_use]
pub fn whole_pages(address: *mut c_void, len: usize) -> Option<(*mut c_void, usize)> {
    let page = sys::base_page();
    let skip = address.addr().next_multiple_of(page) - address.addr();
    let inside = len.checked_sub(skip)? & !(page - 1);
    (inside > 0).then(|| (address.wrapping_byte_add(skip), inside))
}

/// Sets the NUMA policy of pages that are touched from now on in a mapping.
///
/// The error is `EINVAL` for a node that does not exist or that the control group does not permit, and for an address
/// inside a page.
pub fn place(address: *mut c_void, len: usize, placement: Placement) -> Result<(), MapError> {
    let refused = |errno| MapError { op: MapOp::Place, len, errno };
    let start = NonNull::new(address.cast::<u8>()).ok_or(refused(libc::EFAULT))?;
    sys::place(start, len, placement).map_err(refused)
}

/// Moves the resident pages of a mapping to `node`, and binds pages that are touched later to that node.
///
/// The error is `EIO` if some pages could not be moved, because they are shared or in use by a device. All others were
/// moved.
pub fn migrate(address: *mut c_void, len: usize, node: u32) -> Result<(), MapError> {
    let refused = |errno| MapError { op: MapOp::Migrate, len, errno };
    let start = NonNull::new(address.cast::<u8>()).ok_or(refused(libc::EFAULT))?;
    sys::migrate(start, len, node).map_err(refused)
}

/// The NUMA policy of a thread. Sets of nodes are words of 64 bits, with node 0 in the lowest bit of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPolicy<'a> {
    /// Each page lies on the node of the processor that touches it first. This is the kernel's default.
    Local,
    /// Pages lie on these nodes while they have free memory, then on others. Before Linux 5.15 only the lowest node
    /// counts.
    Preferred(&'a [u64]),
    /// Pages lie on these nodes, without fallback to others.
    Bind(&'a [u64]),
    /// Pages are distributed round-robin over these nodes.
    Interleave(&'a [u64]),
}

/// Sets the NUMA policy of the calling thread, and of threads and programs that it starts.
///
/// The error is `EINVAL` for a node that does not exist or that the control group does not permit, and for an empty
/// set.
pub fn place_thread(policy: ThreadPolicy<'_>) -> Result<(), MapError> {
    sys::place_thread(policy).map_err(|errno| MapError { op: MapOp::Place, len: 0, errno })
}

/// Calls `f` for each page of `[address, address + len)` with the page's number in the range and its node, or `None`
/// for a page that is not resident.
///
/// Kernels before 6.6 do not report pages that automatic NUMA balancing has marked to see which node uses them. Such
/// pages are read once, which removes the mark, and looked up again.
pub fn each_node(
    address: *mut c_void,
    len: usize,
    f: &mut dyn FnMut(usize, Option<u32>),
) -> Result<(), MapError> {
    let page = sys::base_page();
    let first = address.addr() & !(page - 1);
    let pages = (address.addr() + len).div_ceil(page) - first / page;
    let (mut at, mut nodes) = ([0_u64; AT_ONCE], [0_i32; AT_ONCE]);
    for from in (0..pages).step_by(AT_ONCE) {
        let count = AT_ONCE.min(pages - from);
        for (number, at) in (from..).zip(&mut at[..count]) {
            *at = (first + number * page) as u64;
        }
        let (at, nodes) = (&at[..count], &mut nodes[..count]);
        let refused = |errno| MapError { op: MapOp::Inspect, len, errno };
        sys::nodes_of(0, at, nodes).map_err(refused)?;
        if nodes.contains(&-libc::ENOENT) && read_unreported(at[0], nodes) {
            sys::nodes_of(0, at, nodes).map_err(refused)?;
        }
        for (number, node) in (from..).zip(nodes.iter()) {
            f(number, u32::try_from(*node).ok());
        }
    }
    Ok(())
}

/// Reads a byte of each page from address `start` on that is resident although `nodes` says it is not. Returns whether
/// there was such a page.
fn read_unreported(start: u64, nodes: &[i32]) -> bool {
    let Ok(address) = usize::try_from(start) else { return false };
    let page = sys::base_page();
    let first = core::ptr::with_exposed_provenance_mut::<u8>(address);
    let mut any = false;
    let mut read = |offset: usize| {
        if nodes[offset / page] == -libc::ENOENT {
            any |= sys::read_byte(first.wrapping_byte_add(offset));
        }
    };
    if let Some(first) = NonNull::new(first) {
        sys::each_resident(first, nodes.len() * page, &mut read);
    }
    any
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{PageKind, Reserved, SPAN, base_page};

    #[test]
    fn whole_pages_excludes_partial_pages() {
        let page = base_page();
        let at = |address: usize| core::ptr::without_provenance_mut::<c_void>(address);
        let whole = |address, len| whole_pages(at(address), len).map(|(at, len)| (at.addr(), len));
        assert_eq!(whole(page, 2 * page), Some((page, 2 * page)));
        assert_eq!(whole(page + 1, 2 * page), Some((2 * page, page)));
        assert_eq!(whole(page + 1, page), None);
        assert_eq!(whole(page, page - 1), None);
        assert_eq!(whole(page - 1, 0), None);
    }

    #[test]
    fn only_touched_pages_have_nodes() {
        let range = Reserved::new(2 * SPAN, SPAN).unwrap();
        range.commit(0, 2 * SPAN, PageKind::Small).unwrap();
        let (page, start) = (base_page(), range.start());
        let last = 2 * SPAN / page - 1;
        // SAFETY: the range was committed above.
        unsafe { start.add(last * page).write(1) };
        let (mut seen, mut touched) = (0, None);
        let asked = each_node(start.as_ptr().cast(), 2 * SPAN, &mut |number, node| {
            assert_eq!(number, seen);
            seen += 1;
            touched = node.map(|_| number).or(touched);
        });
        assert_eq!((asked, seen, touched), (Ok(()), 2 * SPAN / page, Some(last)));
    }

    #[test]
    fn unreported_pages_are_read_once() {
        let (page, range) = (base_page(), Reserved::new(SPAN, SPAN).unwrap());
        range.commit(0, SPAN, PageKind::Small).unwrap();
        let start = range.start();
        // SAFETY: the range was committed above.
        unsafe { start.add(page).write(1) };
        let at = start.as_ptr().expose_provenance() as u64;
        let absent = -libc::ENOENT;
        assert!(read_unreported(at, &[absent, absent, absent]), "page 1 is resident but was not read");
        assert!(
            !read_unreported(at, &[absent, 0, absent]),
            "page 1 is reported, and no other page is resident"
        );
        let mut nodes = [0; 3];
        let pages: [u64; 3] = core::array::from_fn(|number| at + (number * page) as u64);
        sys::nodes_of(0, &pages, &mut nodes).unwrap();
        assert_eq!((nodes[0], nodes[2]), (absent, absent), "pages that were never touched became resident");
        range.guard(0, SPAN).unwrap();
        assert!(!read_unreported(at, &[absent, absent]), "an inaccessible page was read");
    }

    #[test]
    fn missing_node_is_refused() {
        let range = Reserved::new(SPAN, SPAN).unwrap();
        let start = range.start().as_ptr().cast();
        for node in [1023, 1024, u32::MAX] {
            assert_eq!(place(start, SPAN, Placement::Node(node)).unwrap_err().errno, libc::EINVAL, "{node}");
            assert_eq!(migrate(start, SPAN, node).unwrap_err().errno, libc::EINVAL, "{node}");
        }
        assert_eq!(
            place(core::ptr::null_mut(), SPAN, Placement::Interleave).unwrap_err().errno,
            libc::EFAULT
        );
    }
}
