//! Convex hull: points are added one by one to a solid of triangles, and coplanar triangles are merged at the end.

use crate::numeric::point::{Point, cross, distance, dot, norm, sub, unit};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy)]
struct Triangle {
    corners: [usize; 3],
    normal: Point,
    /// Signed distance of the plane from the origin along the normal.
    height: f64,
}

impl Triangle {
    fn of(points: &[Point], corners: [usize; 3]) -> Triangle {
        let [a, b, c] = corners.map(|corner| points[corner]);
        let normal = unit(cross(sub(b, a), sub(c, a)));
        Triangle { corners, normal, height: dot(normal, a) }
    }

    fn above(&self, point: Point) -> f64 {
        dot(self.normal, point) - self.height
    }

    /// Returns its sides, as pairs of corners in ring order.
    fn sides(&self) -> [(usize, usize); 3] {
        let [a, b, c] = self.corners;
        [(a, b), (b, c), (c, a)]
    }
}

/// Returns the faces of the hull as rings of indices, counterclockwise from outside, or none for coplanar points.
pub(super) fn hull(points: &[Point]) -> Option<Vec<Vec<usize>>> {
    let near = tolerance(points);
    let mut triangles = first_solid(points, near)?;
    for (index, point) in points.iter().enumerate() {
        add(points, &mut triangles, index, *point, near);
    }
    Some(faces(points, &triangles, near))
}

/// Returns the length up to which distances count as zero: a small part of the extent of the points.
fn tolerance(points: &[Point]) -> f64 {
    const SHARE: f64 = 1e-9;
    let far = points.iter().map(|point| distance(*point, points[0])).fold(0.0, f64::max);
    far * SHARE
}

/// Returns a tetrahedron of four points that are not nearly coplanar.
fn first_solid(points: &[Point], near: f64) -> Option<Vec<Triangle>> {
    let farthest = |size: &dyn Fn(Point) -> f64| {
        let best = (0..points.len()).max_by(|a, b| size(points[*a]).total_cmp(&size(points[*b])))?;
        (size(points[best]) > near).then_some(best)
    };
    let a = 0;
    let b = farthest(&|p| distance(p, points[a]))?;
    let along = unit(sub(points[b], points[a]));
    let c = farthest(&|p| norm(cross(along, sub(p, points[a]))))?;
    let base = Triangle::of(points, [a, b, c]);
    let d = farthest(&|p| base.above(p).abs())?;
    let [a, b, c] = if base.above(points[d]) > 0.0 { [a, c, b] } else { [a, b, c] };
    Some([[a, b, c], [a, d, b], [b, d, c], [c, d, a]].map(|corners| Triangle::of(points, corners)).into())
}

/// Removes the triangles that face the point, and closes the solid with new ones around it.
fn add(points: &[Point], triangles: &mut Vec<Triangle>, index: usize, point: Point, near: f64) {
    let seen: HashSet<(usize, usize)> =
        triangles.iter().filter(|triangle| triangle.above(point) > near).flat_map(Triangle::sides).collect();
    if seen.is_empty() {
        return;
    }
    triangles.retain(|triangle| triangle.above(point) <= near);
    for &(from, to) in seen.iter().filter(|(from, to)| !seen.contains(&(*to, *from))) {
        triangles.push(Triangle::of(points, [from, to, index]));
    }
}

/// Merges coplanar triangles.
fn faces(points: &[Point], triangles: &[Triangle], near: f64) -> Vec<Vec<usize>> {
    const PARALLEL: f64 = 1e-6;
    let mut rings = Vec::new();
    let mut left: Vec<&Triangle> = triangles.iter().collect();
    // Sorted, so that the order of faces does not depend on that of the hash set.
    left.sort_unstable_by_key(|triangle| triangle.corners);
    while let Some(first) = left.first().copied() {
        let in_plane = |triangle: &&Triangle| {
            norm(sub(triangle.normal, first.normal)) < PARALLEL
                && triangle.corners.iter().all(|corner| first.above(points[*corner]).abs() <= 10.0 * near)
        };
        let (joined, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(in_plane);
        left = rest;
        let sides: HashSet<_> = joined.iter().flat_map(|triangle| triangle.sides()).collect();
        let border = sides.iter().filter(|(from, to)| !sides.contains(&(*to, *from))).copied().collect();
        rings.push(without_straight_corners(points, ring(&border), near));
    }
    rings
}

/// Returns the ring of a border, starting at its smallest corner.
fn ring(border: &HashMap<usize, usize>) -> Vec<usize> {
    let Some(&start) = border.keys().min() else { return Vec::new() };
    let mut ring = vec![start];
    while let Some(&next) = ring.last().and_then(|corner| border.get(corner)) {
        if next == start || ring.len() > border.len() {
            break;
        }
        ring.push(next);
    }
    ring
}

fn without_straight_corners(points: &[Point], ring: Vec<usize>, near: f64) -> Vec<usize> {
    let count = ring.len();
    let bends = |index: usize| {
        let [before, at, after] = [count - 1, 0, 1].map(|step| points[ring[(index + step) % count]]);
        norm(cross(unit(sub(after, before)), sub(at, before))) > near
    };
    (0..count).filter(|index| bends(*index)).map(|index| ring[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(count: usize) -> Vec<Point> {
        let at = |index: usize| [index % count, index / count % count, index / count / count];
        (0..count.pow(3)).map(|index| at(index).map(|i| i as f64)).collect()
    }

    #[test]
    fn hull_omits_points_inside_faces() {
        let faces = hull(&grid(4)).unwrap();
        assert_eq!(faces.len(), 6);
        for face in &faces {
            assert_eq!(face.len(), 4, "{face:?}");
        }
        let corners: HashSet<usize> = faces.concat().into_iter().collect();
        assert_eq!(corners, HashSet::from([0, 3, 12, 15, 48, 51, 60, 63]));
    }

    #[test]
    fn faces_point_outwards() {
        let points = grid(2);
        for face in hull(&points).unwrap() {
            let triangle = Triangle::of(&points, [face[0], face[1], face[2]]);
            assert!(triangle.above([0.5; 3]) < 0.0, "{face:?}");
        }
    }

    #[test]
    fn coplanar_points_have_no_hull() {
        let flat: Vec<Point> = grid(3).into_iter().filter(|point| point[2] == 0.0).collect();
        assert_eq!(hull(&flat), None);
        assert_eq!(hull(&[]), None);
    }
}
