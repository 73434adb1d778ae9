//! Intersection tests of faces: bounding boxes first, then each edge of one against the other.
//!
//! These functions implement the messages `:box`, `:intersection`, `:intersect-face` and `:intersectp`; boxes are
//! Lisp objects, as they are there.

use super::parts::{edge, face, point, points, slot};
use super::ring::{self, PointLocation, Tolerance};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::numeric::point::{Bounds, Point};
use crate::value::Value;

fn tolerance(cx: &mut Context, args: Args<'_>, first: usize) -> Result<Tolerance, Exit> {
    Ok(Tolerance { edge: args.float(cx, first)?, vertex: args.float(cx, first + 1)? })
}

/// Implements `(locate-in-ring vertices convexp normal point edge-tolerance vertex-tolerance)`.
pub(super) fn locate_in_ring(cx: &mut Context, args: Args<'_>) -> Answer {
    let (normal, at) = (cx.point(args[2])?, cx.point(args[3])?);
    let near = tolerance(cx, args, 4)?;
    match ring::locate(points(args[0]), !args[1].is_nil(), normal, at, near) {
        PointLocation::Inside => cx.keyword("INSIDE"),
        PointLocation::Border => cx.keyword("BORDER"),
        PointLocation::Outside => cx.keyword("OUTSIDE"),
    }
}

/// Implements `(common-box a b)`; nil when the boxes do not meet.
pub(super) fn common_box(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = (cx.bounds(args[0])?, cx.bounds(args[1])?);
    let class = cx.world.class_of(args[0]);
    match a.common(b) {
        Some(common) => cx.new_box(class, common),
        None => Ok(Value::NIL),
    }
}

fn face_bounds(polygon: Value) -> Bounds {
    Bounds::around(points(slot(polygon, face::VERTICES)))
}

/// Implements `(faces-in-box faces box)`: returns the faces whose boxes meet the box.
pub(super) fn faces_in_box(cx: &mut Context, args: Args<'_>) -> Answer {
    let bounds = cx.bounds(args[1])?;
    let class = cx.world.class_of(args[1]);
    let polygons = cx.alive(args[0])?;
    let list = cx.mark();
    cx.push(Value::NIL)?;
    for polygon in polygons {
        let own = cx.new_box(class, face_bounds(polygon))?;
        if cx.bounds(own)?.meets(bounds) {
            let longer = cx.cons(polygon, cx.root(list, 0))?;
            cx.set_root(list, 0, longer);
        }
    }
    Ok(cx.root(list, 0))
}

/// Locates a point of the plane relative to a polygon, whose holes are outside.
fn place(
    cx: &mut Context,
    polygon: Value,
    normal: Point,
    at: Point,
    near: Tolerance,
) -> Result<PointLocation, Exit> {
    let convex = !slot(polygon, face::CONVEXP).is_nil();
    let outer = ring::locate(points(slot(polygon, face::VERTICES)), convex, normal, at, near);
    if outer != PointLocation::Inside {
        return Ok(outer);
    }
    for hole in slot(polygon, face::HOLES).iter() {
        let normal = cx.plane(hole)?.normal;
        let convex = !slot(hole, face::CONVEXP).is_nil();
        match ring::locate(points(slot(hole, face::VERTICES)), convex, normal, at, near) {
            PointLocation::Inside => return Ok(PointLocation::Outside),
            PointLocation::Border => return Ok(PointLocation::Border),
            PointLocation::Outside => {}
        }
    }
    Ok(PointLocation::Inside)
}

/// Returns whether an edge of `polygon` that meets the box crosses `other`.
fn edges_cross(
    cx: &mut Context,
    polygon: Value,
    other: Value,
    bounds: Bounds,
    epsilon: f64,
    near: Tolerance,
) -> Result<bool, Exit> {
    let plane = cx.plane(other)?;
    for it in slot(polygon, face::EDGES).iter() {
        let (Some(from), Some(to)) = (point(slot(it, edge::PVERT)), point(slot(it, edge::NVERT))) else {
            return cx.type_error("line in space", it);
        };
        if !Bounds::around([from, to].into_iter()).meets(bounds) {
            continue;
        }
        let mut failed = None;
        let crossing = ring::crossing(plane, from, to, epsilon, |at| {
            place(cx, other, plane.normal, at, near).unwrap_or_else(|exit| {
                failed = Some(exit);
                PointLocation::Outside
            })
        });
        if let Some(exit) = failed {
            return Err(exit);
        }
        if crossing.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Implements `(edges-cross-p polygon other box epsilon edge-tolerance vertex-tolerance)`.
pub(super) fn edges_cross_p(cx: &mut Context, args: Args<'_>) -> Answer {
    let bounds = cx.bounds(args[2])?;
    let epsilon = args.float(cx, 3)?;
    let near = tolerance(cx, args, 4)?;
    let crossed = edges_cross(cx, args[0], args[1], bounds, epsilon, near)?;
    Ok(cx.truth(crossed))
}

/// Implements `(faces-meet-p faces others box epsilon edge-tolerance vertex-tolerance)`: returns whether any two
/// faces cross. Intermediate boxes have the class of `box`.
pub(super) fn faces_meet_p(cx: &mut Context, args: Args<'_>) -> Answer {
    cx.bounds(args[2])?;
    let class = cx.world.class_of(args[2]);
    let epsilon = args.float(cx, 3)?;
    let near = tolerance(cx, args, 4)?;
    let (ones, others) = (cx.alive(args[0])?, cx.alive(args[1])?);
    for one in ones {
        let outer = cx.mark();
        let one_box = cx.new_box(class, face_bounds(one))?;
        cx.push(one_box)?;
        for other in others.iter().copied() {
            let inner = cx.mark();
            let other_box = cx.new_box(class, face_bounds(other))?;
            cx.push(other_box)?;
            if let Some(common) = cx.bounds(one_box)?.common(cx.bounds(other_box)?) {
                let common = cx.new_box(class, common)?;
                let bounds = cx.bounds(common)?;
                if edges_cross(cx, one, other, bounds, epsilon, near)?
                    || edges_cross(cx, other, one, bounds, epsilon, near)?
                {
                    return Ok(cx.truth(true));
                }
            }
            cx.release(inner);
        }
        cx.release(outer);
    }
    Ok(Value::NIL)
}
