//! Distances and collisions between two shapes: meshes of triangles, and convex solids. Numbers only.

use crate::numeric::point::Point;
use parry3d_f64::bounding_volume::Aabb;
use parry3d_f64::math::{Mat3, Pose, Rotation, Vector};
use parry3d_f64::partitioning::BvhNode;
use parry3d_f64::query::{self, ClosestPoints};
use parry3d_f64::shape::{ConvexPolyhedron, Cuboid, Cylinder, SharedShape, TriMesh, Triangle};
use std::cell::Cell;
use std::sync::Arc;

/// The pose of a shape in the world.
pub(crate) type ShapePose = Pose;

/// Returns the pose of a rotation matrix, in row-major order, and a position.
pub(crate) fn pose(rotation: &[f64; 9], position: Point) -> ShapePose {
    let columns = Mat3::from_cols_array(rotation).transpose();
    Pose::from_parts(Vector::from_array(position), Rotation::from_mat3(&columns))
}

/// Returns the pose of a unit quaternion `(w x y z)` and a position.
pub(crate) fn pose_of_quaternion([w, x, y, z]: [f64; 4], position: Point) -> ShapePose {
    Pose::from_parts(Vector::from_array(position), Rotation::from_xyzw(x, y, z, w).normalize())
}

/// Two nearest points, in the world, and their distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearest {
    /// Not negative between meshes; between convex solids, minus the depth of penetration.
    pub(crate) distance: f64,
    pub(crate) points: [Point; 2],
}

/// A surface of triangles, with a tree of bounding boxes.
pub(crate) struct Mesh(TriMesh);

impl Mesh {
    /// Creates a mesh from corners, three for each triangle; returns none without a triangle.
    pub(crate) fn new(corners: &[Point]) -> Option<Mesh> {
        let vertices = corners.iter().map(|p| Vector::from_array(*p)).collect();
        let triangles = (0..u32::try_from(corners.len() / 3).ok()?).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]);
        TriMesh::new(vertices, triangles.collect()).ok().map(Mesh)
    }

    /// Calls `visit` with each pair of triangles whose bounding boxes are less than `reach` apart, until it returns
    /// false. Those of the other mesh are moved to this one's frame. `visit` may lower `reach`.
    fn pairs(
        &self,
        other: &Mesh,
        to_ours: &Pose,
        reach: &Cell<f64>,
        mut visit: impl FnMut(Triangle, Triangle) -> bool,
    ) {
        let near = |ours: &BvhNode, theirs: &BvhNode| {
            gap(&ours.aabb(), &theirs.aabb().transform_by(to_ours)) <= reach.get()
        };
        for (i, j) in self.0.bvh().leaf_pairs(other.0.bvh(), near) {
            if !visit(self.0.triangle(i), other.0.triangle(j).transformed(to_ours)) {
                return;
            }
        }
    }

    /// Counts the pairs of triangles that intersect, up to `most`.
    pub(crate) fn collisions(
        &self,
        at: &ShapePose,
        other: &Mesh,
        other_at: &ShapePose,
        most: usize,
    ) -> usize {
        let mut count = 0;
        self.pairs(other, &at.inv_mul(other_at), &Cell::new(0.0), |a, b| {
            let meet = query::intersection_test(&Pose::IDENTITY, &a, &Pose::IDENTITY, &b);
            count += usize::from(meet.is_ok_and(|meet| meet.intersecting));
            count < most
        });
        count
    }

    /// Returns the nearest points of two surfaces; for surfaces that cross, the distance 0 and a point of both.
    pub(crate) fn nearest(&self, at: &ShapePose, other: &Mesh, other_at: &ShapePose) -> Nearest {
        let to_ours = at.inv_mul(other_at);
        let (mut from, mut to) = (self.0.vertices()[0], to_ours * other.0.vertices()[0]);
        let reach = Cell::new(from.distance(to));
        self.pairs(other, &to_ours, &reach, |a, b| {
            // The box of a moved triangle is smaller than its moved box, by which the pair was found.
            if gap(&a.local_aabb(), &b.local_aabb()) > reach.get() {
                return true;
            }
            match query::closest_points(&Pose::IDENTITY, &a, &Pose::IDENTITY, &b, reach.get()) {
                Ok(ClosestPoints::WithinMargin(p, q)) if p.distance(q) < reach.get() => {
                    (from, to) = (p, q);
                    reach.set(p.distance(q));
                }
                Ok(ClosestPoints::Intersecting) => {
                    from = middle(&a, &b);
                    to = from;
                    reach.set(0.0);
                    return false;
                }
                _ => {}
            }
            true
        });
        Nearest { distance: reach.get(), points: [*at * from, *at * to].map(|p| p.to_array()) }
    }
}

/// Returns a point near the intersection of two triangles: the centre of the box that their bounding boxes share.
fn middle(a: &Triangle, b: &Triangle) -> Vector {
    let (a, b) = (a.local_aabb(), b.local_aabb());
    a.intersection(&b).unwrap_or(a).center()
}

/// Returns the distance between two boxes, 0 if they intersect.
fn gap(a: &Aabb, b: &Aabb) -> f64 {
    (a.mins - b.maxs).max(b.mins - a.maxs).max(Vector::ZERO).length()
}

/// A convex solid; its shape is shared by its copies.
#[derive(Clone)]
pub(crate) struct Convex {
    shape: SharedShape,
    /// Pose of the shape relative to the solid's frame.
    offset: Pose,
    /// Width of a layer around the shape that belongs to the solid.
    pub(crate) margin: f64,
}

impl Convex {
    fn centred(shape: SharedShape) -> Convex {
        Convex { shape, offset: Pose::IDENTITY, margin: 0.0 }
    }

    pub(crate) fn sphere(radius: f64) -> Convex {
        Convex::centred(SharedShape::ball(radius))
    }

    /// Creates a box with its centre at the origin.
    pub(crate) fn cuboid(sides: Point) -> Convex {
        Convex::centred(SharedShape::new(Cuboid::new(0.5 * Vector::from_array(sides))))
    }

    /// Creates a cylinder from the origin to `height` on the z axis.
    pub(crate) fn cylinder(radius: f64, height: f64) -> Convex {
        // Parry's cylinders lie along the y axis, with their centre at the origin.
        let upright = Rotation::from_rotation_x(std::f64::consts::FRAC_PI_2);
        let offset = Pose::from_parts(Vector::new(0.0, 0.0, height / 2.0), upright);
        Convex { shape: SharedShape::new(Cylinder::new(height / 2.0, radius)), offset, margin: 0.0 }
    }

    /// Creates the convex hull of points; returns none when they have none, as points on one line.
    pub(crate) fn hull(points: &[Point]) -> Option<Convex> {
        let points: Vec<Vector> = points.iter().map(|p| Vector::from_array(*p)).collect();
        ConvexPolyhedron::from_convex_hull(&points).map(|shape| Convex::centred(SharedShape::new(shape)))
    }

    /// Returns the nearest points of two solids, and the direction from the second one to the first.
    pub(crate) fn nearest(
        &self,
        at: &ShapePose,
        other: &Convex,
        other_at: &ShapePose,
    ) -> Option<(Nearest, Point)> {
        /// Farther solids have no distance.
        const FARTHEST: f64 = 1e12;
        let (at, other_at) = (at * self.offset, other_at * other.offset);
        let contact = query::contact(&at, &*self.shape, &other_at, &*other.shape, FARTHEST).ok()??;
        let points =
            [contact.point1 + self.margin * contact.normal1, contact.point2 + other.margin * contact.normal2];
        let distance = contact.dist - self.margin - other.margin;
        Some((Nearest { distance, points: points.map(|p| p.to_array()) }, contact.normal2.to_array()))
    }
}

/// The native part of a collision model.
pub(crate) enum CollisionModel {
    /// A mesh under construction: three corners for each triangle.
    Corners(Vec<Point>),
    Mesh(Arc<Mesh>),
    Convex(Convex),
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPRIGHT: [f64; 9] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    /// Two triangles that make a square of side 2 in the plane z = 0, around the origin.
    fn square() -> Mesh {
        let (a, b, c, d) = ([-1., -1., 0.], [1., -1., 0.], [1., 1., 0.], [-1., 1., 0.]);
        Mesh::new(&[a, b, c, a, c, d]).unwrap()
    }

    #[test]
    fn distance_of_parallel_squares() {
        let nearest = square().nearest(&pose(&UPRIGHT, [0.0; 3]), &square(), &pose(&UPRIGHT, [5., 0., 4.]));
        assert!(close(nearest.distance, 5.0), "{nearest:?}");
        assert!(close(nearest.points[0][0], 1.0) && close(nearest.points[1][0], 4.0), "{nearest:?}");
    }

    #[test]
    fn crossing_squares_have_no_distance() {
        // A quarter turn about the x axis.
        let turned = pose(&[1., 0., 0., 0., 0., -1., 0., 1., 0.], [0.5, 0., 0.]);
        let (here, other) = (pose(&UPRIGHT, [0.0; 3]), square());
        assert_eq!(square().nearest(&here, &other, &turned).distance, 0.0);
        assert!(square().collisions(&here, &other, &turned, 10) > 1);
        assert_eq!(square().collisions(&here, &other, &turned, 1), 1);
        assert_eq!(square().collisions(&here, &other, &pose(&UPRIGHT, [0., 0., 1.]), 10), 0);
    }

    #[test]
    fn convex_solids_measure_penetration() {
        let (sphere, cube) = (Convex::sphere(1.0), Convex::cuboid([2.0; 3]));
        let here = pose_of_quaternion([1., 0., 0., 0.], [0.0; 3]);
        let apart = sphere.nearest(&here, &cube, &pose(&UPRIGHT, [4., 0., 0.])).unwrap();
        assert!(close(apart.0.distance, 2.0) && close(apart.1[0], -1.0));
        let inside = sphere.nearest(&here, &cube, &pose(&UPRIGHT, [1.5, 0., 0.])).unwrap();
        assert!(close(inside.0.distance, -0.5));
    }

    #[test]
    fn cylinder_stands_on_the_origin() {
        let (cylinder, sphere) = (Convex::cylinder(1.0, 5.0), Convex::sphere(0.5));
        let here = pose(&UPRIGHT, [0.0; 3]);
        let above = cylinder.nearest(&here, &sphere, &pose(&UPRIGHT, [0., 0., 8.])).unwrap();
        assert!(close(above.0.distance, 2.5));
        let below = cylinder.nearest(&here, &sphere, &pose(&UPRIGHT, [0., 0., -2.])).unwrap();
        assert!(close(below.0.distance, 1.5));
    }

    #[test]
    fn margin_widens_a_hull() {
        let corners = [[0., 0., 0.], [1., 0., 0.], [0., 1., 0.], [0., 0., 1.]];
        let mut hull = Convex::hull(&corners).unwrap();
        hull.margin = 0.1;
        let (here, there) = (pose(&UPRIGHT, [0.0; 3]), pose(&UPRIGHT, [1., 1., 1.]));
        let (nearest, _) = hull.nearest(&here, &Convex::sphere(0.001), &there).unwrap();
        assert!(close(nearest.distance, 2.0 / 3.0f64.sqrt() - 0.101), "{nearest:?}");
    }
}
