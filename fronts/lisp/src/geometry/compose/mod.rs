//! Computes union, intersection and difference of solids.
//!
//! # Method
//! The winding number tells reliably whether a point is inside a solid, except on its surface (`winding`). So in each
//! plane that contains a face of either solid:
//! 1. All segments along which the result can change are computed: edges in the plane, and intersections with other faces
//!    (`segments`).
//! 2. On the left and right of each segment, a point just below and one just above the plane are classified:
//!    where the result is below and not above, the plane is its surface.
//! 3. Segments with surface on one side are the borders of the result's faces (`rings`).
//!
//! Faces that coincide, touch or share a plane need no special cases.

mod composed;
mod facet;
mod rings;
mod segments;
mod sides;
mod winding;

use super::ring::Plane;
use crate::numeric::point::{Bounds, Point, add, between, cross, distance, dot, scale, sub, unit};
pub(super) use composed::{Composed, Made};
pub(super) use facet::Facet;
use facet::{Lengths, holds};
use winding::Winding;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

impl Operation {
    fn holds(self, first: bool, second: bool) -> bool {
        match self {
            Operation::Union => first || second,
            Operation::Intersection => first && second,
            Operation::Difference => first && !second,
        }
    }
}

/// Distance of the classified points above and below the plane, relative to that from the segment: surfaces that meet
/// the plane at a smaller angle are not distinguished from it.
const STEEPNESS: f64 = 1e-3;

/// Combines two solids.
pub(super) fn compose(first: &[Facet], second: &[Facet], operation: Operation) -> Composed {
    let facets: Vec<&Facet> = first.iter().chain(second).collect();
    let lengths = lengths_of(&facets);
    let solids = [Winding::of(first), Winding::of(second)];
    let within = |point| operation.holds(solids[0].within(point), solids[1].within(point));
    let mut composed = Composed::default();
    for plane in planes(&facets, lengths) {
        let segments = segments::in_plane(&facets, plane, lengths, &mut composed.points);
        let mut borders = [Vec::new(), Vec::new()];
        for (from, to) in segments {
            let sides = [1.0, -1.0].map(|side| {
                surface(within, plane, composed.points[from], composed.points[to], side, lengths)
            });
            for (border, normal) in borders.iter_mut().zip([1, -1]) {
                match sides.map(|side| side == normal) {
                    // With the opposite normal, the left side is the right one.
                    [true, false] => border.push(if normal == 1 { (from, to) } else { (to, from) }),
                    [false, true] => border.push(if normal == 1 { (to, from) } else { (from, to) }),
                    _ => {}
                }
            }
        }
        for (border, normal) in borders.into_iter().zip([plane.normal, opposite(plane.normal)]) {
            for rings in rings::faces(&composed.points, border, normal) {
                let source = source(&facets, plane, &composed.points, &rings, normal, lengths);
                composed.faces.push(Made { rings, source });
            }
        }
    }
    rings::straighten(&mut composed, lengths.near);
    composed
}

fn opposite(normal: Point) -> Point {
    scale(-1.0, normal)
}

fn lengths_of(facets: &[&Facet]) -> Lengths {
    let bounds = Bounds::around(facets.iter().flat_map(|facet| facet.rings.iter().flatten().copied()));
    let size = distance(bounds.low, bounds.high);
    Lengths { near: 1e-9 * size, aside: 1e-5 * size }
}

/// Returns the planes that contain faces, each once, regardless of orientation.
fn planes(facets: &[&Facet], lengths: Lengths) -> Vec<Plane> {
    let mut planes: Vec<Plane> = Vec::new();
    for facet in facets {
        if !planes.iter().any(|plane| holds(*plane, facet, lengths)) {
            planes.push(facet.plane);
        }
    }
    planes
}

/// Returns the direction of the result's surface next to a segment: 1 if it faces along the normal, -1 if against it, 0
/// if the plane has no surface there.
fn surface(
    within: impl Fn(Point) -> bool,
    plane: Plane,
    from: Point,
    to: Point,
    side: f64,
    lengths: Lengths,
) -> i8 {
    let along = sub(to, from);
    let aside = lengths.aside.min(0.1 * distance(from, to));
    let beside = add(between(0.5, from, to), scale(side * aside, unit(cross(plane.normal, along))));
    let off = scale(aside * STEEPNESS, plane.normal);
    match (within(sub(beside, off)), within(add(beside, off))) {
        (true, false) => 1,
        (false, true) => -1,
        _ => 0,
    }
}

/// Returns the original face that contains a point just inside the rings.
fn source(
    facets: &[&Facet],
    plane: Plane,
    points: &[Point],
    rings: &[Vec<usize>],
    normal: Point,
    lengths: Lengths,
) -> usize {
    let (from, to) = (points[rings[0][0]], points[rings[0][1]]);
    let inwards = unit(cross(normal, sub(to, from)));
    let aside = lengths.aside.min(0.1 * distance(from, to));
    let at = add(between(0.5, from, to), scale(aside, inwards));
    let holding =
        |facet: &&Facet| holds(plane, facet, lengths) && sides::within(&facet.rings, facet.plane.normal, at);
    // If both solids have a face there, the one with the same orientation is chosen.
    let same_way = |facet: &&Facet| dot(facet.plane.normal, normal) > 0.0 && holding(facet);
    facets.iter().position(same_way).or_else(|| facets.iter().position(holding)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
