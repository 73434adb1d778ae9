//! Builds rings from directed borders, and faces from rings.

use super::composed::Composed;
use super::sides::{on_segment, sides, within};
use crate::numeric::point::{Point, add, angle, cross, distance, dot, norm, scale, sub, unit};
use std::collections::HashMap;

/// Returns the faces to the left of the borders. Each is a list of rings, of which the outer one is the first.
pub(super) fn faces(points: &[Point], border: Vec<(usize, usize)>, normal: Point) -> Vec<Vec<Vec<usize>>> {
    let (outer, holes): (Vec<_>, Vec<_>) =
        closed(points, border, normal).into_iter().partition(|ring| area(points, ring, normal) > 0.0);
    let mut faces: Vec<Vec<Vec<usize>>> = outer.into_iter().map(|ring| vec![ring]).collect();
    for hole in holes {
        let around = |face: &&mut Vec<Vec<usize>>| inside_of(points, &hole, &face[0], normal);
        let smallest = faces
            .iter_mut()
            .filter(around)
            .min_by(|a, b| area(points, &a[0], normal).total_cmp(&area(points, &b[0], normal)));
        if let Some(face) = smallest {
            face.push(hole);
        }
    }
    faces
}

fn area(points: &[Point], ring: &[usize], normal: Point) -> f64 {
    let corners = corners(points, ring);
    dot(normal, sides(&corners).fold([0.0; 3], |sum, (a, b)| add(sum, cross(a, b)))) / 2.0
}

fn corners(points: &[Point], ring: &[usize]) -> Vec<Point> {
    ring.iter().map(|index| points[*index]).collect()
}

/// Returns whether a hole lies in a ring. A corner of the hole that is not on the ring decides.
fn inside_of(points: &[Point], hole: &[usize], ring: &[usize], normal: Point) -> bool {
    let outer = [corners(points, ring)];
    hole.iter().any(|corner| !ring.contains(corner) && within(&outer, normal, points[*corner]))
}

/// Connects borders to rings. If several borders start at a point, the one that turns left most sharply is taken, so
/// that rings which touch in a point remain separate.
fn closed(points: &[Point], border: Vec<(usize, usize)>, normal: Point) -> Vec<Vec<usize>> {
    let mut leaving: HashMap<usize, Vec<usize>> = HashMap::new();
    for (from, to) in &border {
        leaving.entry(*from).or_default().push(*to);
    }
    let mut rings = Vec::new();
    for (first, _) in border {
        let Some(mut next) = leaving.get_mut(&first).and_then(Vec::pop) else { continue };
        let mut ring = vec![first];
        while next != first {
            let before = ring[ring.len() - 1];
            ring.push(next);
            let Some(ways) = leaving.get_mut(&next).filter(|ways| !ways.is_empty()) else { break };
            let came = unit(sub(points[next], points[before]));
            let turn = |way: &usize| angle(came, unit(sub(points[*way], points[next])), normal);
            let best =
                (0..ways.len()).max_by(|a, b| turn(&ways[*a]).total_cmp(&turn(&ways[*b]))).unwrap_or(0);
            next = ways.swap_remove(best);
        }
        if next == first && ring.len() > 2 {
            rings.push(ring);
        }
    }
    rings
}

/// Gives neighbouring faces the same corners: inserts into each ring every corner on one of its sides, and removes
/// corners at which no ring bends.
pub(super) fn straighten(composed: &mut Composed, near: f64) {
    let points = &composed.points;
    let mut used: Vec<usize> = composed.faces.iter().flat_map(|face| face.rings.concat()).collect();
    used.sort_unstable();
    used.dedup();
    let rings = || composed.faces.iter().flat_map(|face| &face.rings);
    let bends = |corner: &usize| {
        rings().any(|ring| {
            let count = ring.len();
            (0..count).filter(|at| ring[*at] == *corner).any(|at| {
                let (before, after) =
                    (points[ring[(at + count - 1) % count]], points[ring[(at + 1) % count]]);
                let here = points[*corner];
                distance_to_line(before, after, here) > near || distance(before, after) <= near
            })
        })
    };
    let kept: Vec<usize> = used.into_iter().filter(bends).collect();
    let with_corners = |ring: &Vec<usize>| {
        let bent: Vec<usize> =
            ring.iter().copied().filter(|corner| kept.binary_search(corner).is_ok()).collect();
        let mut full = Vec::new();
        for (at, from) in bent.iter().enumerate() {
            let to = bent[(at + 1) % bent.len()];
            let side = (points[*from], points[to]);
            let along = sub(side.1, side.0);
            let mut on: Vec<usize> = kept
                .iter()
                .copied()
                .filter(|corner| *corner != *from && *corner != to && on_segment(side, points[*corner], near))
                .collect();
            on.sort_by(|a, b| dot(along, points[*a]).total_cmp(&dot(along, points[*b])));
            full.push(*from);
            full.append(&mut on);
        }
        full
    };
    let straight: Vec<Vec<Vec<usize>>> =
        composed.faces.iter().map(|face| face.rings.iter().map(with_corners).collect()).collect();
    for (face, rings) in composed.faces.iter_mut().zip(straight) {
        face.rings = rings;
    }
}

fn distance_to_line(from: Point, to: Point, point: Point) -> f64 {
    let along = unit(sub(to, from));
    let gap = sub(point, from);
    norm(sub(gap, scale(dot(gap, along), along)))
}
