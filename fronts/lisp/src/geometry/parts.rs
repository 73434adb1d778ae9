//! Accesses objects of the geometry classes: slot indices, and checked reading.

use super::ring::Plane;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::numeric::point::{Bounds, Point};
use crate::value::{ObjectKind, Value};

/// Indices of the slots of `line` and `edge`.
pub(super) mod edge {
    pub(in super::super) const PVERT: usize = 1;
    pub(in super::super) const NVERT: usize = 2;
    pub(in super::super) const PFACE: usize = 3;
    pub(in super::super) const NFACE: usize = 4;
    pub(in super::super) const ANGLE: usize = 5;
    pub(in super::super) const FLAGS: usize = 6;
    pub(in super::super) const COUNT: usize = 7;
}

/// Indices of the slots of `plane`, `polygon` and `face`.
pub(super) mod face {
    pub(in super::super) const NORMAL: usize = 1;
    pub(in super::super) const DISTANCE: usize = 2;
    pub(in super::super) const CONVEXP: usize = 3;
    pub(in super::super) const EDGES: usize = 4;
    pub(in super::super) const VERTICES: usize = 5;
    pub(in super::super) const MODEL_NORMAL: usize = 6;
    pub(in super::super) const MODEL_DISTANCE: usize = 7;
    pub(in super::super) const HOLES: usize = 8;
    pub(in super::super) const PRIMITIVE_FACE: usize = 10;
    pub(in super::super) const COUNT: usize = 12;
}

/// Indices of the slots of `hole` that differ from those of a face.
pub(super) mod hole {
    pub(in super::super) const FACE: usize = 8;
    pub(in super::super) const COUNT: usize = 9;
}

/// Indices of the slots of `bounding-box`.
mod boxed {
    pub(super) const LOW: usize = 0;
    pub(super) const HIGH: usize = 1;
}

/// Returns slot `index` of an instance, or nil without such a slot.
pub(super) fn slot(object: Value, index: usize) -> Value {
    if object.is(ObjectKind::Instance) && index < object.length() { object.slot(index) } else { Value::NIL }
}

/// Returns the point in a float-vector of three elements.
pub(super) fn point(value: Value) -> Option<Point> {
    if value.is(ObjectKind::FloatVector) { value.floats().try_into().ok() } else { None }
}

/// Iterates over the points of a list, up to the first element that is not a point.
pub(super) fn points(list: Value) -> impl Iterator<Item = Point> + Clone {
    list.iter().map_while(point)
}

impl Context {
    pub(super) fn point(&mut self, value: Value) -> Result<Point, Exit> {
        match point(value) {
            Some(point) => Ok(point),
            None => self.type_error("float-vector of 3 elements", value),
        }
    }

    /// Returns the points of a list; any other element is an error.
    pub(super) fn points(&mut self, list: Value) -> Result<Vec<Point>, Exit> {
        list.iter().map(|value| self.point(value)).collect()
    }

    /// Pushes the vertices in a list, which are points, and returns them: another thread may modify the list.
    pub(super) fn vertices(&mut self, list: Value) -> Result<(Vec<Value>, Vec<Point>), Exit> {
        let vertices = self.alive(list)?;
        let points = vertices.iter().map(|value| self.point(*value)).collect::<Result<_, _>>()?;
        Ok((vertices, points))
    }

    /// Returns the bounds in a bounding-box object.
    pub(super) fn bounds(&mut self, value: Value) -> Result<Bounds, Exit> {
        match (point(slot(value, boxed::LOW)), point(slot(value, boxed::HIGH))) {
            (Some(low), Some(high)) => Ok(Bounds { low, high }),
            _ => self.type_error("bounding-box", value),
        }
    }

    /// Creates a bounding-box object of a class.
    pub(super) fn new_box(&mut self, class: Value, bounds: Bounds) -> Answer {
        let mark = self.mark();
        let made = self.new_instance(class)?;
        self.push(made)?;
        let low = self.floats_from(&bounds.low)?;
        made.set_slot(boxed::LOW, low);
        let high = self.floats_from(&bounds.high)?;
        made.set_slot(boxed::HIGH, high);
        self.release(mark);
        Ok(made)
    }

    /// Returns the plane of a polygon.
    pub(super) fn plane(&mut self, polygon: Value) -> Result<Plane, Exit> {
        let Some(normal) = point(slot(polygon, face::NORMAL)) else {
            return self.type_error("plane in space", polygon);
        };
        Ok(Plane { normal, distance: self.number(slot(polygon, face::DISTANCE))? })
    }
}
