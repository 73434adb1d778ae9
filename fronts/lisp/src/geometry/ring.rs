//! The ring of a polygon: location of points relative to it, and segments that cross it.
//!
//! A ring is closed: its first vertex is repeated at the end.

use crate::numeric::point::{Point, angle, between, distance, dot, sub, turn, unit};

/// Tells where a point lies relative to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointLocation {
    Inside,
    Border,
    Outside,
}

/// Distances below which a point counts as on the border.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// Distance from an edge.
    pub(crate) edge: f64,
    /// Distance from a vertex of a ring that is not convex.
    pub(crate) vertex: f64,
}

/// Represents the plane of a polygon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub(crate) normal: Point,
    /// Signed offset of the plane: a point's distance from it is `normal . point + distance`.
    pub(crate) distance: f64,
}

impl Plane {
    pub(crate) fn height(self, point: Point) -> f64 {
        dot(point, self.normal) + self.distance
    }

    /// Returns the parameter at which a line crosses the plane, 0 at `from` and 1 at `to`; not finite when it is
    /// parallel.
    pub(crate) fn crossing(self, from: Point, to: Point) -> f64 {
        let (start, end) = (dot(self.normal, from), dot(self.normal, to));
        (self.distance + start) / (start - end)
    }
}

/// Locates a point of the plane.
pub(crate) fn locate<R>(ring: R, convex: bool, normal: Point, point: Point, near: Tolerance) -> PointLocation
where
    R: Iterator<Item = Point> + Clone,
{
    if convex { locate_convex(ring, normal, point, near.edge) } else { locate_any(ring, normal, point, near) }
}

fn locate_convex(
    mut ring: impl Iterator<Item = Point>,
    normal: Point,
    point: Point,
    near: f64,
) -> PointLocation {
    let Some(mut from) = ring.next() else { return PointLocation::Outside };
    for to in ring {
        let twice_area = turn(from, to, point, normal);
        if (twice_area / distance(from, to)).abs() < near {
            let edge = sub(to, from);
            let at = dot(edge, sub(point, from)) / dot(edge, edge);
            if (-near..=1.0 + near).contains(&at) {
                return PointLocation::Border;
            }
        } else if twice_area < 0.0 {
            return PointLocation::Outside;
        }
        from = to;
    }
    PointLocation::Inside
}

/// Locates a point by the angle that the ring subtends at it: a full turn inside, zero outside.
fn locate_any(
    ring: impl Iterator<Item = Point> + Clone,
    normal: Point,
    point: Point,
    near: Tolerance,
) -> PointLocation {
    use std::f64::consts::PI;
    if ring.clone().skip(1).any(|vertex| distance(vertex, point) < near.vertex) {
        return PointLocation::Border;
    }
    let mut directions = ring.map(|vertex| unit(sub(vertex, point)));
    let Some(mut from) = directions.next() else { return PointLocation::Outside };
    let mut total = 0.0;
    for to in directions {
        let step = angle(from, to, normal);
        if (step.abs() - PI).abs() < near.edge {
            return PointLocation::Border;
        }
        total += step;
        from = to;
    }
    if total.abs() > PI { PointLocation::Inside } else { PointLocation::Outside }
}

/// Returns the crossing of a segment with a polygon, if there is one: its parameter and the point.
///
/// A segment that ends within `epsilon` of the plane (relative to its length) crosses it. One that lies in the plane
/// has no such point: it crosses, as in EusLisp, and its parameter is not a number.
pub(crate) fn crossing(
    plane: Plane,
    from: Point,
    to: Point,
    epsilon: f64,
    locate: impl FnOnce(Point) -> PointLocation,
) -> Option<(f64, Point)> {
    let at = plane.crossing(from, to);
    let point = between(at, from, to);
    if at.is_nan() {
        return Some((at, point));
    }
    if !(-epsilon..=1.0 + epsilon).contains(&at) {
        return None;
    }
    (locate(point) != PointLocation::Outside).then_some((at, point))
}

/// Returns whether a ring never turns right, seen against its normal.
pub(crate) fn convex(ring: &[Point], normal: Point) -> bool {
    let count = ring.len();
    (0..count).all(|i| turn(ring[i], ring[(i + 1) % count], ring[(i + 2) % count], normal) >= 0.0)
}
