//! Draws SVG pictures: a time line of far memory in four panels over the same time, machines ([`machine`]), and curves
//! below a limit ([`curves`]).
//!
//! # Picture
//! ```text
//!   [Moment] ─► transfer size         4 KiB … 2 MiB, steps
//!               memory                resident, in the store, limit
//!               working set           swapped in, and written, in each interval
//!               faults                a second
//! ```
//! # Knows / does not know
//! Knows numbers over time. Does not know where they come from, nor where the picture goes.
//! # Invariants
//! 1. Any numbers result in a picture or an error, never in a panic, because the caller may have finished its work and
//!    be about to report it.

mod canvas;
pub mod curves;
pub mod machine;
mod moment;
mod panels;

pub use moment::Moment;

use canvas::{DrawError, WIDTH, well_formed};
use plotters::prelude::{IntoDrawingArea as _, SVGBackend};

/// Width and height of a time line, in pixels.
const SIZE: (u32, u32) = (WIDTH, 850);

/// Draws a time line of `moments`, which must be in order of time, below `title`.
///
/// # Errors
/// Returns the message of the drawing library.
pub fn svg(title: &str, moments: &[Moment]) -> Result<String, String> {
    let mut text = String::new();
    draw(title, moments, &mut text).map_err(|error| error.to_string())?;
    Ok(well_formed(&text))
}

fn draw(title: &str, moments: &[Moment], text: &mut String) -> Result<(), DrawError> {
    let all = SVGBackend::with_string(text, SIZE).into_drawing_area();
    panels::draw(&all, title, moments)?;
    all.present()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(count: u32) -> Vec<Moment> {
        let at = |i: u32| Moment {
            seconds: f64::from(i) * 0.01,
            set: 4096 << (i / 30 % 10),
            least_set: 4096 << (i / 30 % 10),
            most_set: 4096 << (i / 30 % 10),
            local: 64 << 20,
            resident: u64::from(i.min(50)) << 20,
            stored: u64::from(i) << 20,
            swapped_in: u64::from(i * i) << 14,
            faults: u64::from(i * 100),
            written: u64::from(i * 30) << 10,
        };
        (0..count).map(at).collect()
    }

    /// Returns the heights of the points of the last series that has more than 30 points, which is that of the faults.
    fn last_series(svg: &str) -> Vec<f64> {
        let lines = svg.lines().filter(|line| line.starts_with("<polyline"));
        let points = lines.filter_map(|line| line.split("points=\"").nth(1)?.split('"').next());
        let mut heights = points.map(|points| {
            let pairs = points.split_whitespace();
            pairs.filter_map(|pair| pair.split_once(',')?.1.parse().ok()).collect::<Vec<f64>>()
        });
        heights.rfind(|heights| heights.len() > 30).unwrap()
    }

    #[test]
    fn panels_and_series_are_named() {
        let svg = svg("R -f a.R <&>", &moments(300)).unwrap();
        let title = "R -f a.R &lt;&amp;&gt;";
        let words = ["Transfer size", "in the store", "limit", "working set", "faults", "seconds", "MiB"];
        for word in words.into_iter().chain([title]) {
            assert!(svg.contains(word), "{word}");
        }
    }

    #[test]
    fn any_title_is_well_formed() {
        let svg = svg("R \x1b[2J\0\x07 \u{9b}\u{202e}\u{fffe} ]]> <!-- &#0; \"'", &moments(300)).unwrap();
        assert!(
            svg.contains("R \\u001b[2J\\u0000\\u0007 \\u009b\\u202e\\ufffe ]]&gt; &lt;!-- &amp;#0;"),
            "{svg}"
        );
        assert!(!svg.contains(|letter: char| letter.is_control() && letter != '\n'), "{svg}");
    }

    #[test]
    fn sizes_that_differ_are_named() {
        let one = svg("", &moments(300)).unwrap();
        let apart = moments(300).into_iter().map(|it| Moment { most_set: 1 << 20, ..it }).collect::<Vec<_>>();
        let two = svg("", &apart).unwrap();
        for word in ["smallest", "largest", "where most pages are filled"] {
            assert!(two.contains(word) && !one.contains(word), "{word}");
        }
    }

    #[test]
    fn more_faults_are_drawn_higher() {
        let mut rising = moments(40);
        rising[39].faults = 1_000_000;
        let drawn = last_series(&svg("", &rising).unwrap());
        let (last, before) = (drawn[38], drawn[37]);
        assert!(drawn.len() == 39 && last + 100.0 < before, "{before} {last}");
    }

    #[test]
    fn absurd_moments_are_no_panic() {
        let absurd = Moment { seconds: f64::NAN, local: u64::MAX, faults: u64::MAX, ..Moment::default() };
        let still = vec![Moment::default(); 5];
        for moments in [vec![], moments(1), moments(2), still, vec![absurd, Moment::default(), absurd]] {
            assert!(svg("", &moments).unwrap().ends_with("</svg>\n"), "{moments:?}");
        }
    }
}
