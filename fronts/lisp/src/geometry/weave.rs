//! Creates the faces and edges of a solid from rings of vertices.

use super::hull;
use super::measures::normal_of;
use super::parts::{edge, face, hole};
use super::ring;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::numeric::point::dot;
use crate::value::{ObjectKind, Value};
use crate::world::class;
use std::collections::HashMap;

/// Maps two vertices to the edge between them, in either direction.
type Edges = HashMap<(Value, Value), Value>;

/// Implements `(weave-rings rings face-class edge-class [holes hole-class])`: creates a face for every list of
/// vertices, in their order, with holes from the corresponding list of rings in `holes`. Rings run counterclockwise,
/// seen from outside, those of holes clockwise; neighbours share the edge between two vertices that are the same
/// objects.
pub(super) fn weave_rings(cx: &mut Context, args: Args<'_>) -> Answer {
    check_class(cx, args[1], face::COUNT, "face class")?;
    check_class(cx, args[2], edge::COUNT, "edge class")?;
    let rings = cx.alive(args[0])?;
    let faces = cx.mark();
    cx.push(Value::NIL)?;
    for _ in &rings {
        let face = cx.new_instance(args[1])?;
        let longer = cx.cons(face, cx.root(faces, 0))?;
        cx.set_root(faces, 0, longer);
    }
    let mut edges = Edges::new();
    let mut holes = args.or_nil(3);
    for (face, ring) in cx.root(faces, 0).iter().zip(rings) {
        face.set_slot(face::PRIMITIVE_FACE, face);
        describe(cx, face, ring)?;
        link_edges(cx, face, face, ring, args[2], &mut edges)?;
        for ring in cx.alive(holes.car())? {
            check_class(cx, args.or_nil(4), hole::COUNT, "hole class")?;
            let hole = cx.new_instance(args[4])?;
            let longer = cx.cons(hole, face.slot(face::HOLES))?;
            face.set_slot(face::HOLES, longer);
            hole.set_slot(hole::FACE, face);
            describe(cx, hole, ring)?;
            link_edges(cx, hole, face, ring, args[2], &mut edges)?;
        }
        holes = holes.cdr();
    }
    if edges.values().any(|it| it.slot(edge::NFACE).is_nil()) {
        return cx.fail(
            ErrorClass::Range,
            "the faces leave a gap: an edge has no face on its other side".to_owned(),
        );
    }
    Ok(cx.root(faces, 0))
}

/// Checks that a value is a class whose instances have at least a number of slots.
pub(super) fn check_class(cx: &mut Context, value: Value, slots: usize, wanted: &str) -> Result<(), Exit> {
    if cx.is_class(value) && value.slot(class::slot::VARIABLES).length() >= slots {
        return Ok(());
    }
    cx.type_error(wanted, value)
}

/// Sets all slots of a polygon but its edges.
pub(super) fn describe(cx: &mut Context, face: Value, ring: Value) -> Result<(), Exit> {
    let corners = cx.points(ring)?;
    let [.., last] = corners[..] else {
        return cx.type_error("ring of vertices", ring);
    };
    if corners.len() < 3 {
        return cx.type_error("ring of at least 3 vertices", ring);
    }
    let normal = normal_of(&corners);
    face.set_slot(face::CONVEXP, cx.truth(ring::convex(&corners, normal)));
    for slot in [face::NORMAL, face::MODEL_NORMAL] {
        let normal = cx.floats_from(&normal)?;
        face.set_slot(slot, normal);
    }
    for slot in [face::DISTANCE, face::MODEL_DISTANCE] {
        let distance = cx.float(-dot(normal, last))?;
        face.set_slot(slot, distance);
    }
    link_vertices(cx, face, ring)
}

/// Links the vertices; the last one comes first, and again at the end.
fn link_vertices(cx: &mut Context, face: Value, ring: Value) -> Result<(), Exit> {
    let vertices = cx.alive(ring)?;
    for vertex in vertices.iter().rev().chain(vertices.last()) {
        let longer = cx.cons(*vertex, face.slot(face::VERTICES))?;
        face.set_slot(face::VERTICES, longer);
    }
    Ok(())
}

/// Links the edges; the first one starts at the last vertex. `polygon` is the face, or a hole of it.
fn link_edges(
    cx: &mut Context,
    polygon: Value,
    face: Value,
    ring: Value,
    class: Value,
    edges: &mut Edges,
) -> Result<(), Exit> {
    let vertices = cx.alive(ring)?;
    for (index, to) in vertices.iter().enumerate().rev() {
        let from = vertices[(index + vertices.len() - 1) % vertices.len()];
        let it = edge_between(cx, face, from, *to, class, edges)?;
        let longer = cx.cons(it, polygon.slot(face::EDGES))?;
        polygon.set_slot(face::EDGES, longer);
    }
    Ok(())
}

fn edge_between(
    cx: &mut Context,
    face: Value,
    from: Value,
    to: Value,
    class: Value,
    edges: &mut Edges,
) -> Answer {
    if let Some(it) = edges.get(&(to, from)) {
        if it.slot(edge::NFACE).is_nil() {
            it.set_slot(edge::NFACE, face);
            return Ok(*it);
        }
        return cx.fail(ErrorClass::Range, "no solid: more than two faces meet in an edge".to_owned());
    }
    if edges.contains_key(&(from, to)) {
        return cx.fail(
            ErrorClass::Range,
            "no solid: two faces run in the same direction along an edge".to_owned(),
        );
    }
    let it = cx.new_instance(class)?;
    it.set_slot(edge::PVERT, from);
    it.set_slot(edge::NVERT, to);
    it.set_slot(edge::PFACE, face);
    it.set_slot(edge::ANGLE, cx.float(0.0)?);
    it.set_slot(edge::FLAGS, Value::fixnum(0));
    edges.insert((from, to), it);
    Ok(it)
}

/// Implements `(hull-rings points)`: returns the faces of the convex hull, as rings of the given points.
pub(super) fn hull_rings(cx: &mut Context, args: Args<'_>) -> Answer {
    let (given, points) = cx.vertices(args[0])?;
    let Some(rings) = hull::hull(&points) else {
        return cx.fail(ErrorClass::Range, "a hull needs points that do not lie in one plane".to_owned());
    };
    debug_assert!(given.iter().all(|value| value.is(ObjectKind::FloatVector)));
    let list = cx.mark();
    cx.push(Value::NIL)?;
    for ring in rings {
        let ring: Vec<Value> = ring.into_iter().map(|index| given[index]).collect();
        let ring = cx.list(&ring)?;
        let longer = cx.cons(ring, cx.root(list, 0))?;
        cx.set_root(list, 0, longer);
    }
    Ok(cx.root(list, 0))
}
