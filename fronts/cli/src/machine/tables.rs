//! Formats measurements as tables.

use super::measure::Figure;
use super::measure::bandwidth::{Bandwidth, BandwidthRow};
use super::measure::cores::CorePair;
use super::measure::ladder::{Ladder, SIZES};
use super::text::table;
use largesse_machine::Bitmap;
use largesse_terminal::size;
use std::fmt::Write as _;

const NONE: &str = "-";

fn shown(figure: Option<&Figure>) -> String {
    figure.map_or(NONE.into(), Figure::text)
}

/// Returns the table of bandwidths, one row for each set of processors and node.
pub(super) fn bandwidth(measured: &Bandwidth) -> String {
    let mut header: Vec<String> = ["processors", "node", "distance", "first touch"].map(str::to_owned).into();
    header.extend(measured.kernels.map(|kernel| kernel.name().to_owned()));
    header.push("line there and back".into());
    let row = |row: &BandwidthRow| {
        let cpus: Bitmap = row.cpus.iter().copied().collect();
        let mut cells = vec![
            cpus.to_string(),
            row.node.to_string(),
            row.distance.map_or(NONE.into(), |it| it.to_string()),
            row.first_touch.map_or(NONE.into(), |it| format!("{:.1}", it.best)),
        ];
        cells.extend(row.kernels.iter().map(|it| shown(it.as_ref())));
        cells.push(row.round_trip.map_or(String::new(), |it| format!("{:.0} ns", it.best)));
        cells
    };
    let mut text = format!(
        "\nBandwidth, GB/s: best of {}, and how far below it the worst was; {} on large pages\n{}",
        super::measure::REPEATS,
        size(measured.bytes),
        table(std::iter::once(header).chain(measured.rows.iter().map(row)))
    );
    let inside: Vec<String> = measured
        .kernels
        .iter()
        .zip(&measured.inside)
        .map(|(kernel, one)| format!("{} {}", kernel.name().to_owned(), shown(one.as_ref())))
        .collect();
    let _ =
        writeln!(text, "  One thread inside its caches, which memory cannot exceed: {}.", inside.join(", "));
    for row in measured.rows.iter().filter(|row| row.why_not.is_some()) {
        let cpus: Bitmap = row.cpus.iter().copied().collect();
        let _ = writeln!(
            text,
            "  Processors {cpus}, node {}: {}.",
            row.node,
            row.why_not.as_deref().unwrap_or_default()
        );
    }
    if measured.rows.iter().any(|row| row.kernels.iter().flatten().any(|it| it.impossible)) {
        text += "  ? is more than this machine can do: the clock or another program disturbed it. Measure again.\n";
    }
    text
}

/// Returns the table of latencies, one row for each size and one column for each kind of page.
pub(super) fn ladder(climbs: &[Ladder]) -> String {
    let there: Vec<&Ladder> = climbs.iter().filter(|climb| !climb.steps.is_empty()).collect();
    let header = std::iter::once("chase / gather".to_owned())
        .chain(there.iter().map(|climb| climb.pages.name().to_owned()));
    let row = |bytes: u64| {
        let cells = there.iter().map(move |climb| {
            let step = climb.steps.iter().find(|step| step.bytes == bytes);
            step.map_or(NONE.into(), |step| {
                format!("{} / {}", shown(step.chase.as_ref()), shown(step.gather.as_ref()))
            })
        });
        std::iter::once(size(bytes)).chain(cells).collect::<Vec<_>>()
    };
    let measured = SIZES
        .into_iter()
        .filter(|bytes| there.iter().any(|it| it.steps.iter().any(|step| step.bytes == *bytes)));
    let mut text = format!(
        "\nLatency, ns for one access: dependent accesses to all lines, and independent ones\n{}",
        table(std::iter::once(header.collect::<Vec<_>>()).chain(measured.map(row)))
    );
    for climb in climbs {
        if let Some(why) = &climb.why_not {
            let _ = writeln!(text, "  {}: {why}.", climb.pages.name());
        }
        if let Some(share) = climb.large_share.filter(|share| climb.pages.is_large() && *share < 0.99) {
            let _ =
                writeln!(text, "  {}: only {:.0} % is on large pages.", climb.pages.name(), share * 100.0);
        }
    }
    text
}

/// Returns the table of round trips between processors, a triangle in ns.
pub(super) fn cores(pairs: &[CorePair]) -> String {
    let mut cpus: Vec<u32> = pairs.iter().flat_map(|pair| [pair.first, pair.second]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return "\nFrom core to core: not measured, which takes two processors.\n".into();
    }
    let header = std::iter::once("ns".to_owned()).chain(cpus.iter().map(u32::to_string));
    let cell = |from: u32, to: u32| {
        let is = |pair: &&CorePair| (pair.first, pair.second) == (from.min(to), from.max(to));
        let pair = pairs.iter().find(is).and_then(|pair| pair.round_trip);
        pair.map_or(if from == to { String::new() } else { NONE.into() }, |it| format!("{:.0}", it.best))
    };
    let row = |from: u32| {
        std::iter::once(from.to_string())
            .chain(cpus.iter().map(move |to| cell(from, *to)))
            .collect::<Vec<_>>()
    };
    format!(
        "\nA cache line from core to core and back, ns\n{}",
        table(std::iter::once(header.collect::<Vec<_>>()).chain(cpus.iter().map(|from| row(*from))))
    )
}
