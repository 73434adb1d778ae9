//! Computes the segments of a plane along which the result can change.

use super::super::ring::Plane;
use super::facet::{Facet, Lengths, holds};
use super::sides::{on_segment, sides, within};
use crate::numeric::point::{Point, add, cross, distance, dot, norm, scale, sub};

/// Returns the segments of a plane, as pairs of indices of points. New points are appended to `points`. No two segments
/// cross, and none contains a point other than its ends.
pub(super) fn in_plane(
    facets: &[&Facet],
    plane: Plane,
    lengths: Lengths,
    points: &mut Vec<Point>,
) -> Vec<(usize, usize)> {
    let mut raw: Vec<(Point, Point)> = Vec::new();
    for facet in facets {
        if holds(plane, facet, lengths) {
            raw.extend(facet.rings.iter().flat_map(|ring| sides(ring)));
        } else {
            cut(facet, plane, lengths, &mut raw);
        }
    }
    let whole: Vec<(usize, usize)> = raw
        .into_iter()
        .map(|(from, to)| (weld(points, from, lengths.near), weld(points, to, lengths.near)))
        .filter(|(from, to)| from != to)
        .collect();
    let mut ends: Vec<usize> = whole.iter().flat_map(|(from, to)| [*from, *to]).collect();
    for (index, one) in whole.iter().enumerate() {
        for other in &whole[..index] {
            if let Some(point) = crossing(points, *one, *other) {
                ends.push(weld(points, point, lengths.near));
            }
        }
    }
    ends.sort_unstable();
    ends.dedup();
    let mut parts: Vec<(usize, usize)> =
        whole.iter().flat_map(|segment| split(points, *segment, &ends, lengths.near)).collect();
    parts.iter_mut().for_each(|(from, to)| (*from, *to) = ((*from).min(*to), (*from).max(*to)));
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Returns the index of a point, merging it with one closer than `near`.
fn weld(points: &mut Vec<Point>, point: Point, near: f64) -> usize {
    if let Some(index) = points.iter().position(|known| distance(*known, point) <= near) {
        return index;
    }
    points.push(point);
    points.len() - 1
}

/// Adds the intersection of the plane with a face that does not lie in it.
fn cut(facet: &Facet, plane: Plane, lengths: Lengths, into: &mut Vec<(Point, Point)>) {
    let level = |point: Point| {
        let height = plane.height(point);
        if height.abs() <= lengths.near { 0.0 } else { height }
    };
    let mut met: Vec<Point> = Vec::new();
    for (from, to) in facet.rings.iter().flat_map(|ring| sides(ring)) {
        let (start, end) = (level(from), level(to));
        if start == 0.0 {
            met.push(from);
        } else if start * end < 0.0 {
            met.push(add(from, scale(start / (start - end), sub(to, from))));
        }
    }
    let along = cross(plane.normal, facet.plane.normal);
    met.sort_by(|a, b| dot(along, *a).total_cmp(&dot(along, *b)));
    for pair in met.windows(2) {
        let middle = scale(0.5, add(pair[0], pair[1]));
        let border = || {
            facet.rings.iter().flat_map(|ring| sides(ring)).any(|side| on_segment(side, middle, lengths.near))
        };
        if distance(pair[0], pair[1]) > lengths.near
            && (within(&facet.rings, facet.plane.normal, middle) || border())
        {
            into.push((pair[0], pair[1]));
        }
    }
}

/// Returns the point at which two segments of one plane cross. If they only touch, it is an end of one of them.
fn crossing(points: &[Point], one: (usize, usize), other: (usize, usize)) -> Option<Point> {
    let (a, b) = (sub(points[one.1], points[one.0]), sub(points[other.1], points[other.0]));
    let normal = cross(a, b);
    let square = dot(normal, normal);
    if square.sqrt() <= 1e-12 * norm(a) * norm(b) {
        return None;
    }
    let gap = sub(points[other.0], points[one.0]);
    let at_one = dot(cross(gap, b), normal) / square;
    let at_other = dot(cross(gap, a), normal) / square;
    let inside = 0.0..=1.0;
    (inside.contains(&at_one) && inside.contains(&at_other)).then(|| add(points[one.0], scale(at_one, a)))
}

/// Splits a segment at the points on it.
fn split(points: &[Point], (from, to): (usize, usize), ends: &[usize], near: f64) -> Vec<(usize, usize)> {
    let along = sub(points[to], points[from]);
    let mut on: Vec<usize> = ends
        .iter()
        .copied()
        .filter(|end| on_segment((points[from], points[to]), points[*end], near))
        .collect();
    on.sort_by(|a, b| dot(along, points[*a]).total_cmp(&dot(along, points[*b])));
    on.windows(2).map(|pair| (pair[0], pair[1])).collect()
}
