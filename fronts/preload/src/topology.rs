//! Exports the machine's processors and NUMA nodes to callers in C (`include/largesse.h`).
//!
//! The calls run outside the guard `Inside`, because reading a folder allocates from the C library.

use crate::handed_out::{REFUSED, Structure, fill_all};
use crate::signals::Blocked;
use core::ffi::c_int;
use largesse_machine::{Topology, pin};
use std::path::Path;

/// Mirrors `largesse_cpu_t` of `largesse.h` field by field.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CpuInfo {
    struct_size: usize,
    cpu: u32,
    core: u32,
    package: u32,
    node: i32,
    permitted: u32,
}

// SAFETY: it is `repr(C)`, and its first field is its size.
unsafe impl Structure for CpuInfo {
    const FIRST: usize = size_of::<CpuInfo>();
}

/// Mirrors `largesse_node_t` of `largesse.h` field by field.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NodeInfo {
    struct_size: usize,
    node: u32,
    cpus: u32,
    bytes: u64,
    free_bytes: u64,
}

// SAFETY: it is `repr(C)`, and its first field is its size.
unsafe impl Structure for NodeInfo {
    const FIRST: usize = size_of::<NodeInfo>();
}

fn here() -> Option<Topology> {
    Topology::read(Path::new("/")).ok()
}

/// Writes descriptions of at most `capacity` online processors to `out`, and returns the number of all, or [`REFUSED`].
///
/// # Safety
/// `out` must point to `capacity` structures of `out[0].struct_size` bytes each, or `capacity` be 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_cpus(out: *mut CpuInfo, capacity: usize) -> usize {
    let _blocked = Blocked::handlers();
    // SAFETY: the caller's promise.
    let Some(here) = here() else { return unsafe { list(out, capacity, &[]) } };
    let permitted = pin::permitted();
    let place = |sets: &[largesse_machine::Bitmap], cpu| {
        sets.iter().position(|set| set.contains(cpu)).map_or(u32::MAX, |place| place as u32)
    };
    let all: Vec<CpuInfo> = here
        .online
        .iter()
        .map(|cpu| CpuInfo {
            struct_size: size_of::<CpuInfo>(),
            cpu,
            core: place(&here.cores, cpu),
            package: place(&here.packages, cpu),
            node: here
                .node_of(cpu)
                .filter(|_| here.nodes_are_known)
                .and_then(|node| i32::try_from(node.number).ok())
                .unwrap_or(-1),
            permitted: u32::from(permitted.contains(cpu)),
        })
        .collect();
    // SAFETY: the caller's promise.
    unsafe { list(out, capacity, &all) }
}

/// Writes descriptions of at most `capacity` online nodes to `out`, and returns the number of all, or [`REFUSED`].
///
/// # Safety
/// The requirements are those of [`largesse_cpus`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_nodes(out: *mut NodeInfo, capacity: usize) -> usize {
    let _blocked = Blocked::handlers();
    // SAFETY: the caller's promise.
    let Some(here) = here() else { return unsafe { list(out, capacity, &[]) } };
    let all: Vec<NodeInfo> = here
        .nodes
        .iter()
        .filter(|_| here.nodes_are_known)
        .map(|node| NodeInfo {
            struct_size: size_of::<NodeInfo>(),
            node: node.number,
            cpus: node.cpus.len() as u32,
            bytes: node.memory.unwrap_or(u64::MAX),
            free_bytes: node.free.unwrap_or(u64::MAX),
        })
        .collect();
    // SAFETY: the caller's promise.
    unsafe { list(out, capacity, &all) }
}

/// Returns the distance between two nodes, 10 within a node; -1 if it is unknown.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_distance(from: c_int, to: c_int) -> c_int {
    let _blocked = Blocked::handlers();
    let number = |node: c_int| u32::try_from(node).ok();
    let distance = || {
        let here = here()?;
        let (from, to) = (number(from)?, number(to)?);
        here.nodes.iter().find(|node| node.number == from)?.distance_to(to)
    };
    distance().and_then(|distance| c_int::try_from(distance).ok()).unwrap_or(-1)
}

/// Copies the structures `all` to the caller's array, and returns their number, or [`REFUSED`].
///
/// # Safety
/// The requirements are those of [`largesse_cpus`].
unsafe fn list<T: Structure>(out: *mut T, capacity: usize, all: &[T]) -> usize {
    // SAFETY: the caller's promise.
    if unsafe { fill_all(out, capacity, all.iter().copied()) } { all.len() } else { REFUSED }
}
