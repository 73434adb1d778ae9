//! Takes a snapshot of a machine from files below a root and, for this machine, from its processor.

use super::words::whole_memory;
use crate::doctor::probe;
use largesse_machine::clock::CoreClock;
use largesse_machine::cycles::{Counter, CounterSource};
use largesse_machine::topology::{Cache, Holds, NumaNode, Unreadable};
use largesse_machine::{Bitmap, Topology, instructions, pin, unread};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const THP: &str = "sys/kernel/mm/transparent_hugepage";
const POOLS: &str = "sys/kernel/mm/hugepages";

/// All facts about a machine that need no measurement of memory.
#[derive(Debug)]
pub(super) struct MachineSnapshot {
    pub(super) processor: String,
    pub(super) kernel: String,
    pub(super) topology: Topology,
    pub(super) pages: PageSizes,
    /// Facts that are in no file of the kernel, for this machine only.
    pub(super) live: Option<Live>,
}

/// The page sizes and their settings.
#[derive(Debug, Serialize)]
pub(super) struct PageSizes {
    /// Bytes of a base page.
    pub(super) base: u64,
    /// Transparent huge pages, by size.
    pub(super) thp: Vec<Thp>,
    /// Path of the setting of transparent huge pages if it cannot be read.
    pub(super) thp_unread: Option<String>,
    pub(super) pools: Vec<HugetlbPool>,
    /// Path of the directory of the pools if it cannot be read.
    pub(super) pools_unread: Option<PathBuf>,
}

/// One size of transparent huge pages, in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Thp {
    pub(super) size: u64,
    /// The setting: always, inherit, madvise or never.
    pub(super) mode: String,
}

/// The pool of one size, in bytes, of hugetlb pages.
#[derive(Debug, Serialize)]
pub(super) struct HugetlbPool {
    pub(super) size: u64,
    /// Number of pages, or `None` if it cannot be read, as `free`.
    pub(super) pages: Option<u64>,
    pub(super) free: Option<u64>,
}

/// Facts about this process and its processor.
#[derive(Debug)]
pub(super) struct Live {
    /// Processors that the control group permits.
    pub(super) cpus: Bitmap,
    /// Processors to which this process is pinned, or all permitted ones; measurements use only these.
    pub(super) pinned: Bitmap,
    pub(super) nodes: Option<Bitmap>,
    pub(super) counter: Counter,
    pub(super) clock: Option<CoreClock>,
    pub(super) instructions: Vec<&'static str>,
}

impl MachineSnapshot {
    /// Takes a snapshot of the machine below `root`; the processor is asked only if that is `/`.
    pub(super) fn read(root: &Path) -> Result<MachineSnapshot, Unreadable> {
        let live = (root == Path::new("/")).then(|| {
            let counter = Counter::calibrate();
            let cpus = pin::permitted();
            Live {
                pinned: pin::current().unwrap_or_else(|_| cpus.clone()),
                cpus,
                nodes: pin::permitted_nodes(root),
                clock: CoreClock::measure(&counter),
                counter,
                instructions: instructions::here(),
            }
        });
        Ok(MachineSnapshot {
            processor: match unread::trimmed(root, "proc/cpuinfo") {
                Ok(cpuinfo) => processor(&cpuinfo.unwrap_or_default()),
                Err(_) => "a processor whose name is not known".to_owned(),
            },
            kernel: match unread::trimmed(root, "proc/sys/kernel/osrelease").ok().flatten() {
                None if root == Path::new("/") => probe::kernel_release(),
                release => release.unwrap_or_default(),
            },
            topology: Topology::read(root)?,
            pages: PageSizes::read(root),
            live,
        })
    }

    pub(super) fn json(&self) -> Value {
        let topology = &self.topology;
        // Null where the kernel does not tell.
        let sets = |sets: &[Bitmap]| {
            (!sets.is_empty()).then(|| sets.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let live = self.live.as_ref().map(|live| {
            let precision = live.counter.precision();
            json!({
                "permitted_cpus": live.cpus.to_string(),
                "pinned_cpus": live.pinned.to_string(),
                "permitted_nodes": live.nodes.as_ref().map(ToString::to_string),
                "counter": {
                    "source": source(&live.counter),
                    "hertz": live.counter.hertz(),
                    "uncertainty": precision.uncertainty,
                    "overhead_ticks": precision.overhead.count(),
                    "step_ticks": precision.step.count(),
                    "fallback": live.counter.fallback().map(|why| why.to_string()),
                },
                "core_clock": live.clock.map(|clock| json!({
                    "hertz": clock.hertz, "spread": clock.spread, "cycles_per_tick": clock.per_tick(&live.counter),
                })),
                "instructions": live.instructions,
            })
        });
        json!({
            "processor": self.processor,
            "kernel": self.kernel,
            "online": topology.online.to_string(),
            "packages": sets(&topology.packages),
            "dies": sets(&topology.dies),
            "cores": sets(&topology.cores),
            "kinds": topology.kinds.iter().map(|kind| json!({ "name": kind.name, "cpus": kind.cpus.to_string() })).collect::<Vec<_>>(),
            "caches": (!topology.caches.is_empty()).then(|| topology.caches.iter().map(cache).collect::<Vec<_>>()),
            "nodes": topology.nodes_are_known.then(|| topology.nodes.iter().map(node).collect::<Vec<_>>()),
            "bytes": whole_memory(topology),
            "unread": topology.unread,
            "pages": self.pages,
            "here": live,
        })
    }
}

fn cache(cache: &Cache) -> Value {
    let known = |bytes: u64| (bytes > 0).then_some(bytes);
    json!({
        "level": cache.level, "holds": holds(cache.kind), "cpus": cache.cpus.to_string(),
        "bytes": known(cache.size), "line": known(cache.line), "ways": cache.ways,
    })
}

fn node(node: &NumaNode) -> Value {
    let distances = node.distances.iter().map(|(to, distance)| json!({ "to": to, "distance": distance }));
    json!({
        "number": node.number, "cpus": node.cpus.to_string(), "bytes": node.memory, "free_bytes": node.free, "side_cache_bytes": node.side_cache,
        "distances": distances.collect::<Vec<_>>(),
    })
}

fn holds(kind: Holds) -> &'static str {
    match kind {
        Holds::Data => "data",
        Holds::Instructions => "instructions",
        Holds::Both => "both",
    }
}

/// Returns the name of the counter's source.
pub(super) fn source(counter: &Counter) -> &'static str {
    match counter.source() {
        CounterSource::Tsc => "TSC",
        CounterSource::VirtualCounter => "CNTVCT",
        CounterSource::Clock => "clock_gettime",
    }
}

impl PageSizes {
    fn read(root: &Path) -> PageSizes {
        let text = |path: String| unread::trimmed(root, &path).ok().flatten();
        let number = |path: String| text(path)?.parse::<u64>().ok();
        let (sized, pools_unread) = match unread::names(root, POOLS) {
            Ok(names) => (sizes(names), None),
            Err(unread) => (Vec::new(), Some(unread.file().to_owned())),
        };
        let pools = sized.into_iter().map(|(size, name)| HugetlbPool {
            size,
            pages: number(format!("{POOLS}/{name}/nr_hugepages")),
            free: number(format!("{POOLS}/{name}/free_hugepages")),
        });
        let mode = |path: String| Some(text(path)?.split_once('[')?.1.split_once(']')?.0.to_owned());
        let sized = sizes(unread::names(root, THP).ok().flatten()).into_iter();
        let mut thp: Vec<Thp> = sized
            .filter_map(|(size, name)| Some(Thp { size, mode: mode(format!("{THP}/{name}/enabled"))? }))
            .collect();
        let system_wide = mode(format!("{THP}/enabled"));
        let large = number(format!("{THP}/hpage_pmd_size"));
        if let (Some(mode), Some(size)) = (system_wide, large) {
            match thp.iter_mut().find(|it| it.size == size) {
                Some(it) if it.mode == "inherit" => it.mode = mode,
                Some(_) => {}
                // Before Linux 6.8 there is one size and one setting.
                None => thp.push(Thp { size, mode }),
            }
        }
        thp.sort_by_key(|it| it.size);
        let is_unread = root == Path::new("/") && largesse_pages::thp_mode() == largesse_pages::Thp::Unknown;
        let thp_unread = is_unread.then(|| format!("/{THP}/enabled"));
        PageSizes {
            base: largesse_pages::base_page() as u64,
            thp,
            thp_unread,
            pools: pools.collect(),
            pools_unread,
        }
    }
}

/// Returns the names that are such as `hugepages-2048kB`, each with the bytes of its page, in order of size.
fn sizes(names: Option<Vec<String>>) -> Vec<(u64, String)> {
    let sized = names.into_iter().flatten().filter_map(|name| {
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some((kib << 10, name))
    });
    let mut sized: Vec<(u64, String)> = sized.collect();
    sized.sort_unstable();
    sized
}

/// Returns the name of the processor in `/proc/cpuinfo`, or for ARM its implementer and part numbers.
fn processor(cpuinfo: &str) -> String {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let arm = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(arm).unwrap_or_else(|| "a processor without a name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_name_follows_kernel() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: AMD EPYC: 1\n"), "AMD EPYC: 1");
        assert_eq!(processor("CPU implementer\t: 0x48\nCPU part\t: 0xd01\n"), "implementer 0x48 part 0xd01");
        assert_eq!(processor(""), "a processor without a name");
    }
}
