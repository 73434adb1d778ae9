//! Draws the measurements of a machine: bandwidth, latency, and the times of transfers from core to core.

use super::drawing::{Bars, MachineDrawing, Series};
use crate::canvas::{
    Area, BLUE, DrawError, GREEN, GRID, INK, LEFT, LETTER, ORANGE, RED, SKY, WIDTH, ink, plain, power_label,
};
use plotters::prelude::{ChartBuilder, Circle, Color as _, LineSeries, RGBColor, Rectangle};

const COLOURS: [RGBColor; 5] = [BLUE, ORANGE, GREEN, RED, SKY];
const CHART: u32 = 300;
/// Height of the area for the names below bars, in pixels.
const BELOW: i32 = 40;
const SQUARE: i32 = 44;

pub(super) fn bandwidth_height(machine: &MachineDrawing) -> u32 {
    if machine.bandwidth.is_empty() { 0 } else { CHART }
}

pub(super) fn latency_height(machine: &MachineDrawing) -> u32 {
    if machine.latency.is_empty() { 0 } else { CHART }
}

pub(super) fn cores_height(machine: &MachineDrawing) -> u32 {
    match machine.cores.0.len() {
        0 => 0,
        count => 60 + u32::try_from(side(count)).unwrap_or(0) * (u32::try_from(count).unwrap_or(0) + 1),
    }
}

fn good(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

/// Draws `title` above a chart, and behind it the name of each series in its colour.
fn legend<'a>(area: &Area<'_>, title: &str, names: impl Iterator<Item = &'a str>) -> Result<(), DrawError> {
    let width = |text: &str| i32::try_from(text.chars().count()).unwrap_or(0) * LETTER;
    area.draw_text(title, &ink(16), (16, 6))?;
    let mut at = 16 + width(title) + 40;
    for (name, colour) in names.zip(COLOURS.iter().cycle()) {
        area.draw(&Rectangle::new([(at, 9), (at + 14, 19)], colour.filled()))?;
        area.draw_text(name, &ink(15), (at + 20, 7))?;
        at += 20 + width(name) + 28;
    }
    Ok(())
}

pub(super) fn bandwidth(area: &Area<'_>, groups: &[Bars]) -> Result<(), DrawError> {
    let names = groups.first().map(|group| group.bars.iter().map(|(name, _)| name.as_str()));
    legend(area, "Bandwidth, GB/s", names.into_iter().flatten())?;
    let most =
        groups.iter().flat_map(|group| &group.bars).fold(0.0, |most, (_, value)| good(*value).max(most));
    let (left, bottom) = (i32::try_from(LEFT).unwrap_or(0), i32::try_from(CHART).unwrap_or(0) - BELOW);
    let (width, height) = (i32::try_from(WIDTH).unwrap_or(0) - left - 24, bottom - 50);
    let group_width = width / i32::try_from(groups.len()).unwrap_or(1).max(1);
    for (group, from) in groups.iter().zip((left..).step_by(usize::try_from(group_width).unwrap_or(1).max(1)))
    {
        let count = i32::try_from(group.bars.len()).unwrap_or(1).max(1);
        let bar = ((group_width - 12) / count).clamp(1, 60);
        for ((_, value), (at, colour)) in group.bars.iter().zip((0..).zip(COLOURS.iter().cycle())) {
            let value = good(*value);
            #[expect(clippy::cast_possible_truncation, reason = "pixels")]
            let tall = if most > 0.0 { (value / most * f64::from(height)) as i32 } else { 0 };
            let x = from + at * bar;
            area.draw(&Rectangle::new(
                [(x, bottom - tall), (x + bar - 2, bottom)],
                colour.mix(0.8).filled(),
            ))?;
            if bar >= 28 {
                area.draw_text(&plain(&((value * 10.0).round() / 10.0)), &ink(13), (x, bottom - tall - 16))?;
            }
        }
        area.draw_text(&group.name, &ink(13), (from, bottom + 8))?;
    }
    area.draw(&Rectangle::new([(left - 6, bottom), (left + width, bottom)], INK.stroke_width(1)))
}

pub(super) fn latency(area: &Area<'_>, series: &[Series]) -> Result<(), DrawError> {
    legend(
        area,
        "Latency of one access, nanoseconds, over the memory it may be in",
        series.iter().map(|it| it.name.as_str()),
    )?;
    let points = || series.iter().flat_map(|it| &it.points);
    let power = |bytes: u64| f64::from(bytes.max(1).ilog2());
    let low = points().map(|(bytes, _)| power(*bytes)).fold(40.0, f64::min);
    let high = points().map(|(bytes, _)| power(*bytes)).fold(low + 1.0, f64::max);
    let most = points().map(|(_, ns)| good(*ns)).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_top(34)
        .x_label_area_size(30)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(low..high, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .light_line_style(RGBColor(255, 255, 255).mix(0.0))
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(ink(14))
        .x_labels(13)
        .y_labels(6)
        .x_label_formatter(&|power| power_label(*power))
        .y_label_formatter(&plain)
        .draw()?;
    for (one, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        let points: Vec<(f64, f64)> =
            one.points.iter().map(|(bytes, ns)| (power(*bytes), good(*ns))).collect();
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    Ok(())
}

/// Returns the side of a square, in pixels, for a row in which `count` squares and a label fit.
fn side(count: usize) -> i32 {
    let room = i32::try_from(WIDTH).unwrap_or(0) - 2 * i32::try_from(LEFT).unwrap_or(0);
    (room / (i32::try_from(count).unwrap_or(1) + 1)).clamp(8, SQUARE)
}

pub(super) fn cores(
    area: &Area<'_>,
    (cpus, pairs): &(Vec<u32>, Vec<(usize, usize, f64)>),
) -> Result<(), DrawError> {
    legend(
        area,
        "A cache line from core to core and back, nanoseconds: darker is longer",
        std::iter::empty(),
    )?;
    let (side, left, top) = (side(cpus.len()), i32::try_from(LEFT).unwrap_or(0), 40);
    let place = |number: usize| i32::try_from(number).unwrap_or(0) * side;
    let most = pairs.iter().map(|(_, _, ns)| good(*ns)).fold(1.0, f64::max);
    let wide = side >= 30;
    for (number, cpu) in cpus.iter().enumerate().filter(|_| wide) {
        area.draw_text(&cpu.to_string(), &ink(13), (left + place(number) + side / 3, top))?;
        area.draw_text(&cpu.to_string(), &ink(13), (left - 28, top + place(number) + side + 8))?;
    }
    for (first, second, ns) in pairs {
        for (x, y) in [(*first, *second), (*second, *first)] {
            let corner = (left + place(x), top + place(y) + side - 8);
            let corners = [corner, (corner.0 + side - 1, corner.1 + side - 1)];
            area.draw(&Rectangle::new(corners, BLUE.mix(0.1 + 0.6 * good(*ns) / most).filled()))?;
            if wide {
                area.draw_text(
                    &format!("{:.0}", good(*ns)),
                    &ink(13),
                    (corner.0 + 6, corner.1 + side / 2 - 7),
                )?;
            }
        }
    }
    Ok(())
}
