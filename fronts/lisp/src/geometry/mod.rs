//! Implements three-dimensional geometry: frames, polygons, bodies, their relations, and collisions.
//!
//! # Picture
//! ```text
//!   *.l   classes and messages, in Lisp   ──►   builtins here: `weave`, `interference`, `measures`, ...
//!                                                   │ read and create objects of those classes (`parts`)
//!                                                   ▼
//!                                         `ring`, `hull`, `compose`, `collide`: numbers only
//! ```
//! # Invariants
//! 1. Programs may store any value in a slot: each value read from a slot is checked before use.
//! 2. Threads share bodies without locks; this module keeps no pointer into a vector across an allocation.

mod bridges;
pub(crate) mod collide;
mod collision;
mod compose;
mod composition;
mod ears;
mod hull;
mod interference;
mod measures;
mod moves;
mod parts;
mod ring;
mod spaced;
mod weave;

use crate::builtin::{Builtin, builtin};

/// Lists the functions that the Lisp files call; those with two colons are internal to them.
pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("GEOMETRY:TRIANGLE", 3, 4, measures::triangle),
    builtin("GEOMETRY:VECTOR-ANGLE", 2, 4, measures::vector_angle),
    builtin("GEOMETRY:FACE-NORMAL-VECTOR", 1, 1, measures::face_normal_vector),
    builtin("GEOMETRY::CONVEX-RING-P", 2, 2, measures::convex_ring_p),
    builtin("GEOMETRY::RING-CENTROID", 2, 2, measures::ring_centroid),
    builtin("GEOMETRY::SOLID-MEASURES", 2, 2, measures::solid_measures),
    builtin("GEOMETRY::MEASURE-EDGES", 2, 2, measures::measure_edges),
    builtin("GEOMETRY::MOVE-POINTS", 4, 4, measures::move_points),
    builtin("GEOMETRY::CHAIN-FRAMES", 4, 4, moves::chain_frames),
    builtin("GEOMETRY::RESET-NORMALS", 3, 3, moves::reset_normals),
    builtin("GEOMETRY::LOCATE-IN-RING", 6, 6, interference::locate_in_ring),
    builtin("GEOMETRY::COMMON-BOX", 2, 2, interference::common_box),
    builtin("GEOMETRY::EDGES-CROSS-P", 6, 6, interference::edges_cross_p),
    builtin("GEOMETRY::FACES-IN-BOX", 2, 2, interference::faces_in_box),
    builtin("GEOMETRY::FACES-MEET-P", 6, 6, interference::faces_meet_p),
    builtin("GEOMETRY::WEAVE-RINGS", 3, 5, weave::weave_rings),
    builtin("GEOMETRY::CLIP-EARS", 7, 7, ears::clip_ears),
    builtin("GEOMETRY::SHORTEST-BRIDGE", 2, 2, bridges::shortest_bridge),
    builtin("GEOMETRY::SPACED-POINTS", 2, 2, spaced::spaced_points),
    builtin("GEOMETRY::HULL-RINGS", 1, 1, weave::hull_rings),
    builtin("GEOMETRY::COMPOSE-RINGS", 3, 3, composition::compose_rings),
    builtin("GEOMETRY::PQPMAKEMODEL", 0, 0, collision::make_mesh),
    builtin("GEOMETRY::PQPDELETEMODEL", 1, 1, collision::delete_model),
    builtin("GEOMETRY::PQPBEGINMODEL", 1, 1, collision::begin_mesh),
    builtin("GEOMETRY::PQPADDTRI", 5, 5, collision::add_triangle),
    builtin("GEOMETRY::PQPENDMODEL", 1, 1, collision::end_mesh),
    builtin("GEOMETRY::PQPCOLLIDE", 7, 7, collision::collide),
    builtin("GEOMETRY::PQPDISTANCE", 8, 9, collision::mesh_distance),
    builtin("GEOMETRY::BTMAKESPHEREMODEL", 1, 1, collision::make_sphere),
    builtin("GEOMETRY::BTMAKEBOXMODEL", 3, 3, collision::make_box),
    builtin("GEOMETRY::BTMAKECYLINDERMODEL", 2, 2, collision::make_cylinder),
    builtin("GEOMETRY::BTMAKEMESHMODEL", 2, 2, collision::make_hull),
    builtin("GEOMETRY::BTSETMARGIN", 2, 2, collision::set_margin),
    builtin("GEOMETRY::BTCALCCOLLISIONDISTANCE", 10, 10, collision::convex_distance),
];

/// Lists the library in Lisp, in loading order.
pub(crate) const SOURCES: &[&str] = &[
    include_str!("functions.l"),
    include_str!("coordinates.l"),
    include_str!("lines.l"),
    include_str!("planes.l"),
    include_str!("bodies.l"),
    include_str!("primitives.l"),
    include_str!("composition.l"),
    include_str!("collision.l"),
    include_str!("viewing.l"),
    include_str!("graphics.l"),
    include_str!("triangles.l"),
    include_str!("irteus.l"),
];
