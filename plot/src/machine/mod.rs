//! Draws a machine: its parts as boxes in boxes, and its measurements below.
//!
//! ```text
//!   package ─ node ─ last cache ─ cores        one box in another
//!   bandwidth                                  bars, a group for each row
//!   latency                                    a line for each kind of page, over bytes
//!   cores                                      a square for each pair
//! ```

mod boxes;
mod charts;
mod drawing;

pub use drawing::{Bars, MachineDrawing, NamedBox, Series};

use crate::canvas::{DrawError, WIDTH, well_formed};
use plotters::prelude::{IntoDrawingArea as _, SVGBackend, WHITE};

/// Draws the machine.
///
/// # Errors
/// Returns the message of the drawing library.
pub fn svg(machine: &MachineDrawing) -> Result<String, String> {
    let mut text = String::new();
    draw(machine, &mut text).map_err(|error| error.to_string())?;
    Ok(well_formed(&text))
}

fn draw(machine: &MachineDrawing, text: &mut String) -> Result<(), DrawError> {
    let boxes = boxes::height(machine);
    let heights = [
        boxes,
        charts::bandwidth_height(machine),
        charts::latency_height(machine),
        charts::cores_height(machine),
    ];
    let all = SVGBackend::with_string(text, (WIDTH, heights.iter().sum())).into_drawing_area();
    all.fill(&WHITE)?;
    let (boxes, rest) = all.split_vertically(heights[0]);
    let (bandwidth, rest) = rest.split_vertically(heights[1]);
    let (latency, cores) = rest.split_vertically(heights[2]);
    boxes::draw(&boxes, machine)?;
    if heights[1] > 0 {
        charts::bandwidth(&bandwidth, &machine.bandwidth)?;
    }
    if heights[2] > 0 {
        charts::latency(&latency, &machine.latency)?;
    }
    if heights[3] > 0 {
        charts::cores(&cores, &machine.cores)?;
    }
    all.present()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(packages: usize, cores: usize) -> MachineDrawing {
        let core = |number: usize| vec![format!("CPU {number}"), "L2 1 MiB".into()];
        let cache =
            NamedBox { name: "L3 <32 MiB>".into(), groups: vec![], cores: (0..cores).map(core).collect() };
        let node = NamedBox { name: "node 0: 23 GiB".into(), groups: vec![cache], cores: vec![] };
        let package = NamedBox { name: "package".into(), groups: vec![node], cores: vec![] };
        MachineDrawing {
            title: "A & B".into(),
            packages: vec![package; packages],
            ..MachineDrawing::default()
        }
    }

    fn height(svg: &str) -> u32 {
        svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    }

    #[test]
    fn every_box_and_core_is_named() {
        let svg = svg(&machine(2, 3)).unwrap();
        for word in
            ["A &amp; B", "package", "node 0: 23 GiB", "L3 &lt;32 MiB&gt;", "CPU 0", "CPU 2", "L2 1 MiB"]
        {
            assert!(svg.contains(word), "{word}");
        }
        assert_eq!(svg.matches("CPU 2").count(), 2);
    }

    #[test]
    fn more_cores_need_more_room() {
        let [small, large] =
            [(1, 4), (2, 128)].map(|(packages, cores)| height(&svg(&machine(packages, cores)).unwrap()));
        assert!(large > 4 * small, "{small} {large}");
    }

    #[test]
    fn measurements_are_drawn_below() {
        let bare = height(&svg(&machine(1, 2)).unwrap());
        let mut measured = machine(1, 2);
        measured.bandwidth = vec![Bars {
            name: "0 on node 0".into(),
            bars: vec![("write".into(), 28.7), ("read".into(), 0.0)],
        }];
        measured.latency = vec![
            Series { name: "4k".into(), points: vec![(1 << 20, 5.0), (1 << 30, 194.0)] },
            Series { name: "thp".into(), points: vec![] },
        ];
        measured.cores = (vec![0, 7], vec![(0, 1, 327.0)]);
        let svg = svg(&measured).unwrap();
        for word in ["GB/s", "write", "0 on node 0", "4k", "1 GiB", "327", "nanoseconds"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(height(&svg) > bare + 300);
    }

    #[test]
    fn absurd_machines_are_no_panic() {
        let absurd = MachineDrawing {
            bandwidth: vec![Bars {
                name: String::new(),
                bars: vec![("x".into(), f64::NAN), ("y".into(), -1.0)],
            }],
            latency: vec![Series { name: String::new(), points: vec![(0, f64::INFINITY), (u64::MAX, 0.0)] }],
            cores: (vec![1], vec![(5, 6, f64::NAN)]),
            ..MachineDrawing::default()
        };
        for machine in [MachineDrawing::default(), absurd] {
            assert!(svg(&machine).unwrap().ends_with("</svg>\n"));
        }
    }
}
