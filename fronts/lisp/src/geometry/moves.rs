//! Does in the runtime what robots do most while they move: chains frames, and turns the normals of faces.
//!
//! Both functions give the numbers of the Lisp functions that call them, with the same roundings. For objects that are
//! not of the usual form `chain_frames` returns nil, and `reset_normals` sends the message.

use super::parts::{face, point};
use crate::builtin::Args;
use crate::compile::is_own_method;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::numeric::linear::times;
use crate::numeric::matrix::Matrix;
use crate::numeric::point::{Point, add, cross, unit};
use crate::numeric::vectors::inner_product;
use crate::value::{ObjectKind, Value};
use crate::world::class;

/// Indices of the slots of `coordinates`.
mod frame {
    pub(super) const ROT: usize = 1;
    pub(super) const POS: usize = 2;
}

/// The rotation and the position of a frame in space.
fn placed(cx: &Context, of: Value, class: Value) -> Option<(Matrix, Value)> {
    let is_frame = of.is(ObjectKind::Instance)
        && of.length() > frame::POS
        && cx.is_subclass(cx.world.class_of(of), class);
    if !is_frame {
        return None;
    }
    let (rotation, position) = (Matrix::of(of.slot(frame::ROT))?, of.slot(frame::POS));
    let is_in_space = (rotation.rows, rotation.columns) == (3, 3)
        && position.is(ObjectKind::FloatVector)
        && position.length() == 3;
    is_in_space.then_some((rotation, position))
}

/// Implements `(chain-frames c1 c2 c3 coordinates)`: writes the product of two frames in space to the third, and returns
/// it; nil, if they are not all instances of the class with a matrix and a vector.
pub(super) fn chain_frames(cx: &mut Context, args: Args<'_>) -> Answer {
    let frames = [0, 1, 2].map(|index| placed(cx, args[index], args[3]));
    let [Some((outer, at)), Some((inner, from)), Some((rotation, position))] = frames else {
        return Ok(Value::NIL);
    };
    let (Ok(a), Ok(b)) = (<&[f64; 9]>::try_from(outer.all()), <&[f64; 9]>::try_from(inner.all())) else {
        return Ok(Value::NIL);
    };
    let moved: Point = std::array::from_fn(|row| inner_product(&a[3 * row..3 * row + 3], from.floats()));
    rotation.write(&times(a, b));
    // After the rotation is written, as its elements may be those of the position.
    let sum: Point = std::array::from_fn(|index| at.floats()[index] + moved[index]);
    position.floats_mut().copy_from_slice(&sum);
    Ok(args[2])
}

/// Returns the normal of a face without holes, and its distance from the origin, as `:reset-normal` computes them.
fn plane_of(of: Value) -> Option<(Point, f64)> {
    if !of.is(ObjectKind::Instance) || of.length() <= face::HOLES || !of.slot(face::HOLES).is_nil() {
        return None;
    }
    let vertices = of.slot(face::VERTICES);
    let last = point(vertices.car())?;
    let ring = vertices.cdr();
    let first = point(ring.car())?;
    let (mut sum, mut a) = ([0.0; 3], first);
    for vertex in ring.cdr().iter() {
        let b = point(vertex)?;
        sum = add(sum, cross(a, b));
        a = b;
    }
    let normal = unit(add(sum, cross(a, first)));
    Some((normal, -inner_product(&normal, &last)))
}

fn reset_plane(cx: &mut Context, of: Value, normal: Point, distance: f64) -> Result<(), Exit> {
    let normal = cx.floats_from(&normal)?;
    of.set_slot(face::NORMAL, normal);
    let distance = cx.float(distance)?;
    of.set_slot(face::DISTANCE, distance);
    Ok(())
}

/// Implements `(reset-normals faces face polygon)`: sends `:reset-normal` to each face, and does what the library's
/// methods of the two classes do if a face has no holes.
pub(super) fn reset_normals(cx: &mut Context, args: Args<'_>) -> Answer {
    let selector = cx.keyword("RESET-NORMAL")?;
    let [own, above] = [args[1], args[2]];
    // The program may have given these names other values.
    let is_own = cx.is_class(own)
        && own.slot(class::slot::SUPER) == above
        && cx.is_class(above)
        && is_own_method(cx, own, selector)
        && is_own_method(cx, above, selector);
    let keep = cx.mark();
    // The rest of the faces, and the face that is turned.
    cx.push(args[0])?;
    cx.push(Value::NIL)?;
    let mut rest = args[0];
    while rest.is_cons() {
        let of = rest.car();
        cx.set_root(keep, 0, rest);
        cx.set_root(keep, 1, of);
        let found = if is_own { cx.find_method(cx.world.class_of(of), selector) } else { None };
        let plane = if found.is_some_and(|(owner, _)| owner == own) { plane_of(of) } else { None };
        match plane {
            Some((normal, distance)) => reset_plane(cx, of, normal, distance)?,
            None => {
                cx.send(of, selector, &[])?;
            }
        }
        rest = rest.cdr();
    }
    Ok(args[0])
}
