//! Cuts faces into triangles by ear clipping (Eberly, 2002), as jskeus' function `face-to-triangle`.
//!
//! An ear consists of three consecutive vertices; no other vertex lies in it, and no edge of the face crosses the diagonal
//! that cuts it off. The tests, their order and their tolerances are those of jskeus, and so are the objects: a
//! triangle shares the diagonal with the rest of the face, and both have new edges at their other sides.

use super::measures::normal_of;
use super::parts::{edge, face, slot};
use super::ring::{self, PointLocation, Tolerance};
use super::weave::{check_class, describe};
use crate::builtin::Args;
use crate::context::{Answer, Context, RootMark};
use crate::error::{ErrorClass, Exit};
use crate::numeric::point::{Point, cross, dot, less, norm, sub, turn};
use crate::value::Value;

/// Tolerances of the tests.
struct EarTolerances {
    /// Fraction of a line that counts as its end, and distance below which a point counts as on a line.
    epsilon: f64,
    /// Distances for the test whether a vertex lies in an ear.
    inside: Tolerance,
    /// Sine of the angle below which lines count as parallel.
    parallel: f64,
}

impl EarTolerances {
    /// Returns whether a parameter is in `[-epsilon, 1 + epsilon]` (0 and 1 are the ends of the line), or is NaN.
    fn on_line(&self, at: f64) -> bool {
        at.is_nan() || (-self.epsilon..=1.0 + self.epsilon).contains(&at)
    }

    /// Returns whether a parameter is in `[epsilon, 1 - epsilon]`, or is NaN.
    fn between_ends(&self, at: f64) -> bool {
        at.is_nan() || (self.epsilon..=1.0 - self.epsilon).contains(&at)
    }
}

/// Classes of the created objects.
struct Classes {
    face: Value,
    edge: Value,
}

/// The face that is left after some ears. The root stack keeps the values alive.
struct Outline {
    /// All vertices, of which the first is repeated at the end.
    vertices: Vec<Value>,
    points: Vec<Point>,
    normal: Point,
    /// Both ends of each edge, in the direction of the face.
    edges: Vec<(Value, Value)>,
}

impl Outline {
    fn of(cx: &mut Context, polygon: Value) -> Result<Outline, Exit> {
        let normal = cx.plane(polygon)?.normal;
        let list = slot(polygon, face::VERTICES);
        let (vertices, points) = cx.vertices(list)?;
        if vertices.len() < 2 {
            return cx.type_error("face with vertices", polygon);
        }
        let mut edges = Vec::with_capacity(vertices.len());
        for it in slot(polygon, face::EDGES).iter() {
            let (from, to) = (slot(it, edge::PVERT), slot(it, edge::NVERT));
            edges.push(if slot(it, edge::PFACE) == polygon {
                (from, to)
            } else if slot(it, edge::NFACE) == polygon {
                (to, from)
            } else {
                return cx.error_about(ErrorClass::Type, "not a face of this edge".to_owned(), it);
            });
        }
        for (from, to) in &edges {
            cx.push(*from)?;
            cx.push(*to)?;
        }
        Ok(Outline { vertices, points, normal, edges })
    }

    /// Number of corners.
    fn corners(&self) -> usize {
        self.vertices.len() - 1
    }

    /// Returns the indices of a corner and its neighbours.
    fn around(&self, corner: usize) -> [usize; 3] {
        let count = self.corners();
        [(corner + count - 1) % count, corner % count, (corner + 1) % count]
    }

    /// Returns the ends of the first edge between two vertices, in either direction.
    fn edge_between(&self, from: Value, to: Value) -> Option<(Value, Value)> {
        self.edges.iter().copied().find(|ends| *ends == (from, to) || *ends == (to, from))
    }

    /// Returns whether the triangle at a corner is an ear.
    fn is_ear(&self, corner: usize, limits: &EarTolerances) -> bool {
        let ear = self.around(corner);
        let [a, b, c] = ear.map(|index| self.points[index]);
        if !less(0.0, turn(a, b, c, self.normal)) {
            return false;
        }
        let same = |one: usize, other: usize| self.vertices[one] == self.vertices[other];
        let others: Vec<usize> =
            (0..self.vertices.len()).filter(|&index| !ear.iter().any(|&of| same(index, of))).collect();
        let normal = normal_of(&[a, b, c]);
        let convex = ring::convex(&[a, b, c], normal);
        let holds = |at: Point| {
            let ring = [c, a, b, c].into_iter();
            ring::locate(ring, convex, normal, at, limits.inside) == PointLocation::Inside
        };
        if others.iter().any(|&index| holds(self.points[index])) {
            return false;
        }
        let on_side = |from: usize, to: usize| {
            let turned = self.edge_between(self.vertices[from], self.vertices[to])
                == Some((self.vertices[to], self.vertices[from]));
            let (from, to) = if turned { (to, from) } else { (from, to) };
            others.iter().any(|&index| {
                colinear(self.points[from], self.points[index], self.points[to], limits.epsilon)
                    .is_some_and(|at| limits.between_ends(at))
            })
        };
        if on_side(ear[2], ear[0]) || on_side(ear[0], ear[1]) || on_side(ear[1], ear[2]) {
            return false;
        }
        // As in jskeus, an ear of a small face needs no test of its diagonal. `others` has at most 3 entries there, as
        // the first vertex is in it twice unless it is a corner of the ear.
        if others.len() <= 3 {
            return true;
        }
        let rest: Vec<Point> = (0..self.corners())
            .filter(|&index| !same(index, ear[1]))
            .map(|index| self.points[index])
            .collect();
        !(0..rest.len()).any(|index| {
            let from = rest[(index + rest.len() - 1) % rest.len()];
            nearest((from, rest[index]), (a, c), Some(limits.parallel)).is_some_and(|(at, on_diagonal)| {
                limits.on_line(at)
                    && limits.on_line(on_diagonal)
                    && (limits.between_ends(at) || limits.between_ends(on_diagonal))
            })
        })
    }

    /// Creates a face from vertices of the outline. A side that the outline does not have is the edge of `shared` whose
    /// side in this direction has no face yet, if there is one. All other sides are new edges.
    fn face(&self, cx: &mut Context, classes: &Classes, ring: &[Value], shared: Value) -> Answer {
        let made = cx.new_instance(classes.face)?;
        cx.push(made)?;
        let list = cx.list(ring)?;
        cx.push(list)?;
        made.set_slot(face::PRIMITIVE_FACE, made);
        describe(cx, made, list)?;
        let sides = cx.mark();
        for (index, to) in ring.iter().enumerate() {
            let from = ring[(index + ring.len() - 1) % ring.len()];
            let side = self.side(cx, classes, made, (from, *to), shared)?;
            cx.push(side)?;
        }
        let list = cx.stacked(sides)?;
        made.set_slot(face::EDGES, list);
        Ok(made)
    }

    fn side(
        &self,
        cx: &mut Context,
        classes: &Classes,
        made: Value,
        (from, to): (Value, Value),
        shared: Value,
    ) -> Answer {
        let own = self.edge_between(from, to);
        if own.is_none() {
            for it in shared.iter() {
                let ends = (slot(it, edge::PVERT), slot(it, edge::NVERT));
                for (direction, side) in [((from, to), edge::PFACE), ((to, from), edge::NFACE)] {
                    if ends == direction && slot(it, side).is_nil() {
                        it.set_slot(side, made);
                        return Ok(it);
                    }
                }
            }
        }
        let ends = own.unwrap_or((from, to));
        let it = cx.new_instance(classes.edge)?;
        it.set_slot(edge::PVERT, ends.0);
        it.set_slot(edge::NVERT, ends.1);
        it.set_slot(if ends == (from, to) { edge::PFACE } else { edge::NFACE }, made);
        it.set_slot(edge::FLAGS, Value::fixnum(0));
        Ok(it)
    }
}

/// Returns the parameter of a point on the line between two others, if it lies on it.
fn colinear(from: Point, point: Point, to: Point, tolerance: f64) -> Option<f64> {
    let (a, b) = (sub(point, from), sub(to, from));
    let longest = if norm(b) > norm(a) { norm(b) } else { norm(a) };
    if longest == 0.0 {
        return Some(0.0);
    }
    less(norm(cross(a, b)) / longest, tolerance).then(|| dot(a, b) / dot(b, b))
}

/// Returns the parameters of the nearest points of two lines (0 and 1 are the ends), or none if the sine of their angle
/// is below `parallel`. Without `parallel`, those of parallel lines are NaN or infinite.
pub(super) fn nearest(
    (from, to): (Point, Point),
    (other_from, other_to): (Point, Point),
    parallel: Option<f64>,
) -> Option<(f64, f64)> {
    let (a, b, c) = (sub(to, from), sub(other_to, other_from), sub(other_from, from));
    let normal = cross(a, b);
    let square = dot(normal, normal);
    if parallel.is_some_and(|sine| less(square.sqrt(), sine * norm(a) * norm(b))) {
        return None;
    }
    Some((dot(cross(c, b), normal) / square, dot(cross(c, a), normal) / square))
}

/// Implements `(clip-ears face face-class edge-class epsilon coplanar-threshold contact-threshold parallel-threshold)`:
/// returns the triangles of a face without holes, or, if a remaining part has no ear, those cut off before.
pub(super) fn clip_ears(cx: &mut Context, args: Args<'_>) -> Answer {
    check_class(cx, args[1], face::COUNT, "face class")?;
    check_class(cx, args[2], edge::COUNT, "edge class")?;
    let classes = Classes { face: args[1], edge: args[2] };
    let limits = EarTolerances {
        epsilon: args.float(cx, 3)?,
        inside: Tolerance { edge: args.float(cx, 4)?, vertex: args.float(cx, 5)? },
        parallel: args.float(cx, 6)?,
    };
    let rest = cx.mark();
    cx.push(args[0])?;
    let triangles = cx.mark();
    loop {
        cx.poll()?;
        let (ear, left) = clip(cx, rest, &classes, &limits)?;
        let Some(ear) = ear else { break };
        cx.push(ear)?;
        let Some(left) = left else { break };
        cx.set_root(rest, 0, left);
        if slot(left, face::EDGES).iter().count() == 3 {
            cx.push(left)?;
            break;
        }
    }
    cx.stacked(triangles)
}

/// Cuts an ear off the face in a root; returns the triangle, and the rest of the face.
fn clip(
    cx: &mut Context,
    polygon: RootMark,
    classes: &Classes,
    limits: &EarTolerances,
) -> Result<(Option<Value>, Option<Value>), Exit> {
    let mark = cx.mark();
    let outline = Outline::of(cx, cx.root(polygon, 0))?;
    let Some(corner) = (0..outline.corners()).find(|&corner| outline.is_ear(corner, limits)) else {
        cx.release(mark);
        return Ok((None, None));
    };
    let ring = outline.around(corner).map(|index| outline.vertices[index]);
    let ear = outline.face(cx, classes, &ring, Value::NIL)?;
    cx.push(ear)?;
    let kept: Vec<Value> =
        outline.vertices[..outline.corners()].iter().copied().filter(|vertex| *vertex != ring[1]).collect();
    let left =
        if kept.len() > 2 { Some(outline.face(cx, classes, &kept, slot(ear, face::EDGES))?) } else { None };
    cx.release(mark);
    Ok((Some(ear), left))
}
