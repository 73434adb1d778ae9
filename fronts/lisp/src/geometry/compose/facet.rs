//! Describes the faces of the solids that are composed.

use super::super::ring::Plane;
use crate::numeric::point::Point;

/// A facet is a face: its plane and its rings, the outer one first. Rings are open, and holes run clockwise.
#[derive(Clone, Debug)]
pub(crate) struct Facet {
    pub(crate) plane: Plane,
    pub(crate) rings: Vec<Vec<Point>>,
}

/// Holds tolerances, relative to the size of both solids together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// Distance below which points are merged.
    pub(super) near: f64,
    /// Largest distance from a segment at which points are classified.
    pub(super) aside: f64,
}

/// Returns whether a face lies in a plane.
pub(super) fn holds(plane: Plane, facet: &Facet, lengths: Lengths) -> bool {
    facet.rings[0].iter().all(|point| plane.height(*point).abs() <= lengths.near)
}
