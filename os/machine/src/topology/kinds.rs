//! Kinds of cores: performance, efficiency.

use super::files::Files;
use super::{Kind, Unreadable};
use crate::Bitmap;
use std::collections::BTreeMap;

const CPU: &str = "sys/devices/system/cpu";
/// Cores are of one kind while each does at least this share of the next better one, in per cent: the best cores of a processor
/// run a little faster than others of their kind.
const ALIKE: u64 = 85;

/// Returns the kinds, the fastest first; none where all cores are alike or the kernel does not say.
pub(super) fn kinds(files: &Files<'_>, online: &Bitmap) -> Result<Vec<Kind>, Unreadable> {
    let named = named(files, online)?;
    Ok(if named.len() > 1 { named } else { ranked(files, online)? })
}

/// The kernel's names: those of the processors' counters (x86, Linux 5.16), or of `cpu/types`.
fn named(files: &Files<'_>, online: &Bitmap) -> Result<Vec<Kind>, Unreadable> {
    let names: [(&str, [&str; 2]); 3] = [
        ("performance", ["sys/devices/cpu_core/cpus", "intel_core_0"]),
        ("efficiency", ["sys/devices/cpu_atom/cpus", "intel_atom_0"]),
        ("low power", ["sys/devices/cpu_lowpower/cpus", "intel_lowpower_0"]),
    ];
    let mut found = Vec::new();
    for (name, [counters, kind]) in names {
        let cpus = match files.list(counters)? {
            Some(cpus) => Some(cpus),
            None => files.list(&format!("{CPU}/types/{kind}/cpulist"))?,
        };
        let cpus = cpus.unwrap_or_default().and(online);
        if !cpus.is_empty() {
            found.push(Kind { name, cpus });
        }
    }
    Ok(found)
}

/// By what the kernel says a processor can do: `cpu_capacity` (arm64, RISC-V), else the highest clock.
fn ranked(files: &Files<'_>, online: &Bitmap) -> Result<Vec<Kind>, Unreadable> {
    for file in ["cpu_capacity", "cpufreq/cpuinfo_max_freq"] {
        let mut by_worth: BTreeMap<u64, Bitmap> = BTreeMap::new();
        for cpu in online.iter() {
            by_worth.entry(files.number(&format!("{CPU}/cpu{cpu}/{file}"))?).or_default().insert(cpu);
        }
        if by_worth.contains_key(&0) {
            continue; // not known for all of them
        }
        let mut groups: Vec<(u64, Bitmap)> = Vec::new();
        for (worth, cpus) in by_worth.into_iter().rev() {
            match groups.last_mut() {
                Some((last, group)) if worth * 100 >= *last * ALIKE => {
                    (*last, *group) = (worth, group.or(&cpus))
                }
                _ => groups.push((worth, cpus)),
            }
        }
        if groups.len() > 1 {
            let last = groups.len() - 1;
            let name = |place| match place {
                0 => "performance",
                place if place == last => "efficiency",
                _ => "middle",
            };
            return Ok(groups
                .into_iter()
                .enumerate()
                .map(|(place, (_, cpus))| Kind { name: name(place), cpus })
                .collect());
        }
    }
    Ok(Vec::new())
}
