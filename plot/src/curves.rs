//! Draws panels of curves and of their limit: speed over bytes, or gain and share of time over threads.

use crate::canvas::{DrawError, power_label, well_formed};
use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Circle, DashedLineSeries, DrawingArea, EmptyElement, IntoDrawingArea as _, IntoFont as _,
    LineSeries, PathElement, RGBColor, SVGBackend, ShapeStyle, Text, TextStyle, WHITE,
};

const WIDTH: u32 = 1100;
/// Height of a panel, in pixels.
const HEIGHT: u32 = 280;
const TOP: u32 = 40;
const FONT: &str = "sans-serif";
/// Greatest height that is drawn, in GFlop/s: no machine has more, and an endless axis would have endless marks.
const MOST: f64 = 1e12;
const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(230, 230, 230);
const WALL: RGBColor = RGBColor(190, 190, 190);
/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(230, 159, 0),
    RGBColor(120, 120, 120),
    RGBColor(240, 228, 66),
    RGBColor(0, 0, 0),
];

/// The quantities on a panel's two axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axes {
    /// Speed in GFlop/s, over the size of the data in bytes.
    #[default]
    Speed,
    /// Speed with several threads divided by the speed with one, over threads.
    Gain,
    /// Share of the time in per cent, over threads.
    Share,
}

impl Axes {
    fn up(self) -> &'static str {
        match self {
            Axes::Speed => "GFlop/s",
            Axes::Gain => "gain",
            Axes::Share => "% of the time",
        }
    }

    /// Returns the label of a position on the horizontal axis, given as an exponent of two. On an axis of threads,
    /// positions between two powers of two have no label.
    fn label(self, power: f64) -> String {
        match self {
            Axes::Speed => power_label(power.round()),
            Axes::Gain | Axes::Share if (power - power.round()).abs() > 0.01 => String::new(),
            Axes::Gain | Axes::Share => format!("{:.0}", power.exp2()),
        }
    }

    /// Returns the caption of the horizontal axis, or an empty text if its labels have a unit.
    fn across(self) -> &'static str {
        if self == Axes::Speed { "" } else { "threads" }
    }

    /// Returns the approximate number of labels on an axis that spans `powers` powers of two.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few powers of two")]
    fn labels(self, powers: f64) -> usize {
        if self == Axes::Speed { 10 } else { powers.ceil() as usize + 1 }
    }

    /// Returns the first and the last exponent of the horizontal axis.
    fn range(self, powers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let least = if self == Axes::Speed { 30.0 } else { 0.0 };
        let left = powers.clone().fold(f64::MAX, f64::min).min(least);
        (left, powers.fold(left + 1.0, f64::max))
    }
}

/// One chart of a picture.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Title above the chart.
    pub title: String,
    /// Quantities on the axes.
    pub axes: Axes,
    /// Points of the dashed curve that shows the limit, like those of a series; empty if there is none.
    pub limit: Vec<(f64, f64)>,
    /// Curves of the measured contestants.
    pub series: Vec<Series>,
}

/// The curve of one contestant.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points of the curve: a position on the horizontal axis, in ascending order, and one on the vertical axis.
    pub points: Vec<(f64, f64)>,
}

/// Draws panels, two in a row. `walls` are named positions on the horizontal axis, such as sizes of caches, at which
/// each panel has a vertical line.
///
/// # Errors
/// Returns the message of the drawing library.
pub fn svg(title: &str, panels: &[Panel], walls: &[(f64, &str)]) -> Result<String, String> {
    let mut text = String::new();
    draw(title, panels, walls, &mut text).map_err(|error| error.to_string())?;
    Ok(well_formed(&text))
}

fn draw(title: &str, panels: &[Panel], walls: &[(f64, &str)], text: &mut String) -> Result<(), DrawError> {
    let rows = panels.len().div_ceil(2).max(1);
    let height = TOP + HEIGHT * u32::try_from(rows).unwrap_or(1);
    let all = SVGBackend::with_string(text, (WIDTH, height)).into_drawing_area();
    all.fill(&WHITE)?;
    let shown: String = title.chars().take(150).collect();
    all.draw_text(&shown, &ink(13), (16, 12))?;
    let (_, rest) = all.split_vertically(TOP);
    for (area, panel) in rest.split_evenly((rows, 2)).iter().zip(panels) {
        draw_panel(area, panel, walls)?;
    }
    all.present()
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &Panel,
    walls: &[(f64, &str)],
) -> Result<(), DrawError> {
    let finite = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let good = points.iter().filter(|(x, y)| *x > 0.0 && x.is_finite() && (0.0..=MOST).contains(y));
        good.map(|(x, y)| (x.log2(), *y)).collect()
    };
    let limit = finite(&panel.limit);
    let series: Vec<_> = panel.series.iter().map(|one| (one.name.as_str(), finite(&one.points))).collect();
    let every = || limit.iter().chain(series.iter().flat_map(|(_, points)| points));
    let (left, right) = panel.axes.range(every().map(|(x, _)| *x));
    let most = every().map(|(_, y)| *y).fold(1.0, f64::max) * 1.08;
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ink(14))
        .margin(10)
        .margin_right(130)
        .x_label_area_size(if panel.axes.across().is_empty() { 28 } else { 40 })
        .y_label_area_size(48)
        .build_cartesian_2d(left..right, 0.0..most)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(ink(11))
        .x_labels(panel.axes.labels(right - left))
        .x_label_formatter(&|power| panel.axes.label(*power))
        .x_desc(panel.axes.across())
        .y_desc(panel.axes.up())
        .draw()?;
    for (size, name) in walls.iter().filter(|(size, _)| size.log2() > left && size.log2() < right) {
        let at = size.log2();
        chart.draw_series([PathElement::new([(at, 0.0), (at, most)], WALL)])?;
        chart.draw_series([Text::new((*name).to_owned(), (at, most * 0.99), ink(10))])?;
    }
    chart.draw_series(DashedLineSeries::new(limit.iter().copied(), 5, 3, ShapeStyle::from(INK)))?;
    let mut legend = if limit.is_empty() { Vec::new() } else { vec![("limit", INK)] };
    for ((name, points), colour) in series.iter().zip(COLOURS.iter().cycle()) {
        chart.draw_series(LineSeries::new(points.iter().copied(), colour))?;
        chart.draw_series(
            points.iter().map(|point| EmptyElement::at(*point) + Circle::new((0, 0), 2, colour)),
        )?;
        legend.push((name, *colour));
    }
    let x = i32::try_from(area.dim_in_pixel().0).unwrap_or(0) - 120;
    for ((name, colour), y) in legend.into_iter().zip((40..).step_by(16)) {
        area.draw(&PathElement::new(
            [(x, y + 6), (x + 16, y + 6)],
            ShapeStyle::from(colour).stroke_width(2),
        ))?;
        area.draw_text(name, &ink(11), (x + 22, y))?;
    }
    Ok(())
}

fn ink(size: u32) -> TextStyle<'static> {
    TextStyle::from((FONT, size).into_font()).color(&INK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(points: Vec<(f64, f64)>) -> Panel {
        let limit = points.iter().map(|(x, _)| (*x, 30.0)).collect();
        let series = vec![Series { name: "avx512".into(), points }];
        Panel { title: "ddot <&>".into(), axes: Axes::Speed, limit, series }
    }

    #[test]
    fn titles_series_and_caches_are_named() {
        let points = vec![(1e3, 10.0), (1e5, 20.0), (1e8, 5.0)];
        let svg = svg("a machine", &[panel(points)], &[(32768.0, "L1"), (1e12, "far")]).unwrap();
        for word in ["ddot &lt;&amp;&gt;", "avx512", "limit", "L1", "GFlop/s", "KiB", "a machine"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(!svg.contains("far"), "a cache beyond the picture");
    }

    #[test]
    fn faster_is_higher() {
        let heights = |fast: f64| {
            let svg = svg("", &[panel(vec![(1e3, fast), (1e5, 20.0)])], &[]).unwrap();
            let circles = svg.lines().filter(|line| line.starts_with("<circle"));
            let height = |line: &str| line.split("cy=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
            circles.filter_map(height).collect::<Vec<_>>()
        };
        assert!(heights(25.0)[0] + 50.0 < heights(5.0)[0]);
    }

    #[test]
    fn threads_are_named_at_powers_of_two() {
        let of = |axes| {
            let series =
                vec![Series { name: "copy-seq".into(), points: vec![(1.0, 1.0), (3.0, 1.5), (4.0, 2.0)] }];
            svg("", &[Panel { title: String::new(), axes, limit: Vec::new(), series }], &[]).unwrap()
        };
        let names = |svg: &str| -> Vec<String> {
            svg.lines().filter(|line| ["1", "2", "3", "4"].contains(line)).map(str::to_owned).collect()
        };
        let (gain, share) = (of(Axes::Gain), of(Axes::Share));
        assert_eq!(names(&share), ["1", "2", "4"], "{share}");
        assert!(gain.contains("gain") && gain.contains("threads") && share.contains("% of the time"));
        assert!(!share.contains("limit"), "{share}");
    }

    #[test]
    fn absurd_numbers_are_no_panic() {
        let absurd = vec![(0.0, f64::NAN), (f64::INFINITY, 1.0), (-1.0, -1.0), (8.0, f64::MAX)];
        for points in [vec![], vec![(8.0, 1.0)], absurd] {
            assert!(svg("", &[panel(points.clone()), panel(points)], &[(0.0, "L1")]).is_ok());
        }
        assert!(svg("", &[], &[]).is_ok());
    }
}
