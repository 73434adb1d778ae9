//! Draws the panels of a time line, one below the other.

use crate::Moment;
use crate::canvas::{
    Area, BLUE, DrawError, GREEN, GRID, INK, LEFT, LETTER, ORANGE, RED, SKY, ink, plain, power_label,
};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    AreaSeries, Cartesian2d, ChartBuilder, ChartContext, Color as _, DashedLineSeries, LineSeries,
    PathElement, RGBColor, SVGBackend, WHITE,
};

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Points = Vec<(f64, f64)>;

/// Exponents of two of the smallest and the largest transfer size: 4 KiB and 2 MiB.
const TRANSFERS: (f64, f64) = (12.0, 21.0);
const UNITS: [(&str, f64); 4] =
    [("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0), ("TiB", 1099511627776.0)];

/// A named curve and its style.
struct Curve {
    name: &'static str,
    colour: RGBColor,
    style: CurveStyle,
    points: Points,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CurveStyle {
    Plain,
    Dashed,
    Filled,
}

/// The texts of a panel, and the number of its labels.
struct Words<'a> {
    /// Title above the panel, to the left of the names of the series.
    title: &'a str,
    /// Formats a label of the vertical axis.
    label: &'a dyn Fn(&f64) -> String,
    /// Approximate number of labels on the vertical axis.
    labels: usize,
    /// Whether the labels of the time axis are written below the panel.
    time: bool,
}

pub(crate) fn draw(all: &Area<'_>, title: &str, moments: &[Moment]) -> Result<(), DrawError> {
    all.fill(&WHITE)?;
    let moments: Vec<_> = moments.iter().copied().filter(|it| it.seconds.is_finite()).collect();
    let shown: String = title.chars().take(110).collect();
    all.draw_text(&shown, &ink(18), (16, 14))?;
    let (_, rest) = all.split_vertically(44);
    let (sets, rest) = rest.split_vertically(200);
    let (memory, rest) = rest.split_vertically(210);
    let (moved, faults) = rest.split_vertically(190);
    transfer_panel(&sets, &moments)?;
    memory_panel(&memory, &moments)?;
    moved_panel(&moved, &moments)?;
    fault_panel(&faults, &moments)
}

fn transfer_panel(area: &Area<'_>, moments: &[Moment]) -> Result<(), DrawError> {
    let log = |bytes: u64| (bytes.max(1) as f64).log2().clamp(TRANSFERS.0, TRANSFERS.1);
    let steps = |of: fn(&Moment) -> u64| {
        let mut points: Points = Vec::with_capacity(2 * moments.len());
        for moment in moments {
            // The size was in force until it changed, so the line has a step.
            if let Some(&(_, before)) = points.last() {
                points.push((moment.seconds, before));
            }
            points.push((moment.seconds, log(of(moment))));
        }
        points
    };
    let mut lines = vec![Curve {
        name: "in all regions",
        colour: BLUE,
        style: CurveStyle::Plain,
        points: steps(|it| it.set),
    }];
    if moments.iter().any(|moment| moment.least_set != moment.most_set) {
        lines[0].name = "where most pages are filled";
        let [smallest, largest] = [steps(|it| it.least_set), steps(|it| it.most_set)];
        lines.push(Curve { name: "smallest", colour: ORANGE, style: CurveStyle::Dashed, points: smallest });
        lines.push(Curve { name: "largest", colour: GREEN, style: CurveStyle::Dashed, points: largest });
    }
    let words =
        Words { title: "Transfer size", label: &|power: &f64| power_label(*power), labels: 10, time: false };
    panel(area, end(moments), TRANSFERS.0 - 0.5..TRANSFERS.1 + 0.5, &words, lines)
}

fn memory_panel(area: &Area<'_>, moments: &[Moment]) -> Result<(), DrawError> {
    let over_time = |of: fn(&Moment) -> u64| -> Points {
        moments.iter().map(|moment| (moment.seconds, of(moment) as f64)).collect()
    };
    let mut lines = vec![
        Curve {
            name: "in the store",
            colour: SKY,
            style: CurveStyle::Filled,
            points: over_time(|it| it.stored),
        },
        Curve {
            name: "resident",
            colour: BLUE,
            style: CurveStyle::Filled,
            points: over_time(|it| it.resident),
        },
        Curve { name: "limit", colour: INK, style: CurveStyle::Dashed, points: over_time(|it| it.local) },
    ];
    let title = format!("Memory, {}", in_units(&mut lines));
    let words = Words { title: &title, label: &plain, labels: 5, time: false };
    panel(area, end(moments), 0.0..top(&lines), &words, lines)
}

fn moved_panel(area: &Area<'_>, moments: &[Moment]) -> Result<(), DrawError> {
    // Intervals differ on a busy machine: each amount is scaled to the median interval.
    let mut intervals: Vec<f64> =
        differences(moments, |_| 0).iter().map(|(_, _, seconds)| *seconds).collect();
    intervals.sort_by(f64::total_cmp);
    let usual = intervals.get(intervals.len() / 2).copied().unwrap_or(1.0);
    let added = |of: fn(&Moment) -> u64| -> Points {
        let each = differences(moments, of).into_iter();
        each.map(|(at, bytes, seconds)| (at, bytes / seconds * usual)).collect()
    };
    let mut lines = vec![
        Curve {
            name: "written to the store",
            colour: GREEN,
            style: CurveStyle::Plain,
            points: added(|it| it.written),
        },
        Curve {
            name: "swapped in: the working set",
            colour: ORANGE,
            style: CurveStyle::Plain,
            points: added(|it| it.swapped_in),
        },
    ];
    let title = format!("{} in each {:.0} ms", in_units(&mut lines), usual * 1e3);
    let words = Words { title: &title, label: &plain, labels: 5, time: false };
    panel(area, end(moments), 0.0..top(&lines), &words, lines)
}

fn fault_panel(area: &Area<'_>, moments: &[Moment]) -> Result<(), DrawError> {
    let rates = differences(moments, |it| it.faults).into_iter();
    let points = rates.map(|(at, count, seconds)| (at, count / seconds)).collect();
    let lines = vec![Curve { name: "faults", colour: RED, style: CurveStyle::Plain, points }];
    let words = Words { title: "In a second", label: &plain, labels: 5, time: true };
    panel(area, end(moments), 0.0..top(&lines), &words, lines)
}

/// Returns for each interval between two moments its end, the increase of `of` in it, and its length in seconds.
fn differences(moments: &[Moment], of: fn(&Moment) -> u64) -> Vec<(f64, f64, f64)> {
    let added = |pair: &[Moment]| {
        let [before, now] = pair else { return None };
        let seconds = now.seconds - before.seconds;
        (seconds > 0.0).then(|| (now.seconds, of(now).saturating_sub(of(before)) as f64, seconds))
    };
    moments.windows(2).filter_map(added).collect()
}

fn end(moments: &[Moment]) -> f64 {
    moments.last().map_or(0.0, |last| last.seconds).max(0.001)
}

fn highest(lines: &[Curve]) -> f64 {
    lines.iter().flat_map(|line| &line.points).fold(0.0_f64, |most, (_, value)| most.max(*value))
}

fn top(lines: &[Curve]) -> f64 {
    let highest = highest(lines);
    if highest > 0.0 { highest * 1.1 } else { 1.0 }
}

/// Converts the heights of curves from bytes to the largest unit that suits them, and returns the unit's name.
fn in_units(lines: &mut [Curve]) -> &'static str {
    let most = highest(lines);
    let (unit, size) = UNITS.into_iter().rfind(|(_, size)| most >= *size).unwrap_or(UNITS[0]);
    for (_, value) in lines.iter_mut().flat_map(|line| &mut line.points) {
        *value /= size;
    }
    unit
}

fn panel(
    area: &Area<'_>,
    end: f64,
    range: std::ops::Range<f64>,
    words: &Words<'_>,
    lines: Vec<Curve>,
) -> Result<(), DrawError> {
    legend(area, words.title, &lines)?;
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_top(28)
        .x_label_area_size(if words.time { 44 } else { 12 })
        .y_label_area_size(LEFT)
        .build_cartesian_2d(0.0..end, range)?;
    let seconds = |at: &f64| if words.time { plain(at) } else { String::new() };
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(WHITE.mix(0.0))
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(ink(14))
        .axis_desc_style(ink(15))
        .x_labels(10)
        .y_labels(words.labels)
        .x_label_formatter(&seconds)
        .y_label_formatter(words.label);
    if words.time {
        mesh.x_desc("seconds");
    }
    mesh.draw()?;
    lines.into_iter().try_for_each(|line| add(&mut chart, line))
}

/// Draws the title and the names of the curves, each in its colour, above the panel, so that they hide nothing.
fn legend(area: &Area<'_>, title: &str, lines: &[Curve]) -> Result<(), DrawError> {
    let below = |text: &str| i32::try_from(text.chars().count()).unwrap_or(0) * LETTER;
    area.draw_text(title, &ink(16), (16, 6))?;
    let mut at = 16 + below(title) + 40;
    for line in lines {
        let dashes: &[[i32; 2]] =
            if line.style == CurveStyle::Dashed { &[[0, 6], [9, 15], [18, 24]] } else { &[[0, 24]] };
        for dash in dashes {
            let ends = dash.map(|x| (at + x, 14));
            area.draw(&PathElement::new(ends, line.colour.stroke_width(3)))?;
        }
        area.draw_text(line.name, &ink(15), (at + 32, 7))?;
        at += 32 + below(line.name) + 30;
    }
    Ok(())
}

fn add(chart: &mut Chart<'_, '_>, Curve { colour, style, points, .. }: Curve) -> Result<(), DrawError> {
    let stroke = colour.stroke_width(if style == CurveStyle::Filled { 1 } else { 2 });
    match style {
        CurveStyle::Plain => chart.draw_series(LineSeries::new(points, stroke))?,
        CurveStyle::Dashed => chart.draw_series(DashedLineSeries::new(points, 6, 4, stroke))?,
        CurveStyle::Filled => {
            chart.draw_series(AreaSeries::new(points, 0.0, colour.mix(0.3)).border_style(stroke))?
        }
    };
    Ok(())
}
