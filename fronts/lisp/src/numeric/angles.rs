//! Computes rotations: by an angle about an axis, by roll, pitch and yaw, by Euler angles.

use super::linear::{multiply, times};
use super::matrix::Matrix;
use super::vectors::fill;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::numeric::point::{Point, norm, scale};
use crate::value::{ObjectKind, Value, symbol};

/// A rotation is a 3 x 3 matrix in row-major order.
type Rotation = [f64; 9];

/// Selects the axis of a rotation.
#[derive(Clone, Copy)]
enum Axis {
    /// The rotation is about the origin, in two dimensions.
    Plane,
    /// The axis is x, y or z (0, 1 or 2), with a sign.
    Main(usize, f64),
    Any(Point),
}

impl Axis {
    fn of(cx: &mut Context, value: Value) -> Result<Axis, Exit> {
        if value.is_nil() {
            return Ok(Axis::Plane);
        }
        if value.is(ObjectKind::FloatVector) && value.length() == 3 {
            let axis = [value.floats()[0], value.floats()[1], value.floats()[2]];
            return Ok(Axis::Any(scale(1.0 / norm(axis), axis)));
        }
        let named = match value.as_fixnum() {
            Some(0) => Some((0, 1.0)),
            Some(1) => Some((1, 1.0)),
            Some(2) => Some((2, 1.0)),
            _ if value.is_symbol_object() => match value.get(symbol::NAME).bytes() {
                b"X" => Some((0, 1.0)),
                b"Y" => Some((1, 1.0)),
                b"Z" => Some((2, 1.0)),
                b"-X" => Some((0, -1.0)),
                b"-Y" => Some((1, -1.0)),
                b"-Z" => Some((2, -1.0)),
                _ => None,
            },
            _ => None,
        };
        match named {
            Some((index, sign)) => Ok(Axis::Main(index, sign)),
            None => cx.type_error("axis (:x, :y, :z, 0, 1, 2, a float-vector, or nil in the plane)", value),
        }
    }

    /// Returns the rotation in space; in the plane, the one about z.
    fn rotation(self, angle: f64) -> Rotation {
        match self {
            Axis::Plane => about([0.0, 0.0, 1.0], angle),
            Axis::Main(index, sign) => {
                let mut axis = [0.0; 3];
                axis[index] = 1.0;
                about(axis, sign * angle)
            }
            Axis::Any(axis) => about(axis, angle),
        }
    }
}

/// Returns the rotation about a unit axis, by Rodrigues' formula.
fn about([x, y, z]: Point, angle: f64) -> Rotation {
    let (s, c) = angle.sin_cos();
    let r = 1.0 - c;
    [
        c + x * x * r,
        x * y * r - z * s,
        x * z * r + y * s,
        x * y * r + z * s,
        c + y * y * r,
        y * z * r - x * s,
        x * z * r - y * s,
        y * z * r + x * s,
        c + z * z * r,
    ]
}

/// Returns the upper left 2 x 2 part of a rotation about z.
fn flat(r: Rotation) -> [f64; 4] {
    [r[0], r[1], r[3], r[4]]
}

pub(super) fn rotate_vector(cx: &mut Context, args: Args<'_>) -> Answer {
    let (v, angle) = (args.floats(cx, 0)?, args.float(cx, 1)?);
    let axis = Axis::of(cx, args[2])?;
    let r = axis.rotation(angle);
    match (axis, v) {
        (Axis::Plane, &[x, y]) => {
            let out = args.result_floats(cx, 3, 2)?;
            out.floats_mut().copy_from_slice(&[r[0] * x + r[1] * y, r[3] * x + r[4] * y]);
            Ok(out)
        }
        (Axis::Main(..) | Axis::Any(_), &[x, y, z]) => {
            let out = args.result_floats(cx, 3, 3)?;
            fill(out, |i| r[3 * i] * x + r[3 * i + 1] * y + r[3 * i + 2] * z);
            Ok(out)
        }
        _ => cx.type_error("vector of the axis' dimension", args[0]),
    }
}

/// Implements `(rotate-matrix matrix angle axis [world-p result])`: multiplies from the right, or from the left with
/// `world-p`.
pub(super) fn rotate_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let (m, angle) = (args.matrix(cx, 0)?, args.float(cx, 1)?);
    let axis = Axis::of(cx, args[2])?;
    let r = axis.rotation(angle);
    let world = !args.or_nil(3).is_nil();
    match (axis, m.rows, m.columns) {
        (Axis::Plane, 2, 2) => {
            let mut out = [0.0; 4];
            multiply(&flat(r), m.all(), 2, &mut out);
            cx.matrix_result(args.or_nil(4), 2, 2, &out)
        }
        (Axis::Main(..) | Axis::Any(_), 3, 3) => {
            let m = space(m);
            let out = if world { times(&r, &m) } else { times(&m, &r) };
            cx.matrix_result(args.or_nil(4), 3, 3, &out)
        }
        _ => cx.type_error("matrix of the axis' dimension", args[0]),
    }
}

pub(super) fn rotation_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let angle = args.float(cx, 0)?;
    let axis = Axis::of(cx, args[1])?;
    let r = axis.rotation(angle);
    match axis {
        Axis::Plane => cx.matrix_result(args.or_nil(2), 2, 2, &flat(r)),
        _ => cx.matrix_result(args.or_nil(2), 3, 3, &r),
    }
}

/// Returns the elements of a 3 x 3 matrix.
fn space(m: Matrix) -> Rotation {
    let all = m.all();
    std::array::from_fn(|at| all[at])
}

fn rotation(cx: &mut Context, args: Args<'_>) -> Result<Rotation, Exit> {
    let m = args.matrix(cx, 0)?;
    if (m.rows, m.columns) == (3, 3) { Ok(space(m)) } else { cx.type_error("3 x 3 matrix", args[0]) }
}

/// Returns `(angle axis)`, or nil for a rotation so small that rounding would determine the axis; for a matrix in the
/// plane, the angle.
pub(super) fn rotation_angle(cx: &mut Context, args: Args<'_>) -> Answer {
    const NOTHING: f64 = 1e-12;
    /// EusLisp's bound in radians: below it 1 - cos(angle) is less than 1e-10.
    const SMALLEST: f64 = std::f64::consts::SQRT_2 * 1e-5;
    let m = args.matrix(cx, 0)?;
    if (m.rows, m.columns) == (2, 2) {
        return cx.float(m.at(1, 0).atan2(m.at(0, 0)));
    }
    let r = rotation(cx, args)?;
    let twice_sine = [r[7] - r[5], r[2] - r[6], r[3] - r[1]];
    let length = norm(twice_sine);
    let trace = r[0] + r[4] + r[8];
    let angle = length.atan2(trace - 1.0);
    if angle < SMALLEST {
        return Ok(Value::NIL);
    }
    let axis = if length > NOTHING { scale(1.0 / length, twice_sine) } else { half_turn_axis(r) };
    let axis = cx.floats_from(&axis)?;
    cx.push(axis)?;
    let angle = cx.float(angle)?;
    cx.list(&[angle, axis])
}

/// Returns the axis of a rotation by pi: the longest column of the matrix plus the identity, all of which lie along
/// the axis.
fn half_turn_axis(r: Rotation) -> Point {
    let columns: [Point; 3] =
        std::array::from_fn(|j| std::array::from_fn(|i| r[3 * i + j] + if i == j { 1.0 } else { 0.0 }));
    let longest = columns.into_iter().max_by(|a, b| norm(*a).total_cmp(&norm(*b))).unwrap_or([1.0, 0.0, 0.0]);
    scale(1.0 / norm(longest), longest)
}

fn angles(cx: &mut Context, args: Args<'_>) -> Result<[f64; 3], Exit> {
    Ok([args.float(cx, 0)?, args.float(cx, 1)?, args.float(cx, 2)?])
}

/// Returns the rotation about the x, then the y, then the z axis of the world.
pub(super) fn rpy_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let [z, y, x] = angles(cx, args)?;
    let turn = |index, angle| Axis::Main(index, 1.0).rotation(angle);
    cx.matrix_from(3, 3, &times(&turn(2, z), &times(&turn(1, y), &turn(0, x))))
}

/// Returns the rotation about z, then the new y, then the new z.
pub(super) fn euler_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let [z, y, z2] = angles(cx, args)?;
    let turn = |index, angle| Axis::Main(index, 1.0).rotation(angle);
    cx.matrix_from(3, 3, &times(&turn(2, z), &times(&turn(1, y), &turn(2, z2))))
}

/// Returns the two sets of angles for a matrix: that with `first`, and that with half a turn more.
fn two_solutions(cx: &mut Context, first: f64, rest: impl Fn(f64) -> [f64; 2]) -> Answer {
    let mut solutions = [Value::NIL; 2];
    for (solution, first) in solutions.iter_mut().zip([first, first + std::f64::consts::PI]) {
        let [second, third] = rest(first);
        let angles = [cx.float(first)?, cx.float(second)?, cx.float(third)?];
        *solution = cx.list(&angles)?;
        cx.push(*solution)?;
    }
    cx.list(&solutions)
}

pub(super) fn rpy_angle(cx: &mut Context, args: Args<'_>) -> Answer {
    let r = rotation(cx, args)?;
    two_solutions(cx, r[3].atan2(r[0]), |z| {
        let (s, c) = z.sin_cos();
        [(-r[6]).atan2(c * r[0] + s * r[3]), (s * r[2] - c * r[5]).atan2(c * r[4] - s * r[1])]
    })
}

pub(super) fn euler_angle(cx: &mut Context, args: Args<'_>) -> Answer {
    let r = rotation(cx, args)?;
    two_solutions(cx, r[5].atan2(r[2]), |z| {
        let (s, c) = z.sin_cos();
        [(c * r[2] + s * r[5]).atan2(r[8]), (c * r[3] - s * r[0]).atan2(c * r[4] - s * r[1])]
    })
}
