//! Places the memory of the program on NUMA nodes.

use largesse_machine::selection::{SelectionError, select_nodes};
use largesse_machine::topology::NoSuchNode;
use largesse_machine::{Bitmap, Topology, pin};
use largesse_pages::MapError;
use largesse_pages::placement::{self, ThreadPolicy};
use largesse_terminal::say::complain;
use std::io;
use std::path::Path;

/// A requested memory policy, with lists of nodes as they were typed.
#[derive(Debug)]
pub(super) enum Policy {
    Bind(String),
    Interleave(String),
    Preferred(u32),
    Local,
}

/// The reason why memory cannot be placed as requested.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlacementError {
    #[error(transparent)]
    Selection(SelectionError),
    #[error("no NUMA node was named: give a list such as 0-1, or all")]
    Empty,
    #[error(transparent)]
    NoSuchNode(NoSuchNode),
    #[error(
        "this process may not have memory on node {nodes}: its control group (cpuset) permits {permitted}"
    )]
    NotPermitted { nodes: Bitmap, permitted: Bitmap },
    #[error("memory cannot be placed: {}", refusal(.0))]
    Kernel(MapError),
}

/// Says why the kernel refused a policy.
fn refusal(error: &MapError) -> String {
    match error.errno {
        libc::EPERM | libc::ENOSYS => {
            "a container's filter of system calls (seccomp) forbids set_mempolicy".to_owned()
        }
        errno => io::Error::from_raw_os_error(errno).to_string(),
    }
}

/// Sets the memory policy of this thread, which the program inherits at `exec`. If `machine` is `None`, the kernel
/// alone refuses nodes that do not exist.
pub(super) fn place(policy: &Policy, machine: Option<&Topology>) -> Result<(), PlacementError> {
    let listed = |text: &str| checked(list(text, machine.map(usable).as_ref())?, machine);
    let set = |policy| placement::place_thread(policy).map_err(PlacementError::Kernel);
    match policy {
        Policy::Local => set(ThreadPolicy::Local),
        Policy::Preferred(node) => {
            set(ThreadPolicy::Preferred(checked([*node].into_iter().collect(), machine)?.words()))
        }
        Policy::Bind(text) => set(ThreadPolicy::Bind(listed(text)?.words())),
        Policy::Interleave(text) => {
            let nodes = listed(text)?;
            if nodes.len() == 1 {
                complain!("largesse: --interleave changes nothing: node {nodes} is the only one");
            }
            set(ThreadPolicy::Interleave(nodes.words()))
        }
    }
}

/// Checks that memory may be placed on all of `nodes`.
fn checked(nodes: Bitmap, machine: Option<&Topology>) -> Result<Bitmap, PlacementError> {
    if let Some(machine) = machine {
        if let Some(absent) = nodes.without(&machine.nodes_with_memory()).first() {
            machine.node(absent).map_err(PlacementError::NoSuchNode)?;
        }
        let permitted = usable(machine);
        let refused = nodes.without(&permitted);
        if !refused.is_empty() {
            return Err(PlacementError::NotPermitted { nodes: refused, permitted });
        }
    }
    if nodes.is_empty() { Err(PlacementError::Empty) } else { Ok(nodes) }
}

/// Returns the nodes with memory that the cpuset of this process permits.
fn usable(machine: &Topology) -> Bitmap {
    let all = machine.nodes_with_memory();
    pin::permitted_nodes(Path::new("/")).map_or_else(|| all.clone(), |permitted| permitted.and(&all))
}

/// Returns the processors of the nodes in a list.
pub(super) fn cpus_of(text: &str, machine: Option<&Topology>) -> Result<Bitmap, PlacementError> {
    let machine = machine.ok_or(PlacementError::Selection(SelectionError::NodesNotKnown))?;
    let there: Bitmap = machine.nodes.iter().map(|node| node.number).collect();
    let nodes = list(text, Some(&there))?;
    if let Some(node) = nodes.without(&there).first() {
        return Err(PlacementError::NoSuchNode(NoSuchNode { node, nodes: there }));
    }
    let all = machine.nodes.iter().filter(|node| nodes.contains(node.number));
    let cpus: Bitmap = all.flat_map(|node| node.cpus.iter()).collect();
    // CPUs outside the cpuset are left out, as numactl does: the user named nodes, not each CPU.
    Ok(cpus.and(&pin::permitted()))
}

fn list(text: &str, usable: Option<&Bitmap>) -> Result<Bitmap, PlacementError> {
    select_nodes(text, usable).map_err(PlacementError::Selection)
}
