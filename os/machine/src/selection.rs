//! Selects processors from lists, masks and groups in the syntax of `taskset`, `numactl` and `likwid-pin`, and NUMA nodes
//! in that of `numactl`.
//!
//! # Picture
//! ```text
//!   0-3,8   0-14:2   !0-3   all   +0-3      numbers of the kernel; + counts within the permitted set
//!   0xff    0x1,80000000                    a mask in hexadecimal, the highest word first
//!   N:0-3   S0:0,2   M1   C2:0-1   D0:0     positions in the machine, a socket, a NUMA node, a cache, a die
//!   S:scatter                               one processor of each socket in turn, whole cores first
//!   E:N:4:1:2                               four processors: one of every two, the threads of a core together
//!   S0:0-1@S1:0-1                           several of these, in order
//!
//!   0-1,3   all   !1   +0   !+0             nodes; + counts within the usable nodes
//! ```
//! The order is kept: the first thread of a program is pinned to the first processor, the second to the next.
//!
//! Within a group, place 0 is the first hardware thread of the first core, place 1 that of the second core, and so on;
//! the second hardware threads follow after the last core, as in likwid. Groups contain only processors that the
//! process is permitted to use.

use crate::topology::Unreadable;
use crate::{Bitmap, Topology, pin};
use std::fmt;
use std::path::Path;

/// Upper bound of the number of processors in a list. Linux supports fewer.
const END: usize = 1 << 16;

/// The reason for which a text selects no processors or nodes.
#[derive(Debug)]
pub enum SelectionError {
    /// This part of the text has none of the forms at the head of the module, such as `0-3` or `S0:0-1`.
    NotUnderstood(String),
    /// The text is not a list of NUMA nodes.
    NotNodes(String),
    /// The text is relative to the machine's NUMA nodes, and these are not known.
    NodesNotKnown,
    /// The text names groups of the machine, which cannot be read.
    Unread(Unreadable),
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
        /// Number of processors, or nodes, of the group that may be used.
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
            SelectionError::NotNodes(part) => write!(
                f,
                "'{part}' is not a list of NUMA nodes; write 0-1,3 or all, or !1 (all but 1), or +0 (the first one \
                 that may be used)"
            ),
            SelectionError::NodesNotKnown => write!(
                f,
                "the NUMA nodes of this machine are not known, because /sys/devices/system/node cannot be read; write \
                 their numbers, such as 0-1"
            ),
            SelectionError::Unread(error) => error.fmt(f),
            SelectionError::NoGroup { name, there } if there.is_empty() => {
                write!(f, "there is no {name}: the kernel names no such groups on this machine")
            }
            SelectionError::NoGroup { name, there } => {
                write!(f, "there is no {name}; this machine has {there}")
            }
            SelectionError::NoPlace { group, place, len } => {
                write!(
                    f,
                    "{group} has {len} that may be used, so there is no place {place}; places count from 0"
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
        selected.extend(one_part(part.trim(), machine, permitted)?);
    }
    Ok(unique(selected))
}

/// Returns the processors that `text` selects on this machine, as [`select`] does. Numbers and masks need no topology,
/// which may be unreadable.
///
/// # Errors
/// An error is returned as by [`select`], and for a group if the topology cannot be read.
pub fn select_here(text: &str) -> Result<Vec<u32>, SelectionError> {
    let text = text.trim();
    match absolute(text) {
        Some(cpus) => Ok(unique(cpus)),
        None => {
            let machine = Topology::read(Path::new("/")).map_err(SelectionError::Unread)?;
            select(text, &machine, &pin::permitted())
        }
    }
}

/// Returns the NUMA nodes that `text` selects, of which `usable` are those that may be used; `None` if they are not known.
///
/// Numbers are returned whether or not such nodes exist.
///
/// # Errors
/// An error is returned for a text of another form, for a place that does not exist, and for a text that is relative to
/// nodes that are not known. An empty text selects nothing.
pub fn select_nodes(text: &str, usable: Option<&Bitmap>) -> Result<Bitmap, SelectionError> {
    let text = text.trim();
    if let Some(nodes) = if text.is_empty() { Some(Vec::new()) } else { numbers(text) } {
        return Ok(nodes.into_iter().collect());
    }
    if !is_nodes(text) {
        return Err(SelectionError::NotNodes(text.to_owned()));
    }
    let usable = usable.ok_or(SelectionError::NodesNotKnown)?;
    match relative(text, usable, "the set of nodes") {
        Some(nodes) => nodes.map(|nodes| nodes.into_iter().collect()),
        None => Err(SelectionError::NotNodes(text.to_owned())),
    }
}

/// Returns whether `text` is a list of NUMA nodes in one of the forms at the head of the module.
#[must_use]
pub fn is_nodes(text: &str) -> bool {
    let list = text.strip_prefix('!').unwrap_or(text);
    list == "all" || numbers(list.strip_prefix('+').unwrap_or(list)).is_some()
}

/// Returns the numbers of a text that is not relative to the machine: a list, or a mask. Returns `None` for other texts.
fn absolute(text: &str) -> Option<Vec<u32>> {
    match text.strip_prefix("0x") {
        Some(digits) => Bitmap::from_mask(digits).ok().map(|set| set.iter().collect()),
        None if text.is_empty() => Some(Vec::new()),
        None => numbers(text),
    }
}

/// Returns the numbers of a text that is relative to `usable`, which messages call `set`: `all`, `+LIST`, and `!` before
/// these or a list. Returns `None` for other texts.
fn relative(text: &str, usable: &Bitmap, set: &str) -> Option<Result<Vec<u32>, SelectionError>> {
    if text == "all" {
        return Some(Ok(usable.iter().collect()));
    }
    if let Some(places) = text.strip_prefix('+') {
        return Some(at_places(set, &usable.iter().collect::<Vec<_>>(), &numbers(places)?));
    }
    let unwanted = text.strip_prefix('!')?;
    let unwanted = match numbers(unwanted) {
        Some(list) => Ok(list),
        None if unwanted.starts_with('!') => return None,
        None => relative(unwanted, usable, set)?,
    };
    Some(unwanted.map(|list| usable.without(&list.into_iter().collect()).iter().collect()))
}

/// Returns the numbers without repetitions, in the order in which they first occur.
fn unique(numbers: Vec<u32>) -> Vec<u32> {
    let mut seen = Bitmap::new();
    numbers
        .into_iter()
        .filter(|&number| {
            !seen.contains(number) && {
                seen.insert(number);
                true
            }
        })
        .collect()
}

fn one_part(part: &str, machine: &Topology, permitted: &Bitmap) -> Result<Vec<u32>, SelectionError> {
    let not_understood = || SelectionError::NotUnderstood(part.to_owned());
    let usable = machine.online.and(permitted);
    if part.starts_with(|first: char| first.is_ascii_digit()) {
        return absolute(part).ok_or_else(not_understood);
    }
    if part == "all" || part.starts_with(['+', '!']) {
        return relative(part, &usable, "the permitted set").ok_or_else(not_understood)?;
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
            memory: Some(1 << 30),
            free: Some(1 << 29),
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
        check("!+0,1", "4-7", Ok(&[6, 7]));
        check("!all", "4-7", Ok(&[]));
        check("+4", "4-7", Err("has 4 that may be used, so there is no place 4"));
    }

    #[track_caller]
    fn nodes(text: &str, usable: Option<&str>, wanted: Result<&str, &str>) {
        let usable = usable.map(set);
        let got = select_nodes(text, usable.as_ref()).map(|nodes| nodes.to_string());
        match (got, wanted) {
            (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{text}"),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{text}: '{error}' lacks '{part}'");
            }
            (got, wanted) => panic!("{text}: {got:?} instead of {wanted:?}"),
        }
    }

    #[test]
    fn nodes_are_selected_as_by_numactl() {
        nodes("0,3", Some("0,3,5"), Ok("0,3"));
        nodes("9", Some("0"), Ok("9"));
        nodes("all", Some("0,3"), Ok("0,3"));
        nodes("!3", Some("0,3,5"), Ok("0,5"));
        nodes("+1", Some("0,3,5"), Ok("3"));
        nodes("+1-2", Some("0,3,5"), Ok("3,5"));
        nodes("!+0", Some("0,3,5"), Ok("3,5"));
        nodes("", Some("0"), Ok(""));
        nodes("1", None, Ok("1"));
        nodes("!1", None, Err("NUMA nodes of this machine are not known"));
        nodes("+2", Some("0,3"), Err("the set of nodes has 2 that may be used, so there is no place 2"));
        for text in ["x", "!", "!!0", "+!0", "++0", "a", "al", "0,", "-1", "./solver"] {
            nodes(text, Some("0-1"), Err("is not a list of NUMA nodes; write 0-1,3 or all"));
            assert!(!is_nodes(text), "{text}");
        }
        assert!(["all", "!all", "0", "+0", "!+0,1"].into_iter().all(is_nodes));
    }

    #[test]
    fn numbers_need_no_machine() {
        assert_eq!(select_here("0-6:3,1,0").unwrap(), [0, 3, 6, 1]);
        assert_eq!(select_here("0x5").unwrap(), [0, 2]);
        assert_eq!(select_here(" ").unwrap(), []);
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
        check("E:S0:5", "0-7", Err("S0 has 4 that may be used, so there is no place 4"));
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
