//! Selects processors from lists, masks and groups in the syntax of `taskset`, `numactl` and `likwid-pin`.
//!
//! # Picture
//! ```text
//!   0-3,8   0-14:2   !0-3   all   +0-3      numbers of the kernel; + counts within the permitted set
//!   0xff    0x1,80000000                    a mask in hexadecimal, the highest word first
//!   N:0-3   S0:0,2   M1   C2:0-1   D0:0     positions in the machine, a socket, a NUMA node, a cache, a die
//!   S:scatter                               one processor of each socket in turn, whole cores first
//!   E:N:4:1:2                               four processors: one of every two, the threads of a core together
//!   S0:0-1@S1:0-1                           several of these, in order
//! ```
//! The order is kept: the first thread of a program is pinned to the first processor, the second to the next.
//!
//! Within a group, place 0 is the first hardware thread of the first core, place 1 that of the second core, and so on;
//! the second hardware threads follow after the last core, as in likwid. Groups contain only processors that the
//! process is permitted to use.

use crate::{Bitmap, Topology};
use std::fmt;

/// Upper bound of the number of processors in a list. Linux supports fewer.
const END: usize = 1 << 16;

/// The reason for which a text selects no processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionError {
    /// This part of the text has none of the forms at the head of the module, such as `0-3` or `S0:0-1`.
    NotUnderstood(String),
    /// The machine has no group of this name.
    NoGroup {
        /// Name that was requested, such as `S2`.
        name: String,
        /// The names of the groups of this kind, such as `S0, S1`; empty if there are none.
        there: String,
    },
    /// The group has fewer processors than the place requires.
    NoPlace {
        /// Name of the group that was found.
        group: String,
        /// Place that was requested, counted from 0.
        place: u32,
        /// Number of processors of the group that may be used.
        len: usize,
    },
}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionError::NotUnderstood(part) => write!(
                f,
                "'{part}' is not a list of processors; write 0-3,8 or 0-14:2 or 0xff, or name a group: N:0-3 (machine), \
                 S0:0-3 (socket), M0:0-3 (NUMA node), C0 (last cache), D0 (die), S:scatter, E:N:4:1:2"
            ),
            SelectionError::NoGroup { name, there } if there.is_empty() => {
                write!(f, "there is no {name}: the kernel names no such groups on this machine")
            }
            SelectionError::NoGroup { name, there } => {
                write!(f, "there is no {name}; this machine has {there}")
            }
            SelectionError::NoPlace { group, place, len } => {
                write!(
                    f,
                    "{group} has {len} processors that may be used, so there is no place {place}; places count from 0"
                )
            }
        }
    }
}

impl std::error::Error for SelectionError {}

/// Returns the processors that `text` selects, in the order of the text, each of them once.
///
/// Numbers and masks are returned whether or not such processors exist, because pinning reports the missing ones.
///
/// ```
/// use largesse_machine::{Topology, pin, selection};
/// let here = Topology::read("/".as_ref())?;
/// assert_eq!(selection::select("0-6:3,1", &here, &pin::permitted())?, [0, 3, 6, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An error is returned for a text of another form, and for groups or places that do not exist. An empty text selects
/// nothing.
pub fn select(text: &str, machine: &Topology, permitted: &Bitmap) -> Result<Vec<u32>, SelectionError> {
    let mut selected = Vec::new();
    for part in text.trim().split('@').filter(|_| !text.trim().is_empty()) {
        for cpu in one_part(part.trim(), machine, permitted)? {
            if !selected.contains(&cpu) {
                selected.push(cpu);
            }
        }
    }
    Ok(selected)
}

fn one_part(part: &str, machine: &Topology, permitted: &Bitmap) -> Result<Vec<u32>, SelectionError> {
    let not_understood = || SelectionError::NotUnderstood(part.to_owned());
    let usable = machine.online.and(permitted);
    if let Some(digits) = part.strip_prefix("0x") {
        return Bitmap::from_mask(digits).map(|set| set.iter().collect()).map_err(|_| not_understood());
    }
    if part == "all" {
        return Ok(usable.iter().collect());
    }
    if let Some(places) = part.strip_prefix('+') {
        let places = numbers(places).ok_or_else(not_understood)?;
        return at_places("the permitted set", &usable.iter().collect::<Vec<_>>(), &places);
    }
    if let Some(rest) = part.strip_prefix('!') {
        let unwanted: Bitmap = numbers(rest).ok_or_else(not_understood)?.into_iter().collect();
        return Ok(usable.without(&unwanted).iter().collect());
    }
    if part.starts_with(|first: char| first.is_ascii_digit()) {
        return numbers(part).ok_or_else(not_understood);
    }
    let (group, places) = part.strip_prefix("L:").unwrap_or(part).split_once(':').unwrap_or((part, ""));
    match (group, places) {
        ("E", rest) => every(machine, &usable, rest),
        (kind, "scatter") => scatter(machine, &usable, kind),
        (group, _) if group == part => Ok(whole_cores_first(machine, &found(machine, &usable, group)?)),
        (group, places) => {
            let places = numbers(places).ok_or_else(not_understood)?;
            at_places(group, &whole_cores_first(machine, &found(machine, &usable, group)?), &places)
        }
    }
    .map_err(|error| match error {
        // The message shows the whole part that was typed.
        SelectionError::NotUnderstood(_) => not_understood(),
        error => error,
    })
}

/// Parses `0-3,8,10-20:5`: numbers, ranges, and ranges with a stride.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|&number| digits && (number as usize) < END)
    };
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (range, stride) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, stride) = (number(first)?, number(last)?, number(stride)?);
        if first > last || stride == 0 {
            return None;
        }
        all.extend((first..=last).step_by(stride as usize));
    }
    Some(all)
}

/// Returns the groups of a kind, each with its number and its usable processors. Returns `None` for a letter that
/// names no kind.
fn groups(machine: &Topology, usable: &Bitmap, kind: &str) -> Option<Vec<(u32, Bitmap)>> {
    let numbered = |sets: Vec<Bitmap>| (0_u32..).zip(sets).collect();
    let mut groups: Vec<(u32, Bitmap)> = match kind {
        "S" => numbered(machine.packages.clone()),
        "D" => numbered(machine.dies.clone()),
        "M" => machine.nodes.iter().map(|node| (node.number, node.cpus.clone())).collect(),
        "C" => {
            let last = machine.last_cache().map(|cache| cache.level);
            let of_last = machine.caches.iter().filter(|cache| Some(cache.level) == last);
            let mut sets: Vec<Bitmap> = of_last.map(|cache| cache.cpus.clone()).collect();
            sets.sort_by_key(Bitmap::first);
            numbered(sets)
        }
        _ => return None,
    };
    groups.iter_mut().for_each(|(_, cpus)| *cpus = cpus.and(usable));
    groups.retain(|(_, cpus)| !cpus.is_empty());
    Some(groups)
}

/// Returns the usable processors of a group such as `N`, `S0` or `M1`.
fn found(machine: &Topology, usable: &Bitmap, name: &str) -> Result<Bitmap, SelectionError> {
    if name == "N" {
        return Ok(usable.clone());
    }
    let not_understood = || SelectionError::NotUnderstood(name.to_owned());
    let (kind, number) = name.split_at_checked(1).ok_or_else(not_understood)?;
    let groups = groups(machine, usable, kind).ok_or_else(not_understood)?;
    let number: u32 = number.parse().map_err(|_| not_understood())?;
    let wanted = groups.iter().find(|(other, _)| *other == number);
    wanted.map(|(_, cpus)| cpus.clone()).ok_or_else(|| {
        let names: Vec<String> = groups.iter().map(|(number, _)| format!("{kind}{number}")).collect();
        SelectionError::NoGroup { name: name.to_owned(), there: names.join(", ") }
    })
}

/// Returns the processors of each core in `cpus`. Cores are in the order of their first processors.
fn by_core(machine: &Topology, cpus: &Bitmap) -> Vec<Vec<u32>> {
    let mut cores: Vec<Vec<u32>> = machine.cores.iter().map(|core| core.and(cpus).iter().collect()).collect();
    // A processor whose core the kernel does not name counts as a core of its own.
    let known: Bitmap = cores.iter().flatten().copied().collect();
    cores.extend(cpus.without(&known).iter().map(|cpu| vec![cpu]));
    cores.retain(|core| !core.is_empty());
    cores.sort_by_key(|core| core[0]);
    cores
}

/// Orders processors so that each core is used once before any is used twice.
fn whole_cores_first(machine: &Topology, cpus: &Bitmap) -> Vec<u32> {
    let cores = by_core(machine, cpus);
    let longest = cores.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|thread| cores.iter().filter_map(move |core| core.get(thread).copied())).collect()
}

fn at_places(group: &str, cpus: &[u32], places: &[u32]) -> Result<Vec<u32>, SelectionError> {
    let at = |&place: &u32| {
        let missing = SelectionError::NoPlace { group: group.to_owned(), place, len: cpus.len() };
        cpus.get(place as usize).copied().ok_or(missing)
    };
    places.iter().map(at).collect()
}

/// Parses `GROUP:COUNT[:CHUNK:STRIDE]`, and takes the first CHUNK of every STRIDE processors until there are COUNT.
/// The hardware threads of a core are neighbours in this order. CHUNK and STRIDE are 1 by default, and a STRIDE below
/// CHUNK counts as CHUNK.
fn every(machine: &Topology, usable: &Bitmap, text: &str) -> Result<Vec<u32>, SelectionError> {
    let not_understood = || SelectionError::NotUnderstood(text.to_owned());
    let (group, sizes) = text.split_once(':').ok_or_else(not_understood)?;
    let size = |text: &str| match numbers(text)?[..] {
        [size] if size > 0 => Some(size),
        _ => None,
    };
    let sizes: Option<Vec<u32>> = sizes.split(':').map(size).collect();
    let (count, chunk, stride) = match sizes.as_deref() {
        Some(&[count]) => (count, 1, 1),
        Some(&[count, chunk, stride]) => (count, chunk as usize, stride as usize),
        _ => return Err(not_understood()),
    };
    let cpus: Vec<u32> = by_core(machine, &found(machine, usable, group)?).concat();
    let chunks = cpus.chunks(stride.max(chunk));
    let taken: Vec<u32> = chunks.flat_map(|part| &part[..chunk.min(part.len())]).copied().collect();
    at_places(group, &taken, &(0..count).collect::<Vec<_>>())
}

/// Returns the processors of all groups of a kind: the first of each group, then the second of each, and so on.
fn scatter(machine: &Topology, usable: &Bitmap, kind: &str) -> Result<Vec<u32>, SelectionError> {
    let not_understood = || SelectionError::NotUnderstood(kind.to_owned());
    let groups = groups(machine, usable, kind).ok_or_else(not_understood)?;
    let lists: Vec<Vec<u32>> = groups.iter().map(|(_, cpus)| whole_cores_first(machine, cpus)).collect();
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    Ok((0..longest).flat_map(|place| lists.iter().filter_map(move |list| list.get(place).copied())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Cache, Holds, NumaNode};

    fn set(list: &str) -> Bitmap {
        list.parse().unwrap()
    }

    /// Returns a machine of two sockets, each of which is a NUMA node with two cores. Core n has the threads n and n +
    /// 4.
    fn machine() -> Topology {
        let sets = |lists: &[&str]| lists.iter().copied().map(set).collect::<Vec<Bitmap>>();
        let sockets = sets(&["0-1,4-5", "2-3,6-7"]);
        let cache = |cpus: &Bitmap| Cache {
            level: 3,
            kind: Holds::Both,
            cpus: cpus.clone(),
            size: 8 << 20,
            line: 64,
            ways: 16,
        };
        let node = |number, cpus: &Bitmap| NumaNode {
            number,
            cpus: cpus.clone(),
            memory: 1 << 30,
            free: 1 << 29,
            distances: vec![(0, 10), (1, 21)],
            side_cache: 0,
        };
        Topology {
            online: set("0-7"),
            packages: sockets.clone(),
            dies: sockets.clone(),
            kinds: Vec::new(),
            nodes_are_known: true,
            unread: Vec::new(),
            cores: sets(&["0,4", "1,5", "2,6", "3,7"]),
            caches: sockets.iter().map(cache).collect(),
            nodes: vec![node(0, &sockets[0]), node(3, &sockets[1])],
        }
    }

    #[track_caller]
    fn check(text: &str, permitted: &str, wanted: Result<&[u32], &str>) {
        let got = select(text, &machine(), &set(permitted)).map_err(|error| error.to_string());
        match wanted {
            Ok(wanted) => assert_eq!(got.as_deref(), Ok(wanted), "{text} of {permitted}"),
            Err(part) => {
                let error = got.expect_err(text);
                assert!(error.contains(part), "{text} of {permitted}: the message '{error}' lacks '{part}'");
            }
        }
    }

    #[test]
    fn numbers_keep_their_order() {
        check("0-3,6", "0-7", Ok(&[0, 1, 2, 3, 6]));
        check("6,0-1,0", "0-7", Ok(&[6, 0, 1]));
        check("0-6:2,7", "0-7", Ok(&[0, 2, 4, 6, 7]));
        check("9", "0-7", Ok(&[9]));
        check("", "0-7", Ok(&[]));
        check(" 1 , 2 ", "0-7", Ok(&[1, 2]));
    }

    #[test]
    fn masks_and_sets_are_selected() {
        check("0x5", "0-7", Ok(&[0, 2]));
        check("0x1,80000000", "0-7", Ok(&[31, 32]));
        check("all", "1-3", Ok(&[1, 2, 3]));
        check("!0-5", "0-7", Ok(&[6, 7]));
        check("+0,2", "4-7", Ok(&[4, 6]));
        check("+4", "4-7", Err("has 4 processors that may be used, so there is no place 4"));
    }

    #[test]
    fn groups_use_whole_cores_first() {
        check("N:0-5", "0-7", Ok(&[0, 1, 2, 3, 4, 5]));
        check("S1:0-3", "0-7", Ok(&[2, 3, 6, 7]));
        check("L:S1:0", "0-7", Ok(&[2]));
        check("M3", "0-7", Ok(&[2, 3, 6, 7]));
        check("C0:2", "0-7", Ok(&[4]));
        check("D1:0-2:2", "0-7", Ok(&[2, 6]));
        check("S0:0-1@S1:0-1", "0-7", Ok(&[0, 1, 2, 3]));
        check("S:scatter", "0-7", Ok(&[0, 2, 1, 3, 4, 6, 5, 7]));
        check("S0:0-1", "4-7", Ok(&[4, 5]));
    }

    #[test]
    fn expressions_keep_core_threads_together() {
        check("E:N:4", "0-7", Ok(&[0, 4, 1, 5]));
        check("E:N:4:1:2", "0-7", Ok(&[0, 1, 2, 3]));
        check("E:S1:2:1:2", "0-7", Ok(&[2, 3]));
        check("E:N:4:2:4", "0-7", Ok(&[0, 4, 2, 6]));
        check("E:S0:5", "0-7", Err("S0 has 4 processors that may be used, so there is no place 4"));
    }

    #[test]
    fn unknown_names_are_refused() {
        check("S2", "0-7", Err("there is no S2; this machine has S0, S1"));
        check("M1:0", "0-7", Err("there is no M1; this machine has M0, M3"));
        check("S1:0", "0-1", Err("there is no S1; this machine has S0"));
        for text in [
            "0-", "3-1", "1,x", "0,,1", "65536", "-1", "+1x", "0-3:0", "X0", "E:N", "E:N:0", "S0:", "0xg",
            "é:0",
        ] {
            check(text, "0-7", Err("is not a list of processors; write 0-3,8"));
        }
    }
}
