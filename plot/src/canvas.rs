//! Defines what pictures have in common: the area to draw on, its width, colours and letters.

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, DrawingAreaErrorKind, IntoFont as _, RGBColor, SVGBackend, TextStyle};

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An error of the library that draws.
pub(crate) type DrawError = DrawingAreaErrorKind<std::io::Error>;

/// Width in pixels of pictures of time lines and of machines.
pub(crate) const WIDTH: u32 = 960;

// Colours that colour-blind readers can tell apart (Okabe and Ito).
pub(crate) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(crate) const SKY: RGBColor = RGBColor(86, 180, 233);
pub(crate) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(crate) const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub(crate) const RED: RGBColor = RGBColor(213, 94, 0);
pub(crate) const INK: RGBColor = RGBColor(60, 60, 60);
pub(crate) const GRID: RGBColor = RGBColor(225, 225, 225);

const FONT: &str = "sans-serif";
/// Approximate width of a letter, in pixels: the fonts of the viewer's computer are not known.
pub(crate) const LETTER: i32 = 7;
/// Width of the area for the labels of the vertical axis, in pixels.
pub(crate) const LEFT: u32 = 80;

/// Formats a number with few digits and without an exponent: `1500`, `20 k`.
pub(crate) fn plain(value: &f64) -> String {
    let digits = |value: f64| format!("{}", (value * 100.0).round() / 100.0);
    match value.abs() {
        1e6.. => format!("{} M", digits(value / 1e6)),
        1e4.. => format!("{} k", digits(value / 1e3)),
        _ => digits(*value),
    }
}

/// Returns the label of a position on an axis of sizes, given by its exponent of two, or an empty text if the exponent
/// is not a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and greater sizes do not exist"
)]
pub(crate) fn power_label(power: f64) -> String {
    let exact = power.round();
    if (exact - power).abs() > 0.01 { String::new() } else { largesse_text::size(exact.exp2() as u64) }
}

pub(crate) fn ink(size: i32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

/// Escapes control characters in `picture`: XML forbids most of them even as references, and titles may contain any.
pub(crate) fn well_formed(picture: &str) -> String {
    largesse_text::lines(picture).into_owned()
}
