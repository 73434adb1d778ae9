//! Computes normals, angles, areas and volumes, and transforms points by a frame.

use super::parts::{edge, face, point, points, slot};
use super::ring;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::numeric::point::{Point, add, angle, cross, dot, scale, sub, turn, unit};
use crate::value::{ObjectKind, Value};

/// Implements `(triangle a b c [normal])`: returns twice the signed area, for points in space or in the plane.
pub(super) fn triangle(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut corners = [[0.0; 3]; 3];
    for (corner, value) in corners.iter_mut().zip(args.iter()) {
        *corner = match *value {
            flat if flat.is(ObjectKind::FloatVector) && flat.length() == 2 => {
                [flat.floats()[0], flat.floats()[1], 0.0]
            }
            space => cx.point(space)?,
        };
    }
    let normal = match args.given(3) {
        Some(normal) => cx.point(normal)?,
        None => [0.0, 0.0, 1.0],
    };
    cx.float(turn(corners[0], corners[1], corners[2], normal))
}

/// Implements `(vector-angle a b [normal])`; without a normal the angle is not negative.
pub(super) fn vector_angle(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = (cx.point(args[0])?, cx.point(args[1])?);
    let normal = match args.given(2) {
        Some(normal) => cx.point(normal)?,
        None => unit(cross(a, b)),
    };
    cx.float(angle(a, b, normal))
}

/// Returns the unit normal of the plane that fits a ring.
pub(super) fn normal_of(ring: &[Point]) -> Point {
    let next = ring.iter().cycle().skip(1);
    unit(ring.iter().zip(next).fold([0.0; 3], |sum, (a, b)| add(sum, cross(*a, *b))))
}

pub(super) fn face_normal_vector(cx: &mut Context, args: Args<'_>) -> Answer {
    let ring = cx.points(args[0])?;
    cx.floats_from(&normal_of(&ring))
}

pub(super) fn convex_ring_p(cx: &mut Context, args: Args<'_>) -> Answer {
    let (ring, normal) = (cx.points(args[0])?, cx.point(args[1])?);
    Ok(cx.truth(ring::convex(&ring, normal)))
}

/// Returns the area and centroid of a closed ring.
fn measure(ring: impl Iterator<Item = Point> + Clone, normal: Point) -> (f64, Point) {
    let Some(first) = ring.clone().next() else { return (0.0, [0.0; 3]) };
    let mut twice_area = 0.0;
    let mut moment = [0.0; 3];
    for (a, b) in ring.clone().zip(ring.skip(1)) {
        let part = turn(first, a, b, normal);
        twice_area += part;
        moment = add(moment, scale(part / 3.0, add(first, add(a, b))));
    }
    (twice_area / 2.0, scale(1.0 / twice_area, moment))
}

pub(super) fn ring_centroid(cx: &mut Context, args: Args<'_>) -> Answer {
    let normal = cx.point(args[1])?;
    let (area, centre) = measure(points(args[0]), normal);
    let centre = cx.floats_from(&centre)?;
    cx.push(centre)?;
    let area = cx.float(area)?;
    cx.list(&[area, centre])
}

/// Returns the area of a face without its holes, and its centroid times that area.
fn face_moment(cx: &mut Context, polygon: Value) -> Result<(f64, Point), Exit> {
    let plane = cx.plane(polygon)?;
    let (mut area, centre) = measure(points(slot(polygon, face::VERTICES)), plane.normal);
    let mut moment = scale(area, centre);
    for hole in slot(polygon, face::HOLES).iter() {
        let normal = cx.plane(hole)?.normal;
        let (hole_area, centre) = measure(points(slot(hole, face::VERTICES)), normal);
        area -= hole_area;
        moment = sub(moment, scale(hole_area, centre));
    }
    Ok((area, moment))
}

/// Returns `(volume centroid)` of the solid that the faces enclose, summed over the cones from them to a point.
pub(super) fn solid_measures(cx: &mut Context, args: Args<'_>) -> Answer {
    let apex = cx.point(args[1])?;
    let mut volume = 0.0;
    let mut moment = [0.0; 3];
    for polygon in args[0].iter() {
        let (area, face_moment) = face_moment(cx, polygon)?;
        let third_height = cx.plane(polygon)?.height(apex) / -3.0;
        volume += third_height * area;
        let centre_by_area = add(scale(0.75, face_moment), scale(0.25 * area, apex));
        moment = add(moment, scale(third_height, centre_by_area));
    }
    let centre = cx.floats_from(&scale(1.0 / volume, moment))?;
    cx.push(centre)?;
    let volume = cx.float(volume)?;
    cx.list(&[volume, centre])
}

/// Implements `(measure-edges edges threshold)`: stores in each edge the angle between its faces, and marks it as
/// part of a curve when the angle is below the threshold. Returns whether all angles are convex.
pub(super) fn measure_edges(cx: &mut Context, args: Args<'_>) -> Answer {
    let threshold = if args[1].is_nil() { None } else { Some(args.float(cx, 1)?) };
    let mut convex = true;
    for it in cx.alive(args[0])? {
        let ends = (point(slot(it, edge::PVERT)), point(slot(it, edge::NVERT)));
        let normals = [edge::PFACE, edge::NFACE].map(|side| point(slot(slot(it, side), face::NORMAL)));
        let ((Some(from), Some(to)), [Some(p), Some(n)]) = (ends, normals) else {
            return cx.type_error("edge between two faces", it);
        };
        if it.length() < edge::COUNT {
            return cx.type_error("edge", it);
        }
        let between = angle(p, n, unit(sub(to, from)));
        convex &= between > 0.0;
        it.set_slot(edge::ANGLE, cx.float(between)?);
        if let Some(threshold) = threshold {
            let flags = it.slot(edge::FLAGS).as_fixnum().unwrap_or(0);
            let curved = between.abs() < threshold;
            it.set_slot(edge::FLAGS, Value::fixnum(if curved { flags | 1 } else { flags & !1 }));
        }
    }
    Ok(cx.truth(convex))
}

/// Implements `(move-points from to rotation position)`: transforms each point of one list by a frame and stores it
/// in the corresponding point of the other.
pub(super) fn move_points(cx: &mut Context, args: Args<'_>) -> Answer {
    let (rotation, position) = (args.matrix(cx, 2)?, cx.point(args[3])?);
    if (rotation.rows, rotation.columns) != (3, 3) {
        return cx.type_error("3 x 3 matrix", args[2]);
    }
    let rows: [Point; 3] = std::array::from_fn(|i| std::array::from_fn(|j| rotation.at(i, j)));
    for (from, to) in args[0].iter().zip(args[1].iter()) {
        let model = cx.point(from)?;
        cx.point(to)?;
        to.floats_mut().copy_from_slice(&add(rows.map(|row| dot(row, model)), position));
    }
    Ok(args[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concave_ring_is_measured_by_triangles() {
        let ell = [[0., 0., 0.], [2., 0., 0.], [2., 1., 0.], [1., 1., 0.], [1., 2., 0.], [0., 2., 0.]];
        let closed = ell.into_iter().chain([ell[0]]);
        let (area, centre) = measure(closed, [0.0, 0.0, 1.0]);
        assert!((area - 3.0).abs() < 1e-12);
        assert!(crate::numeric::point::norm(sub(centre, [5.0 / 6.0, 5.0 / 6.0, 0.0])) < 1e-12);
        assert_eq!(normal_of(&ell), [0.0, 0.0, 1.0]);
    }
}
