//! A polygon's ring of vertices: where a point of its plane lies, and which segments cross it.
//!
//! A ring is closed: its first vertex comes again as the last one.

use crate::numeric::point::{Point, angle, between, distance, dot, sub, turn, unit};

/// Where a point lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inside,
    Border,
    Outside,
}

/// How near is on: lengths that count as nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    /// From an edge.
    pub(crate) edge: f64,
    /// From a vertex of a ring that is not convex.
    pub(crate) vertex: f64,
}

/// What is known of a polygon besides its ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub(crate) normal: Point,
    /// Of the origin, against the normal: a point's distance is `normal . point + distance`.
    pub(crate) distance: f64,
}

impl Plane {
    pub(crate) fn height(self, point: Point) -> f64 {
        dot(point, self.normal) + self.distance
    }

    /// Where a line crosses the plane, 0 at `from` and 1 at `to`; not finite when it is parallel.
    pub(crate) fn crossing(self, from: Point, to: Point) -> f64 {
        let (start, end) = (dot(self.normal, from), dot(self.normal, to));
        (self.distance + start) / (start - end)
    }
}

/// Where a point of the plane lies.
pub(crate) fn locate<R>(ring: R, convex: bool, normal: Point, point: Point, near: Tolerance) -> Place
where
    R: Iterator<Item = Point> + Clone,
{
    if convex { locate_convex(ring, normal, point, near.edge) } else { locate_any(ring, normal, point, near) }
}

fn locate_convex(mut ring: impl Iterator<Item = Point>, normal: Point, point: Point, near: f64) -> Place {
    let Some(mut from) = ring.next() else { return Place::Outside };
    for to in ring {
        let twice_area = turn(from, to, point, normal);
        if (twice_area / distance(from, to)).abs() < near {
            let edge = sub(to, from);
            let at = dot(edge, sub(point, from)) / dot(edge, edge);
            if (-near..=1.0 + near).contains(&at) {
                return Place::Border;
            }
        } else if twice_area < 0.0 {
            return Place::Outside;
        }
        from = to;
    }
    Place::Inside
}

/// By the angle under which the point sees the ring go round: a turn when inside, nothing when not.
fn locate_any(
    ring: impl Iterator<Item = Point> + Clone,
    normal: Point,
    point: Point,
    near: Tolerance,
) -> Place {
    use std::f64::consts::PI;
    if ring.clone().skip(1).any(|vertex| distance(vertex, point) < near.vertex) {
        return Place::Border;
    }
    let mut directions = ring.map(|vertex| unit(sub(vertex, point)));
    let Some(mut from) = directions.next() else { return Place::Outside };
    let mut total = 0.0;
    for to in directions {
        let step = angle(from, to, normal);
        if (step.abs() - PI).abs() < near.edge {
            return Place::Border;
        }
        total += step;
        from = to;
    }
    if total.abs() > PI { Place::Inside } else { Place::Outside }
}

/// Where a segment crosses a polygon, if it does: `at` of the way, and the point.
///
/// Segments that end within `epsilon` of the plane (as a share of their length) cross it. One that lies
/// in the plane has no such point: it crosses, as in EusLisp, and `at` is not a number.
pub(crate) fn crossing(
    plane: Plane,
    from: Point,
    to: Point,
    epsilon: f64,
    locate: impl FnOnce(Point) -> Place,
) -> Option<(f64, Point)> {
    let at = plane.crossing(from, to);
    let point = between(at, from, to);
    if at.is_nan() {
        return Some((at, point));
    }
    if !(-epsilon..=1.0 + epsilon).contains(&at) {
        return None;
    }
    (locate(point) != Place::Outside).then_some((at, point))
}

/// Whether a ring never turns right, seen against its normal.
pub(crate) fn convex(ring: &[Point], normal: Point) -> bool {
    let count = ring.len();
    (0..count).all(|i| turn(ring[i], ring[(i + 1) % count], ring[(i + 2) % count], normal) >= 0.0)
}
