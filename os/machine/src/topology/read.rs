//! Reads `/sys/devices/system/cpu`, which `Documentation/ABI/stable/sysfs-devices-system-cpu` describes.
//!
//! Masks are read instead of lists, because every kernel has them. Newer names of a file are tried first (`core_cpus`,
//! Linux 5.3), then older ones (`thread_siblings`). Parts of the machine without a file are left out, never guessed.

use super::files::Files;
use super::model::{Cache, Holds, Topology};
use super::unreadable::Unreadable;
use super::{kinds, nodes};
use crate::Bitmap;
use std::path::Path;

const CPU: &str = "sys/devices/system/cpu";

impl Topology {
    /// Reads the topology from `sys` and `proc` below `root`: `/` for this machine, or the folder of a saved one.
    pub fn read(root: &Path) -> Result<Topology, Unreadable> {
        topology(root)
    }
}

fn topology(root: &Path) -> Result<Topology, Unreadable> {
    let files = Files::below(root);
    let online = online(&files)?;
    let (mut packages, mut dies, mut cores, mut caches) = (vec![], vec![], vec![], vec![]);
    for cpu in online.iter() {
        let here = |names: &[&str]| group(&files, cpu, names, &online);
        let core = here(&["core_cpus", "thread_siblings"])?.map(|core| one_core(&files, cpu, &core));
        let package = here(&["package_cpus", "core_siblings"])?;
        // A kernel without dies has the number -1 for them, and one processor on each.
        let no_die = files.text(&format!("{CPU}/cpu{cpu}/topology/die_id")).is_none_or(|id| id == "-1");
        let die = if no_die { None } else { here(&["die_cpus"])? }.or_else(|| package.clone());
        for index in files.numbered(&format!("{CPU}/cpu{cpu}/cache"), "index").iter() {
            let folder = format!("{CPU}/cpu{cpu}/cache/index{index}");
            let cache = cache(&files, &folder, cpu, core.as_ref(), &online)?;
            let of_its_kind = |it: &Cache, new: &Cache| (it.level, it.kind) == (new.level, new.kind);
            add(&mut caches, cache, |it, new| of_its_kind(it, new) && it.cpus.intersects(&new.cpus));
        }
        for (set, sets) in [(package, &mut packages), (die, &mut dies), (core, &mut cores)] {
            add(sets, set, Bitmap::intersects);
        }
    }
    caches.sort_by_key(|cache: &Cache| (cache.level, cache.kind, cache.cpus.first()));
    Ok(Topology {
        nodes: nodes::nodes(&files, &online)?,
        nodes_are_known: nodes::are_known(&files, !cores.is_empty()),
        kinds: kinds::kinds(&files, &online)?,
        online,
        packages,
        dies,
        cores,
        caches,
        unread: files.unread(),
    })
}

/// Returns the online processors: those in the kernel's list, else (before Linux 2.6.26, or if `/sys` is hidden) the
/// processors with a folder, else those in `/proc/cpuinfo`.
fn online(files: &Files<'_>) -> Result<Bitmap, Unreadable> {
    let list = format!("{CPU}/online");
    if let Some(online) = files.list(&list)? {
        return Ok(online);
    }
    let described = |cpu: &u32| {
        files.path(&format!("{CPU}/cpu{cpu}/topology")).is_dir()
            && files.text(&format!("{CPU}/cpu{cpu}/online")).is_none_or(|text| text != "0")
    };
    let folders: Bitmap = files.numbered(CPU, "cpu").iter().filter(described).collect();
    if !folders.is_empty() {
        return Ok(folders);
    }
    let counted = counted(&files.text("proc/cpuinfo").unwrap_or_default());
    if counted.is_empty() { Err(files.missing(&list)) } else { Ok(counted) }
}

/// Returns the processors' numbers in lines such as `processor : 3`, or `processor 3: version = FF` (s390).
fn counted(cpuinfo: &str) -> Bitmap {
    let number = |line: &str| {
        let (name, value) = line.strip_prefix("processor")?.split_once(':')?;
        [name, value].iter().find_map(|text| text.trim().parse::<u32>().ok())
    };
    cpuinfo.lines().filter_map(number).filter(|number| *number < crate::bitmap::END).collect()
}

/// Adds a set of processors that one processor reports, unless it overlaps a set in `to`: sets of one kind are equal
/// or disjoint.
fn add<T>(to: &mut Vec<T>, one: Option<T>, overlap: impl Fn(&T, &T) -> bool) {
    if let Some(one) = one
        && !to.iter().any(|it| overlap(it, &one))
    {
        to.push(one);
    }
}

/// Returns the threads of `core` whose core number is that of `cpu`. Before Linux 4.11 the kernel took the two cores
/// of a module that share a floating-point unit (AMD family 15h) for threads of one core.
fn one_core(files: &Files<'_>, cpu: u32, core: &Bitmap) -> Bitmap {
    let number = |cpu| files.text(&format!("{CPU}/cpu{cpu}/topology/core_id"));
    let own = number(cpu);
    core.iter().filter(|it| *it == cpu || number(*it) == own).collect()
}

/// Returns the online processors of the first mask file among `names` that exists for `cpu`.
fn group(files: &Files<'_>, cpu: u32, names: &[&str], online: &Bitmap) -> Result<Option<Bitmap>, Unreadable> {
    for name in names {
        if let Some(set) = files.mask(&format!("{CPU}/cpu{cpu}/topology/{name}"))? {
            let set = set.and(online);
            return Ok((!set.is_empty()).then_some(set));
        }
    }
    Ok(None)
}

/// Reads a cache of a processor. If the kernel's mask of processors is empty (Itanium), the cache is that of the
/// processor's core.
fn cache(
    files: &Files<'_>,
    folder: &str,
    cpu: u32,
    core: Option<&Bitmap>,
    online: &Bitmap,
) -> Result<Option<Cache>, Unreadable> {
    let Some(kind) = files.text(&format!("{folder}/type")) else { return Ok(None) };
    let kind = match kind.as_str() {
        "Data" => Holds::Data,
        "Instruction" => Holds::Instructions,
        "Unified" => Holds::Both,
        _ => return Err(files.unlike(&format!("{folder}/type"), &kind)),
    };
    let level = files.number(&format!("{folder}/level"))?;
    let shared = files.mask(&format!("{folder}/shared_cpu_map"))?.unwrap_or_default().and(online);
    let own = || core.cloned().unwrap_or_else(|| [cpu].into_iter().collect());
    Ok(Some(Cache {
        level: u32::try_from(level)
            .map_err(|_| files.unlike(&format!("{folder}/level"), &level.to_string()))?,
        kind,
        cpus: if shared.is_empty() { own() } else { shared },
        size: files.number(&format!("{folder}/size"))?,
        line: files.number(&format!("{folder}/coherency_line_size"))?,
        ways: files.number(&format!("{folder}/ways_of_associativity"))?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_in_cpuinfo() {
        for (text, want) in [
            ("processor\t: 0\nmodel name\t: x: y\n\nprocessor\t: 3\n", "0,3"),
            ("processor 0: version = FF\nprocessor 1: version = FF\n", "0-1"),
            ("Processor\t: ARMv7\nprocessor\t: 1\n", "1"),
            ("", ""),
        ] {
            assert_eq!(counted(text).to_string(), want, "{text}");
        }
    }
}
