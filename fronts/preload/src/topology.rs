//! What the machine is made of, for callers in C (`include/largesse.h`).
//!
//! Not `Inside` our code: reading a folder asks the C library for memory.

use crate::control::hand_out;
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

fn here() -> Option<Topology> {
    Topology::read(Path::new("/")).ok()
}

/// Processors that are online.
///
/// # Safety
/// `out` points to `capacity` structures of `out[0].struct_size` bytes each, or `capacity` is 0.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_cpus(out: *mut Cpu, capacity: usize) -> usize {
    let Some(here) = here() else { return 0 };
    let permitted = pin::permitted();
    let place = |sets: &[largesse_machine::Bitmap], cpu| {
        sets.iter().position(|set| set.contains(cpu)).map_or(0, |place| place as u32)
    };
    let all: Vec<Cpu> = here
        .online
        .iter()
        .map(|cpu| Cpu {
            struct_size: size_of::<Cpu>(),
            cpu,
            core: place(&here.cores, cpu),
            package: place(&here.packages, cpu),
            node: here.node_of(cpu).and_then(|node| i32::try_from(node.number).ok()).unwrap_or(-1),
            permitted: u32::from(permitted.contains(cpu)),
        })
        .collect();
    // SAFETY: the caller's promise.
    unsafe { copy(out, capacity, &all) }
}

/// Nodes that are online.
///
/// # Safety
/// As [`largesse_cpus`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_nodes(out: *mut Node, capacity: usize) -> usize {
    let Some(here) = here() else { return 0 };
    let all: Vec<Node> = here
        .nodes
        .iter()
        .map(|node| Node {
            struct_size: size_of::<Node>(),
            node: node.number,
            cpus: node.cpus.len() as u32,
            bytes: node.memory,
            free_bytes: node.free,
        })
        .collect();
    // SAFETY: the caller's promise.
    unsafe { copy(out, capacity, &all) }
}

/// From node to node.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_distance(from: c_int, to: c_int) -> c_int {
    let number = |node: c_int| u32::try_from(node).ok();
    let distance = || {
        let here = here()?;
        let (from, to) = (number(from)?, number(to)?);
        here.nodes.iter().find(|node| node.number == from)?.distance_to(to)
    };
    distance().and_then(|distance| c_int::try_from(distance).ok()).unwrap_or(-1)
}

/// # Safety
/// `out` points to `capacity` structures of `out[0].struct_size` bytes each, or `capacity` is 0.
unsafe fn copy<T: Copy>(out: *mut T, capacity: usize, all: &[T]) -> usize {
    if out.is_null() || capacity == 0 {
        return all.len();
    }
    // SAFETY: the caller's promise: the structure starts with its size.
    let size = unsafe { out.cast::<usize>().read() };
    for (number, one) in all.iter().take(capacity).enumerate() {
        // SAFETY: `number < capacity` structures of `size` bytes, by the caller's promise.
        let place = unsafe { out.cast::<u8>().add(number * size).cast::<T>() };
        // SAFETY: as above; later structures get the size of the first.
        unsafe { place.cast::<usize>().write_unaligned(size) };
        // SAFETY: as above.
        unsafe { hand_out(place, *one) };
    }
    all.len()
}
