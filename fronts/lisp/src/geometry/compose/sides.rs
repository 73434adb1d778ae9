//! Locates points relative to the sides of rings.

use crate::numeric::point::{Point, add, cross, distance, dot, scale, sub};

/// Iterates over the sides of an open ring.
pub(super) fn sides(ring: &[Point]) -> impl Iterator<Item = (Point, Point)> {
    ring.iter().copied().zip(ring.iter().copied().cycle().skip(1))
}

/// Returns whether a point lies on a segment, including its ends.
pub(super) fn on_segment((from, to): (Point, Point), point: Point, near: f64) -> bool {
    let along = sub(to, from);
    let at = dot(along, sub(point, from)) / dot(along, along);
    let foot = add(from, scale(at.clamp(0.0, 1.0), along));
    distance(foot, point) <= near
}

/// Returns whether a point of the plane is inside the rings, by the angle they subtend at it.
pub(super) fn within(rings: &[Vec<Point>], normal: Point, point: Point) -> bool {
    let seen = |(from, to): (Point, Point)| angle_about(sub(from, point), sub(to, point), normal);
    rings.iter().flat_map(|ring| sides(ring)).map(seen).sum::<f64>() > std::f64::consts::PI
}

fn angle_about(a: Point, b: Point, normal: Point) -> f64 {
    dot(normal, cross(a, b)).atan2(dot(a, b))
}
