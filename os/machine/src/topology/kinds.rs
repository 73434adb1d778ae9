//! Finds the kinds of cores, such as performance and efficiency cores.

use super::files::Files;
use super::model::CoreKind;
use super::unreadable::Unreadable;
use crate::Bitmap;
use std::collections::BTreeMap;

const CPU: &str = "sys/devices/system/cpu";
/// Cores are of one kind if the capacity or clock of each is at least this share, in per cent, of the next better
/// one's: the best cores of a processor run a little faster than others of their kind.
const ALIKE: u64 = 85;

/// Returns the kinds of cores, the fastest first, or none if all cores are alike or the kernel does not say.
pub(super) fn kinds(files: &Files<'_>, online: &Bitmap) -> Result<Vec<CoreKind>, Unreadable> {
    let named = named(files, online)?;
    Ok(if named.len() > 1 { named } else { ranked(files, online)? })
}

/// Returns the kinds of cores that the kernel names by its performance counters (x86, Linux 5.16) or in `cpu/types`.
fn named(files: &Files<'_>, online: &Bitmap) -> Result<Vec<CoreKind>, Unreadable> {
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
            found.push(CoreKind { name, cpus });
        }
    }
    Ok(found)
}

/// Returns the kinds of cores by the capacity that the kernel reports (`cpu_capacity`; arm64, RISC-V), or else by the
/// highest clock.
fn ranked(files: &Files<'_>, online: &Bitmap) -> Result<Vec<CoreKind>, Unreadable> {
    for file in ["cpu_capacity", "cpufreq/cpuinfo_max_freq"] {
        let mut by_worth: BTreeMap<u64, Bitmap> = BTreeMap::new();
        for cpu in online.iter() {
            by_worth.entry(files.number(&format!("{CPU}/cpu{cpu}/{file}"))?).or_default().insert(cpu);
        }
        if by_worth.contains_key(&0) {
            continue; // unknown for some of them
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
                .map(|(place, (_, cpus))| CoreKind { name: name(place), cpus })
                .collect());
        }
    }
    Ok(Vec::new())
}
