//! Draws a machine: what it is made of, as boxes in boxes, and what was measured, below.
//!
//! ```text
//!   package ─ node ─ last cache ─ cores        one box in another
//!   bandwidth                                  bars, a group for each row
//!   latency                                    a line for each kind of page, over bytes
//!   cores                                      a square for each pair
//! ```

mod boxes;
mod charts;

use crate::{Trouble, WIDTH};
use plotters::prelude::{IntoDrawingArea as _, SVGBackend, WHITE};

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The line above everything.
    pub title: String,
    /// Sockets.
    pub packages: Vec<Group>,
    /// Measured: GB/s.
    pub bandwidth: Vec<Bars>,
    /// Measured: nanoseconds for one access, over bytes.
    pub latency: Vec<Series>,
    /// Measured: processors, and nanoseconds for each pair of places in this list.
    pub cores: (Vec<u32>, Vec<(usize, usize, f64)>),
}

/// A box with a name, and what is in it.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Boxes in it.
    pub groups: Vec<Group>,
    /// Cores in it: the lines of each one.
    pub cores: Vec<Vec<String>>,
}

/// A group of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Below them.
    pub name: String,
    /// The name of each bar and its height.
    pub bars: Vec<(String, f64)>,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Beside it.
    pub name: String,
    /// Bytes and nanoseconds.
    pub points: Vec<(u64, f64)>,
}

/// The picture.
///
/// # Errors
/// What the drawing library says.
pub fn svg(machine: &Machine) -> Result<String, String> {
    let mut text = String::new();
    draw(machine, &mut text).map_err(|trouble| trouble.to_string())?;
    Ok(crate::well_formed(&text))
}

fn draw(machine: &Machine, text: &mut String) -> Result<(), Trouble> {
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

    fn machine(packages: usize, cores: usize) -> Machine {
        let core = |number: usize| vec![format!("CPU {number}"), "L2 1 MiB".into()];
        let cache =
            Group { name: "L3 <32 MiB>".into(), groups: vec![], cores: (0..cores).map(core).collect() };
        let node = Group { name: "node 0: 23 GiB".into(), groups: vec![cache], cores: vec![] };
        let package = Group { name: "package".into(), groups: vec![node], cores: vec![] };
        Machine { title: "A & B".into(), packages: vec![package; packages], ..Machine::default() }
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
    fn what_was_measured_is_drawn_below() {
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
    fn nothing_and_absurd_numbers_are_no_panic() {
        let absurd = Machine {
            bandwidth: vec![Bars {
                name: String::new(),
                bars: vec![("x".into(), f64::NAN), ("y".into(), -1.0)],
            }],
            latency: vec![Series { name: String::new(), points: vec![(0, f64::INFINITY), (u64::MAX, 0.0)] }],
            cores: (vec![1], vec![(5, 6, f64::NAN)]),
            ..Machine::default()
        };
        for machine in [Machine::default(), absurd] {
            assert!(svg(&machine).unwrap().ends_with("</svg>\n"));
        }
    }
}
