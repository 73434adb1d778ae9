//! The builtin that composes solids: takes faces and returns the rings of the result's faces.

use super::compose::{Facet, Operation, compose};
use super::parts::{face, slot};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{Value, symbol};

/// Implements `(compose-rings faces others operation)` with `:union`, `:intersection` or `:difference`. Returns a
/// list of (face ring hole ...) for each face of the result: the original face, and rings of new vertices, which
/// neighbours share.
pub(super) fn compose_rings(cx: &mut Context, args: Args<'_>) -> Answer {
    let (ours, others) = (cx.alive(args[0])?, cx.alive(args[1])?);
    let (first, second) = (facets(cx, &ours)?, facets(cx, &others)?);
    let operation = operation(cx, args[2])?;
    let sources = [ours, others].concat();
    let composed = cx.blocked(|| compose(&first, &second, operation));
    let points = cx.new_vector(composed.points.len())?;
    cx.push(points)?;
    for (index, point) in composed.points.iter().enumerate() {
        let vertex = cx.floats_from(point)?;
        points.set_slot(index, vertex);
    }
    let list = cx.mark();
    cx.push(Value::NIL)?;
    for made in composed.faces.iter().rev() {
        let here = cx.mark();
        let mut parts = vec![sources[made.source]];
        for ring in &made.rings {
            let vertices: Vec<Value> = ring.iter().map(|index| points.slot(*index)).collect();
            let ring = cx.list(&vertices)?;
            cx.push(ring)?;
            parts.push(ring);
        }
        let parts = cx.list(&parts)?;
        let longer = cx.cons(parts, cx.root(list, 0))?;
        cx.release(here);
        cx.set_root(list, 0, longer);
    }
    Ok(cx.root(list, 0))
}

fn operation(cx: &mut Context, name: Value) -> Result<Operation, Exit> {
    let text = if name.is_symbol_object() { name.get(symbol::NAME) } else { Value::NIL };
    match if text.is_nil() { &[][..] } else { text.bytes() } {
        b"UNION" => Ok(Operation::Union),
        b"INTERSECTION" => Ok(Operation::Intersection),
        b"DIFFERENCE" => Ok(Operation::Difference),
        _ => cx.type_error(":union, :intersection or :difference", name),
    }
}

fn facets(cx: &mut Context, faces: &[Value]) -> Result<Vec<Facet>, Exit> {
    faces.iter().map(|polygon| facet(cx, *polygon)).collect()
}

fn facet(cx: &mut Context, polygon: Value) -> Result<Facet, Exit> {
    let plane = cx.plane(polygon)?;
    let mut rings = Vec::new();
    for ring in std::iter::once(polygon).chain(slot(polygon, face::HOLES).iter()) {
        // The object's ring is closed, and ours is open.
        let points = cx.points(slot(ring, face::VERTICES).cdr())?;
        if points.len() < 3 {
            return cx.error_about(ErrorClass::Type, "a face has fewer than 3 vertices".to_owned(), polygon);
        }
        rings.push(points);
    }
    Ok(Facet { plane, rings })
}
