//! The builtins that jskeus' collision checks call: meshes under PQP's names, convex solids under Bullet's.
//!
//! A model is an object of class `collision-model`, whose slot holds the number of the native shape.

use super::collide::{CollisionModel, Convex, Mesh, Nearest, ShapePose, pose, pose_of_quaternion};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, symbol};
use crate::world::{Native, class};
use std::sync::{Arc, Mutex};

/// Index of the slot of `collision-model` that holds the number of the native shape.
const NATIVE: usize = 1;

fn new_model(cx: &mut Context, model: CollisionModel) -> Answer {
    let name = cx.installed_name("GEOMETRY:COLLISION-MODEL")?;
    let kind = name.get(symbol::VALUE);
    if !cx.is_class(kind) || kind.slot(class::slot::VARIABLES).length() <= NATIVE {
        return cx.type_error("class collision-model", kind);
    }
    let object = cx.new_instance(kind)?;
    object.set_slot(NATIVE, cx.world.tables.hold(Native::Collision(Arc::new(Mutex::new(model)))));
    cx.finalize_later(object);
    Ok(object)
}

fn model(cx: &mut Context, value: Value) -> Result<Arc<Mutex<CollisionModel>>, Exit> {
    let native = if value.is(ObjectKind::Instance) && value.length() > NATIVE {
        cx.world.tables.native(value.slot(NATIVE))
    } else {
        None
    };
    match native {
        Some(Native::Collision(model)) => Ok(model),
        _ => cx.type_error("collision model", value),
    }
}

/// Returns the mesh in a model; one under construction is completed first.
fn mesh(cx: &mut Context, value: Value) -> Result<Arc<Mesh>, Exit> {
    let shared = model(cx, value)?;
    let found = {
        let mut model = crate::threads::lock(&shared);
        if let CollisionModel::Corners(corners) = &*model
            && let Some(mesh) = Mesh::new(corners)
        {
            *model = CollisionModel::Mesh(Arc::new(mesh));
        }
        if let CollisionModel::Mesh(mesh) = &*model { Some(Arc::clone(mesh)) } else { None }
    };
    match found {
        Some(mesh) => Ok(mesh),
        None => cx.type_error("collision model with triangles", value),
    }
}

/// Returns a copy of the convex solid in a model: two threads that lock two models each could wait for each other.
fn convex(cx: &mut Context, value: Value) -> Result<Convex, Exit> {
    let shared = model(cx, value)?;
    let found = match &*crate::threads::lock(&shared) {
        CollisionModel::Convex(solid) => Some(solid.clone()),
        _ => None,
    };
    match found {
        Some(solid) => Ok(solid),
        None => cx.type_error("collision model of a convex solid", value),
    }
}

pub(super) fn make_mesh(cx: &mut Context, _: Args<'_>) -> Answer {
    new_model(cx, CollisionModel::Corners(Vec::new()))
}

/// Implements `(pqpbeginmodel model)`: removes all triangles.
pub(super) fn begin_mesh(cx: &mut Context, args: Args<'_>) -> Answer {
    let shared = model(cx, args[0])?;
    *crate::threads::lock(&shared) = CollisionModel::Corners(Vec::new());
    Ok(Value::NIL)
}

/// Implements `(pqpaddtri model a b c number)`.
pub(super) fn add_triangle(cx: &mut Context, args: Args<'_>) -> Answer {
    let corners = [cx.point(args[1])?, cx.point(args[2])?, cx.point(args[3])?];
    if let Some(at) = corners.iter().position(|corner| corner.iter().any(|x| !x.is_finite())) {
        return cx.error_about(ErrorClass::Range, "a corner is not finite".to_owned(), args[1 + at]);
    }
    let shared = model(cx, args[0])?;
    let open = match &mut *crate::threads::lock(&shared) {
        CollisionModel::Corners(all) => {
            all.extend_from_slice(&corners);
            true
        }
        _ => false,
    };
    if open { Ok(Value::NIL) } else { cx.type_error("collision model under construction", args[0]) }
}

pub(super) fn end_mesh(cx: &mut Context, args: Args<'_>) -> Answer {
    mesh(cx, args[0])?;
    Ok(Value::NIL)
}

/// Implements `(pqpdeletemodel model)`: frees the native shape now.
pub(super) fn delete_model(cx: &mut Context, args: Args<'_>) -> Answer {
    model(cx, args[0])?;
    cx.world.tables.drop_native(args[0].slot(NATIVE));
    args[0].set_slot(NATIVE, Value::NIL);
    Ok(Value::NIL)
}

/// Reads a pose from two arguments: a rotation matrix and a position.
fn pose_given(cx: &mut Context, args: Args<'_>, first: usize) -> Result<ShapePose, Exit> {
    let rotation = args.matrix(cx, first)?;
    let position = cx.point(args[first + 1])?;
    match rotation.all().try_into() {
        Ok(elements) if rotation.rows == 3 => Ok(pose(elements, position)),
        _ => cx.type_error("3 x 3 matrix", args[first]),
    }
}

/// Implements `(pqpcollide rotation1 position1 model1 rotation2 position2 model2 flag)`: the number of pairs of triangles
/// that intersect if the flag is 1, otherwise 1 if any do, or 0.
pub(super) fn collide(cx: &mut Context, args: Args<'_>) -> Answer {
    let (at, other_at) = (pose_given(cx, args, 0)?, pose_given(cx, args, 3)?);
    let (ours, other) = (mesh(cx, args[2])?, mesh(cx, args[5])?);
    let most = if args.or_nil(6) == Value::fixnum(1) { usize::MAX } else { 1 };
    let count = cx.blocked(|| ours.collisions(&at, &other, &other_at, most));
    Ok(Value::fixnum(count.cast_signed() as i64))
}

/// Writes two nearest points to the arguments given for them.
fn write_points(cx: &mut Context, args: Args<'_>, first: usize, nearest: &Nearest) -> Result<(), Exit> {
    for (index, point) in nearest.points.iter().enumerate() {
        cx.point(args[first + index])?;
        args[first + index].floats_mut().copy_from_slice(point);
    }
    Ok(())
}

/// Implements `(pqpdistance rotation1 position1 model1 rotation2 position2 model2 point1 point2 [queue-size])`: returns
/// the distance, and writes the nearest points. The size of the queue has no effect.
pub(super) fn mesh_distance(cx: &mut Context, args: Args<'_>) -> Answer {
    let (at, other_at) = (pose_given(cx, args, 0)?, pose_given(cx, args, 3)?);
    let (ours, other) = (mesh(cx, args[2])?, mesh(cx, args[5])?);
    let nearest = cx.blocked(|| ours.nearest(&at, &other, &other_at));
    write_points(cx, args, 6, &nearest)?;
    cx.float(nearest.distance)
}

fn new_convex(cx: &mut Context, solid: Convex) -> Answer {
    new_model(cx, CollisionModel::Convex(solid))
}

/// Returns an argument that is a length.
fn length(cx: &mut Context, args: Args<'_>, index: usize) -> Result<f64, Exit> {
    let length = args.float(cx, index)?;
    if length >= 0.0 && length.is_finite() { Ok(length) } else { cx.type_error("length", args[index]) }
}

pub(super) fn make_sphere(cx: &mut Context, args: Args<'_>) -> Answer {
    let radius = length(cx, args, 0)?;
    new_convex(cx, Convex::sphere(radius))
}

pub(super) fn make_box(cx: &mut Context, args: Args<'_>) -> Answer {
    let sides = [length(cx, args, 0)?, length(cx, args, 1)?, length(cx, args, 2)?];
    new_convex(cx, Convex::cuboid(sides))
}

pub(super) fn make_cylinder(cx: &mut Context, args: Args<'_>) -> Answer {
    let (radius, height) = (length(cx, args, 0)?, length(cx, args, 1)?);
    new_convex(cx, Convex::cylinder(radius, height))
}

/// Implements `(btmakemeshmodel coordinates count)`: the convex hull of points whose coordinates lie in one float-vector.
pub(super) fn make_hull(cx: &mut Context, args: Args<'_>) -> Answer {
    let (coordinates, count) = (args.floats(cx, 0)?, args.size(cx, 1)?);
    let (points, _) = coordinates.as_chunks::<3>();
    let Some(points) = points.get(..count) else { return cx.range_error(args[1], points.len()) };
    match Convex::hull(points) {
        Some(hull) => new_convex(cx, hull),
        None => cx.error(ErrorClass::Range, "these points have no convex hull".to_owned()),
    }
}

/// Implements `(btsetmargin model margin)`.
pub(super) fn set_margin(cx: &mut Context, args: Args<'_>) -> Answer {
    let (shared, margin) = (model(cx, args[0])?, args.float(cx, 1)?);
    let set = match &mut *crate::threads::lock(&shared) {
        CollisionModel::Convex(solid) => {
            solid.margin = margin;
            true
        }
        _ => false,
    };
    if set { Ok(Value::fixnum(0)) } else { cx.type_error("collision model of a convex solid", args[0]) }
}

/// Reads a pose from two arguments: a position and a quaternion `(w x y z)`.
fn turned_pose_given(cx: &mut Context, args: Args<'_>, first: usize) -> Result<ShapePose, Exit> {
    let position = cx.point(args[first])?;
    match args.floats(cx, first + 1)?.try_into() {
        Ok(quaternion) => Ok(pose_of_quaternion(quaternion, position)),
        Err(_) => cx.type_error("float-vector of 4 elements", args[first + 1]),
    }
}

/// Implements `(btcalccollisiondistance model1 model2 position1 quaternion1 position2 quaternion2 distance direction
/// point1 point2)`: writes the distance, negative for solids that intersect, the direction from the second solid to the
/// first, and the nearest points.
pub(super) fn convex_distance(cx: &mut Context, args: Args<'_>) -> Answer {
    let (ours, other) = (convex(cx, args[0])?, convex(cx, args[1])?);
    let (at, other_at) = (turned_pose_given(cx, args, 2)?, turned_pose_given(cx, args, 4)?);
    if args.floats(cx, 6)?.is_empty() {
        return cx.type_error("float-vector of 1 element", args[6]);
    }
    cx.point(args[7])?;
    let found = cx.blocked(|| ours.nearest(&at, &other, &other_at));
    let Some((nearest, direction)) = found else {
        return cx.error(ErrorClass::Range, "these solids have no distance".to_owned());
    };
    args[6].floats_mut()[0] = nearest.distance;
    args[7].floats_mut().copy_from_slice(&direction);
    write_points(cx, args, 8, &nearest)?;
    Ok(Value::fixnum(0))
}
