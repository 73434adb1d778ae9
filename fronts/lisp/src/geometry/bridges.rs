//! Finds the bridge that joins a hole to the outline of its face: a vertex of each, such that no edge crosses the line
//! between them.
//!
//! The tests and their order are those of jskeus' function `face-to-triangle-make-simple`.

use super::ears::nearest;
use super::parts::{edge, face, slot};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::numeric::point::{Point, angle, distance, less, sub};
use crate::value::Value;

/// A vertex and its coordinates.
type Vertex = (Value, Point);

/// A line between two vertices.
type Line = (Vertex, Vertex);

/// Returns the vertices of a polygon, each once, and keeps them alive.
fn vertices(cx: &mut Context, polygon: Value) -> Result<Vec<Vertex>, Exit> {
    let list = slot(polygon, face::VERTICES).cdr();
    let (values, points) = cx.vertices(list)?;
    Ok(values.into_iter().zip(points).collect())
}

/// Adds the edges of a polygon, and keeps their ends alive.
fn add_edges(cx: &mut Context, polygon: Value, into: &mut Vec<Line>) -> Result<(), Exit> {
    for it in cx.alive(slot(polygon, face::EDGES))? {
        let mut end = |index| {
            let value = slot(it, index);
            cx.push(value)?;
            Ok::<Vertex, Exit>((value, cx.point(value)?))
        };
        into.push((end(edge::PVERT)?, end(edge::NVERT)?));
    }
    Ok(())
}

/// Returns whether an edge blocks the line between two vertices: it crosses the line, or, where an end of the edge
/// coincides with one of them, the line leaves the face there.
fn separates((from, to): Line, one: Vertex, other: Vertex, edges: &[Line], normal: Point) -> bool {
    let Some((on_edge, on_bridge)) = nearest((from.1, to.1), (one.1, other.1), None) else { return false };
    let is_end = |at: f64| at == 0.0 || at == 1.0;
    let meets_edge = on_edge.is_nan() || (0.0..=1.0).contains(&on_edge);
    if meets_edge && less(0.0, on_bridge) && less(on_bridge, 1.0) {
        return true;
    }
    let meets = [one.0, other.0].iter().any(|end| *end == from.0 || *end == to.0);
    if !is_end(on_edge) || !is_end(on_bridge) || meets {
        return false;
    }
    // Another vertex is at the same place: the bridge must not cross the outline there.
    let here = if on_edge == 0.0 { from } else { to };
    let before = edges.iter().find(|(_, to)| to.0 == here.0).map(|(from, _)| from.1);
    let after = edges.iter().find(|(from, _)| from.0 == here.0).map(|(_, to)| to.1);
    let (Some(before), Some(after)) = (before, after) else { return false };
    let away = if on_bridge == 0.0 { other.1 } else { one.1 };
    let turn = |to: Point| {
        use std::f64::consts::TAU;
        (angle(sub(after, here.1), sub(to, here.1), normal) + TAU) % TAU
    };
    less(turn(away), turn(before))
}

/// Implements `(shortest-bridge face holes)`: returns a vertex of the face, one of a hole, and this hole, such that no
/// edge separates the vertices and their distance is smallest; nil if there are none.
pub(super) fn shortest_bridge(cx: &mut Context, args: Args<'_>) -> Answer {
    let normal = cx.plane(args[0])?.normal;
    let holes = cx.alive(args[1])?;
    let mut edges = Vec::new();
    for polygon in holes.iter().chain([&args[0]]) {
        add_edges(cx, *polygon, &mut edges)?;
    }
    let outline = vertices(cx, args[0])?;
    let mut best: Option<(f64, [Value; 3])> = None;
    for hole in holes {
        let inner = vertices(cx, hole)?;
        for one in &outline {
            cx.poll()?;
            for other in &inner {
                let length = distance(one.1, other.1);
                let longer = best.is_some_and(|(shortest, _)| shortest <= length);
                if !longer && !edges.iter().any(|line| separates(*line, *one, *other, &edges, normal)) {
                    best = Some((length, [one.0, other.0, hole]));
                }
            }
        }
    }
    match best {
        Some((_, bridge)) => cx.list(&bridge),
        None => Ok(Value::NIL),
    }
}
