//! Defines the parts of a machine, and answers questions about them.

use crate::Bitmap;
use std::fmt;
use std::path::PathBuf;

/// The parts of a machine that are online and that the kernel reports.
///
/// ```
/// use largesse_machine::Topology;
/// let here = Topology::read("/".as_ref())?;
/// assert!(here.nodes.iter().any(|node| node.distance_to(node.number) == Some(10)));
/// # Ok::<(), largesse_machine::topology::Unreadable>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Processors that run programs. (These are hardware threads, which the kernel calls CPUs.)
    pub online: Bitmap,
    /// Sockets, in order of their first processor; empty if the kernel does not report them.
    pub packages: Vec<Bitmap>,
    /// Dies; the same as packages if the kernel does not report them.
    pub dies: Vec<Bitmap>,
    /// Cores, of several processors each with simultaneous multithreading; empty if the kernel does not report them.
    pub cores: Vec<Bitmap>,
    /// Kinds of cores, the fastest first; empty if all are alike or the kernel does not report them.
    pub kinds: Vec<CoreKind>,
    /// Caches, in ascending order of level.
    pub caches: Vec<Cache>,
    /// NUMA nodes, in order of number; a single one if the kernel reports none.
    pub nodes: Vec<NumaNode>,
    /// Whether the kernel reports nodes; otherwise the one in `nodes` is an assumption.
    pub nodes_are_known: bool,
    /// Files that may exist and could not be read, so that what they say is missing here.
    pub unread: Vec<PathBuf>,
}

/// A cache of the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// Level of the cache; 1 is nearest to the core.
    pub level: u32,
    /// Contents of the cache: data, instructions, or both.
    pub kind: Holds,
    /// Processors that share the cache.
    pub cpus: Bitmap,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    /// Size of a cache line in bytes; 0 if unknown.
    pub line: u64,
    /// Number of ways of associativity; 0 if unknown or fully associative.
    pub ways: u64,
}

/// One kind of cores of a machine with several kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreKind {
    /// Name of the kind: `performance`, `middle`, `efficiency`, or `low power`.
    pub name: &'static str,
    /// Processors of all cores of this kind.
    pub cpus: Bitmap,
}

/// The contents of a cache: data, instructions, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// The cache holds data only.
    Data,
    /// The cache holds instructions only.
    Instructions,
    /// The cache holds data and instructions.
    Both,
}

/// A NUMA node: memory, and the processors nearest to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaNode {
    /// Number of the node, given by the kernel.
    pub number: u32,
    /// Processors of the node. The set is empty for memory without processors (CXL, HBM, a GPU's).
    pub cpus: Bitmap,
    /// Size of the node's memory in bytes, 0 for processors without memory; `None` if unknown.
    pub memory: Option<u64>,
    /// Number of bytes of the node's memory that were free when the topology was read; `None` if unknown.
    pub free: Option<u64>,
    /// Size in bytes of the memory-side cache (high-bandwidth memory in front of other memory); 0 if there is none.
    pub side_cache: u64,
    /// Number of each online node and the distance to it: 10 is this node, 20 twice as far.
    pub distances: Vec<(u32, u32)>,
}

impl NumaNode {
    /// Returns the distance to another node, if the kernel reports it.
    #[must_use]
    pub fn distance_to(&self, node: u32) -> Option<u32> {
        self.distances.iter().find(|(number, _)| *number == node).map(|(_, distance)| *distance)
    }
}

impl Topology {
    /// Returns the node with this number. If it has no memory or does not exist, the error lists the others, as
    /// [`Topology::nodes_with_memory`] does.
    pub fn node(&self, number: u32) -> Result<&NumaNode, NoSuchNode> {
        let found = self.nodes.iter().find(|node| node.number == number && node.memory != Some(0));
        found.ok_or_else(|| NoSuchNode { node: number, nodes: self.nodes_with_memory() })
    }

    /// Returns the nodes on which memory can be placed, with those whose memory is not known: the kernel refuses these
    /// if they have none.
    #[must_use]
    pub fn nodes_with_memory(&self) -> Bitmap {
        self.nodes.iter().filter(|node| node.memory != Some(0)).map(|node| node.number).collect()
    }

    /// Returns the node of a processor.
    #[must_use]
    pub fn node_of(&self, cpu: u32) -> Option<&NumaNode> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu))
    }

    /// Returns the cache of this level that a processor uses for data.
    #[must_use]
    pub fn data_cache(&self, cpu: u32, level: u32) -> Option<&Cache> {
        let of_data = |cache: &&Cache| cache.level == level && cache.kind != Holds::Instructions;
        self.caches.iter().filter(of_data).find(|cache| cache.cpus.contains(cpu))
    }

    /// Returns the largest cache of the last level that holds data.
    #[must_use]
    pub fn last_cache(&self) -> Option<&Cache> {
        self.caches
            .iter()
            .filter(|cache| cache.kind != Holds::Instructions)
            .max_by_key(|cache| (cache.level, cache.size))
    }
}

/// The error for a node on which memory cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchNode {
    /// Number of the requested node.
    pub node: u32,
    /// Numbers of the nodes that have memory.
    pub nodes: Bitmap,
}

impl fmt::Display for NoSuchNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NUMA node {} does not exist, or has no memory; with memory: {}", self.node, self.nodes)
    }
}

impl std::error::Error for NoSuchNode {}
