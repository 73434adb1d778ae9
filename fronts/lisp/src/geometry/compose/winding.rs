//! Computes the winding number of a solid's surface around a point: 1 inside, 0 outside.

use super::facet::Facet;
use crate::numeric::point::{Point, cross, dot, norm, sub};

/// Represents the surface by signed triangles: in the fans over concave rings, overlaps cancel.
pub(super) struct Winding(Vec<[Point; 3]>);

impl Winding {
    pub(super) fn of(facets: &[Facet]) -> Winding {
        let rings = facets.iter().flat_map(|facet| &facet.rings);
        let fan = |ring: &Vec<Point>| {
            let apex = ring[0];
            ring.windows(2).skip(1).map(move |pair| [apex, pair[0], pair[1]]).collect::<Vec<_>>()
        };
        Winding(rings.flat_map(fan).collect())
    }

    pub(super) fn within(&self, point: Point) -> bool {
        let total: f64 =
            self.0.iter().map(|triangle| solid_angle(triangle.map(|corner| sub(corner, point)))).sum();
        total > 2.0 * std::f64::consts::PI
    }
}

/// Returns the solid angle of a triangle at the origin (van Oosterom and Strackee, 1983).
fn solid_angle([a, b, c]: [Point; 3]) -> f64 {
    let (la, lb, lc) = (norm(a), norm(b), norm(c));
    let volume = dot(a, cross(b, c));
    let cosine = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
    2.0 * volume.atan2(cosine)
}
