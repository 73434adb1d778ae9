//! Makes the system calls that set and report the NUMA nodes of memory.
#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of the kernel's interface")]

use super::files::{copy_readable, read_file};
use super::linux::checked;
use crate::Placement;
use crate::placement::ThreadPolicy;
use core::ffi::{c_int, c_long};
use core::ptr::NonNull;

/// Number of 64-bit words in a mask of nodes: for 1024 nodes, the most that Linux can be built for.
const NODE_WORDS: usize = 16;
/// The value for the kernel's parameter `maxnode`: the number of bits in a mask, plus one, because the kernel
/// decrements it.
const MAX_NODE: usize = NODE_WORDS * 64 + 1;
const MPOL_DEFAULT: c_long = 0;
const MPOL_PREFERRED: c_long = 1;
const MPOL_BIND: c_long = 2;
const MPOL_INTERLEAVE: c_long = 3;

/// Returns the kernel's mode and mask of nodes for a placement, or `None` for first touch, which is the default.
fn policy(placement: Placement) -> Result<Option<(c_long, [u64; NODE_WORDS])>, i32> {
    let mut mask = [0_u64; NODE_WORDS];
    let (mode, node) = match placement {
        Placement::FirstTouch => return Ok(None),
        Placement::Interleave => {
            nodes_with_memory(&mut mask);
            return Ok(Some((MPOL_INTERLEAVE, mask)));
        }
        Placement::Node(node) => (MPOL_BIND, node),
    };
    *mask.get_mut(node as usize / 64).ok_or(libc::EINVAL)? |= 1 << (node % 64);
    Ok(Some((mode, mask)))
}

pub(crate) fn place(at: NonNull<u8>, len: usize, placement: Placement) -> Result<(), i32> {
    let Some((mode, mask)) = policy(placement)? else { return Ok(()) };
    bind(at, len, mode, &mask, 0)
}

/// Moves resident pages to a node, and binds pages that are touched later to it. The error is `EIO` if some could not
/// be moved.
pub(crate) fn migrate(at: NonNull<u8>, len: usize, node: u32) -> Result<(), i32> {
    const MPOL_MF_STRICT: c_long = 1;
    const MPOL_MF_MOVE: c_long = 2;
    let Some((_, mask)) = policy(Placement::Node(node))? else { return Ok(()) };
    bind(at, len, MPOL_BIND, &mask, MPOL_MF_MOVE | MPOL_MF_STRICT)
}

fn bind(
    at: NonNull<u8>,
    len: usize,
    mode: c_long,
    mask: &[u64; NODE_WORDS],
    flags: c_long,
) -> Result<(), i32> {
    // SAFETY: the mask has `MAX_NODE - 1` bits, and placing changes no contents.
    let rc =
        unsafe { libc::syscall(libc::SYS_mbind, at.as_ptr(), len, mode, mask.as_ptr(), MAX_NODE, flags) };
    checked(rc as c_int)
}

/// Sets the NUMA policy of the calling thread, which survives `exec`.
pub(crate) fn place_thread(policy: ThreadPolicy<'_>) -> Result<(), i32> {
    let (mode, nodes) = match policy {
        ThreadPolicy::Local => (MPOL_DEFAULT, &[][..]),
        ThreadPolicy::Preferred(nodes) => (MPOL_PREFERRED, nodes),
        ThreadPolicy::Bind(nodes) => (MPOL_BIND, nodes),
        ThreadPolicy::Interleave(nodes) => (MPOL_INTERLEAVE, nodes),
    };
    let mut mask = [0_u64; NODE_WORDS];
    mask.get_mut(..nodes.len()).ok_or(libc::EINVAL)?.copy_from_slice(nodes);
    // SAFETY: the mask has `MAX_NODE - 1` bits.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), MAX_NODE) } as c_int)
}

/// Writes to `nodes[i]` the node of the page at address `at[i]` of process `pid`, or a negated errno if the page is
/// not resident.
pub(crate) fn nodes_of(pid: i32, at: &[u64], nodes: &mut [i32]) -> Result<(), i32> {
    debug_assert_eq!(at.len(), nodes.len());
    let none = core::ptr::null::<c_int>();
    let count = at.len().min(nodes.len());
    // SAFETY: without target nodes `move_pages` only reports; both arrays have `count` elements.
    let rc =
        unsafe { libc::syscall(libc::SYS_move_pages, pid, count, at.as_ptr(), none, nodes.as_mut_ptr(), 0) };
    checked(rc as c_int)
}

/// Reads the byte at `address` of this process. Returns `false` if it is inaccessible or not mapped.
pub(crate) fn read_byte(address: *mut u8) -> bool {
    copy_readable(address.addr(), &mut [0]) == 1
}

/// Sets the bits of the nodes that have memory, which the kernel lists in a form such as `0-1,3`.
fn nodes_with_memory(mask: &mut [u64]) {
    let mut text = [0; 256];
    let list = read_file(c"/sys/devices/system/node/has_memory", &mut text).unwrap_or(b"0");
    let mut number = 0_usize;
    let mut first = None;
    for &byte in list.iter().chain(b",") {
        match byte {
            b'0'..=b'9' => number = number.saturating_mul(10) + usize::from(byte - b'0'),
            b'-' => first = Some(core::mem::take(&mut number)),
            b',' => {
                let last = core::mem::take(&mut number);
                for node in first.take().unwrap_or(last)..=last {
                    if let Some(word) = mask.get_mut(node / 64) {
                        *word |= 1 << (node % 64);
                    }
                }
            }
            _ => {}
        }
    }
}
