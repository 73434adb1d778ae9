//! What the machine is made of, for callers in C (`include/largesse.h`).
//!
//! Not `Inside` our code: reading a folder asks the C library for memory.

use crate::handed_out::{REFUSED, Structure, fill_all};
use crate::signals::Blocked;
use core::ffi::c_int;
use largesse_machine::{Topology, pin};
use std::path::Path;

/// `largesse_cpu_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    struct_size: usize,
    cpu: u32,
    core: u32,
    package: u32,
    node: i32,
    permitted: u32,
}

// SAFETY: `repr(C)`, and begins with its size.
unsafe impl Structure for Cpu {
    const FIRST: usize = size_of::<Cpu>();
}

/// `largesse_node_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Node {
    struct_size: usize,
    node: u32,
    cpus: u32,
    bytes: u64,
    free_bytes: u64,
}

// SAFETY: `repr(C)`, and begins with its size.
unsafe impl Structure for Node {
    const FIRST: usize = size_of::<Node>();
}

fn here() -> Option<Topology> {
    Topology::read(Path::new("/")).ok()
}

/// Processors that are online.
///
/// # Safety
/// `out` points to `capacity` structures of `out[0].struct_size` bytes each, or `capacity` is 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_cpus(out: *mut Cpu, capacity: usize) -> usize {
    let _blocked = Blocked::handlers();
    // SAFETY: the caller's promise.
    let Some(here) = here() else { return unsafe { list(out, capacity, &[]) } };
    let permitted = pin::permitted();
    let place = |sets: &[largesse_machine::Bitmap], cpu| {
        sets.iter().position(|set| set.contains(cpu)).map_or(u32::MAX, |place| place as u32)
    };
    let all: Vec<Cpu> = here
        .online
        .iter()
        .map(|cpu| Cpu {
            struct_size: size_of::<Cpu>(),
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

/// Nodes that are online.
///
/// # Safety
/// As [`largesse_cpus`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_nodes(out: *mut Node, capacity: usize) -> usize {
    let _blocked = Blocked::handlers();
    // SAFETY: the caller's promise.
    let Some(here) = here() else { return unsafe { list(out, capacity, &[]) } };
    let all: Vec<Node> = here
        .nodes
        .iter()
        .filter(|_| here.nodes_are_known)
        .map(|node| Node {
            struct_size: size_of::<Node>(),
            node: node.number,
            cpus: node.cpus.len() as u32,
            bytes: node.memory,
            free_bytes: node.free,
        })
        .collect();
    // SAFETY: the caller's promise.
    unsafe { list(out, capacity, &all) }
}

/// From node to node.
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

/// Fills in the caller's array; returns how many there are, or [`REFUSED`].
///
/// # Safety
/// As [`largesse_cpus`].
unsafe fn list<T: Structure>(out: *mut T, capacity: usize, all: &[T]) -> usize {
    // SAFETY: the caller's promise.
    if unsafe { fill_all(out, capacity, all.iter().copied()) } { all.len() } else { REFUSED }
}
