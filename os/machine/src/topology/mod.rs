//! Packages, dies, cores, caches and NUMA nodes: each one is the set of processors it holds.

mod files;
mod kinds;
mod nodes;
mod read;

use crate::Bitmap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What a machine is made of, as far as it is online and the kernel says so.
///
/// ```
/// use largesse_machine::Topology;
/// let here = Topology::read("/".as_ref())?;
/// assert!(here.nodes.iter().any(|node| node.distance_to(node.number) == Some(10)));
/// # Ok::<(), largesse_machine::topology::Unreadable>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Processors that run programs (the kernel's "CPUs": hardware threads).
    pub online: Bitmap,
    /// Sockets, in order of their first processor; none where the kernel does not say which processors form one.
    pub packages: Vec<Bitmap>,
    /// Dies; as many as packages where the kernel names none.
    pub dies: Vec<Bitmap>,
    /// Cores: more than one processor each with simultaneous multithreading; none where the kernel does not say.
    pub cores: Vec<Bitmap>,
    /// Kinds of cores, the fastest first; none where all are alike or the kernel does not say.
    pub kinds: Vec<Kind>,
    /// Caches, those of level 1 first.
    pub caches: Vec<Cache>,
    /// NUMA nodes, by number; one where the kernel knows none.
    pub nodes: Vec<Node>,
    /// Whether the kernel says which nodes there are; if not, the one in `nodes` is an assumption.
    pub nodes_are_known: bool,
    /// Files that could not be read and are not absent: what they would say is left out.
    pub unread: Vec<PathBuf>,
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cache {
    /// 1 is nearest.
    pub level: u32,
    /// What it holds.
    pub kind: Holds,
    /// Who shares it.
    pub cpus: Bitmap,
    /// Bytes.
    pub size: u64,
    /// Bytes that move together; 0: not known.
    pub line: u64,
    /// Places a line can be in; 0: not known, or any.
    pub ways: u64,
}

/// Cores that are alike, on a processor that has several kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// `performance`, `middle`, `efficiency`, or `low power`.
    pub name: &'static str,
    /// Their processors.
    pub cpus: Bitmap,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Data only.
    Data,
    /// Instructions only.
    Instructions,
    /// Both.
    Both,
}

/// Memory, and the processors that are nearest to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number.
    pub number: u32,
    /// Its processors; none for memory without any (CXL, HBM, a GPU's).
    pub cpus: Bitmap,
    /// Bytes of its memory; 0 for processors without any.
    pub memory: u64,
    /// Of these, free at the moment.
    pub free: u64,
    /// Bytes of the cache in front of its memory (high-bandwidth memory in front of others'); 0: none.
    pub side_cache: u64,
    /// Distance to each node that is online, by number: 10 is local, 20 twice as far.
    pub distances: Vec<(u32, u32)>,
}

impl Node {
    /// The distance to another node.
    #[must_use]
    pub fn distance_to(&self, node: u32) -> Option<u32> {
        self.distances.iter().find(|(number, _)| *number == node).map(|(_, distance)| *distance)
    }
}

impl Topology {
    /// Reads `sys` below `root`: `/` for this machine, a folder for a saved one.
    pub fn read(root: &Path) -> Result<Topology, Unreadable> {
        read::topology(root)
    }

    /// A node, or which ones there are.
    pub fn node(&self, number: u32) -> Result<&Node, NoSuchNode> {
        let found = self.nodes.iter().find(|node| node.number == number && node.memory > 0);
        found.ok_or_else(|| NoSuchNode { node: number, nodes: self.nodes_with_memory() })
    }

    /// Nodes that memory can be placed on.
    #[must_use]
    pub fn nodes_with_memory(&self) -> Bitmap {
        self.nodes.iter().filter(|node| node.memory > 0).map(|node| node.number).collect()
    }

    /// The node a processor belongs to.
    #[must_use]
    pub fn node_of(&self, cpu: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu))
    }

    /// The cache of this level that a processor's data go through.
    #[must_use]
    pub fn data_cache(&self, cpu: u32, level: u32) -> Option<&Cache> {
        let of_data = |cache: &&Cache| cache.level == level && cache.kind != Holds::Instructions;
        self.caches.iter().filter(of_data).find(|cache| cache.cpus.contains(cpu))
    }

    /// The largest cache that a processor may use alone or with others, of the last level.
    #[must_use]
    pub fn last_cache(&self) -> Option<&Cache> {
        self.caches
            .iter()
            .filter(|cache| cache.kind != Holds::Instructions)
            .max_by_key(|cache| (cache.level, cache.size))
    }
}

/// Memory cannot be placed on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchNode {
    /// The node asked for.
    pub node: u32,
    /// Those with memory.
    pub nodes: Bitmap,
}

impl fmt::Display for NoSuchNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NUMA node {} does not exist, or has no memory; with memory: {}", self.node, self.nodes)
    }
}

impl std::error::Error for NoSuchNode {}

/// What a topology is read from is not there, or says something else.
#[derive(Debug)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What was wrong with it.
    pub why: Why,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum Why {
    /// It could not be read.
    Io(io::Error),
    /// It is not what the kernel writes there.
    Text(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Io(error) => write!(f, "{}: {error}", self.path.display()),
            Why::Text(text) => write!(f, "{} holds '{text}'", self.path.display()),
        }
    }
}

impl std::error::Error for Unreadable {}
