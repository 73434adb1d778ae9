//! Composes boxes in all relative positions, and compares them with known volumes.

use super::*;
use crate::geometry::measures::normal_of;
use Operation::{Difference, Intersection, Union};

fn facet(ring: Vec<Point>) -> Facet {
    let normal = normal_of(&ring);
    Facet { plane: Plane { normal, distance: -dot(normal, ring[0]) }, rings: vec![ring] }
}

/// Creates a box from two opposite corners.
fn block(low: Point, high: Point) -> Vec<Facet> {
    let corner =
        |bits: usize| std::array::from_fn(|axis| if bits >> axis & 1 == 1 { high[axis] } else { low[axis] });
    [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
        .map(|ring| facet(ring.map(corner).to_vec()))
        .into()
}

fn volume(composed: &Composed) -> f64 {
    let rings = composed.faces.iter().flat_map(|face| &face.rings);
    let cone = |ring: &Vec<usize>| -> f64 {
        let at = |index: usize| composed.points[ring[index]];
        (2..ring.len()).map(|index| dot(at(0), cross(at(index - 1), at(index))) / 6.0).sum()
    };
    rings.map(cone).sum()
}

/// Returns whether every edge has a face on each side.
fn closes(composed: &Composed) -> bool {
    let mut sides: Vec<(usize, usize)> = Vec::new();
    for ring in composed.faces.iter().flat_map(|face| &face.rings) {
        sides.extend((0..ring.len()).map(|at| (ring[at], ring[(at + 1) % ring.len()])));
    }
    sides.sort_unstable();
    sides.windows(2).all(|pair| pair[0] != pair[1])
        && sides.iter().all(|(from, to)| sides.binary_search(&(*to, *from)).is_ok())
}

#[track_caller]
fn check(first: &[Facet], second: &[Facet], operation: Operation, faces: usize, want: f64) {
    let made = compose(first, second, operation);
    assert!((volume(&made) - want).abs() < 1e-6, "volume {} of {made:?}", volume(&made));
    assert!(closes(&made), "{made:?}");
    assert_eq!(made.faces.len(), faces, "{made:?}");
}

#[test]
fn overlapping_corners_compose() {
    let (a, b) = (block([0.0; 3], [10.0; 3]), block([5.0; 3], [15.0; 3]));
    check(&a, &b, Union, 12, 1875.0);
    check(&a, &b, Intersection, 6, 125.0);
    check(&a, &b, Difference, 9, 875.0);
}

#[test]
fn bar_through_block_leaves_holes() {
    let (a, bar) = (block([0.0; 3], [10.0; 3]), block([4.0, 4.0, -5.0], [6.0, 6.0, 15.0]));
    check(&a, &bar, Union, 16, 1040.0);
    check(&a, &bar, Intersection, 6, 40.0);
    check(&a, &bar, Difference, 10, 960.0);
    let holes: usize = compose(&a, &bar, Difference).faces.iter().map(|face| face.rings.len() - 1).sum();
    assert_eq!(holes, 2);
}

#[test]
fn coplanar_faces_are_merged() {
    let (a, b) = (block([0.0; 3], [10.0; 3]), block([10.0, 0.0, 0.0], [20.0, 10.0, 10.0]));
    check(&a, &b, Union, 6, 2000.0);
    check(&a, &b, Intersection, 0, 0.0);
    check(&a, &b, Difference, 6, 1000.0);
}

#[test]
fn touching_boxes_compose() {
    let (a, b) = (block([0.0; 3], [10.0; 3]), block([2.0, 2.0, 10.0], [5.0, 5.0, 12.0]));
    check(&a, &b, Union, 11, 1018.0);
    check(&a, &b, Difference, 6, 1000.0);
}

#[test]
fn flush_notch_is_cut() {
    let (a, b) = (block([0.0; 3], [10.0; 3]), block([0.0, 0.0, 5.0], [5.0, 10.0, 10.0]));
    check(&a, &b, Difference, 8, 750.0);
    check(&a, &b, Union, 6, 1000.0);
    check(&a, &b, Intersection, 6, 250.0);
}

#[test]
fn identical_solids_compose() {
    let a = block([0.0; 3], [10.0; 3]);
    check(&a, &a, Union, 6, 1000.0);
    check(&a, &a, Intersection, 6, 1000.0);
    check(&a, &a, Difference, 0, 0.0);
}

#[test]
fn inner_cavity_is_kept() {
    let (a, b) = (block([0.0; 3], [10.0; 3]), block([4.0; 3], [6.0; 3]));
    check(&a, &b, Difference, 12, 992.0);
    check(&b, &a, Difference, 0, 0.0);
}

#[test]
fn disjoint_solids_compose() {
    let (a, b) = (block([0.0; 3], [1.0; 3]), block([4.0; 3], [6.0; 3]));
    check(&a, &b, Union, 12, 9.0);
    check(&a, &b, Intersection, 0, 0.0);
}

#[test]
fn thin_walls_are_kept() {
    let (a, b) = (block([0.0; 3], [100.0, 100.0, 0.1]), block([50.0, 0.0, 0.0], [50.1, 100.0, 100.0]));
    check(&a, &b, Intersection, 6, 100.0 * 0.1 * 0.1);
    check(&a, &b, Union, 10, 1000.0 + 1000.0 - 1.0);
}

/// Creates a regular prism on the z axis, slightly rotated.
fn prism(count: usize, radius: f64, low: f64, high: f64) -> Vec<Facet> {
    let at = |index: usize, height: f64| {
        let (s, c) = ((index % count) as f64 * std::f64::consts::TAU / count as f64 + 0.1).sin_cos();
        [radius * c, radius * s, height]
    };
    let mut facets: Vec<Facet> = (0..count)
        .map(|index| facet(vec![at(index, low), at(index + 1, low), at(index + 1, high), at(index, high)]))
        .collect();
    facets.push(facet((0..count).map(|index| at(index, high)).collect()));
    facets.push(facet((0..count).rev().map(|index| at(index, low)).collect()));
    facets
}

#[test]
fn prism_hole_is_cut() {
    let (a, b) = (block([-10.0; 3], [10.0; 3]), prism(12, 5.0, -20.0, 20.0));
    let area = 12.0 / 2.0 * 25.0 * (std::f64::consts::TAU / 12.0).sin();
    check(&a, &b, Difference, 18, 8000.0 - 20.0 * area);
    check(&a, &b, Union, 6 + 12 * 2 + 2, 8000.0 + 20.0 * area);
    check(&a, &b, Intersection, 14, 20.0 * area);
}

#[test]
fn parts_know_their_source_face() {
    let (a, b) = (block([0.0; 3], [10.0; 3]), block([5.0; 3], [15.0; 3]));
    let made = compose(&a, &b, Difference);
    let mut sources: Vec<usize> = made.faces.iter().map(|face| face.source).collect();
    sources.sort_unstable();
    assert_eq!(sources, [0, 1, 2, 3, 4, 5, 6, 8, 10]);
}

fn turned(facets: &[Facet], axis: Point, angle: f64) -> Vec<Facet> {
    let axis = unit(axis);
    let turn = |p: Point| {
        let (s, c) = angle.sin_cos();
        add(add(scale(c, p), scale(s, cross(axis, p))), scale((1.0 - c) * dot(axis, p), axis))
    };
    facets.iter().map(|one| facet(one.rings[0].iter().copied().map(turn).collect())).collect()
}

#[test]
fn volumes_of_operations_add_up() {
    for step in 0..60_u32 {
        let t = f64::from(step);
        let a = block([-5.0, -4.0, -3.0], [5.0, 4.0, 3.0]);
        let b = turned(&prism(3 + step as usize % 8, 4.0, -6.0, t.sin() * 5.0 + 2.0), [t.cos(), 1.0, 0.3], t);
        let [union, common, rest] =
            [Union, Intersection, Difference].map(|operation| compose(&a, &b, operation));
        for made in [&union, &common, &rest] {
            assert!(closes(made), "step {step}: {made:?}");
        }
        let whole = |facets: &[Facet]| volume(&compose(facets, &[], Union));
        let (union, common, rest) = (volume(&union), volume(&common), volume(&rest));
        assert!(common > 0.0 && rest > 0.0);
        assert!((union + common - whole(&a) - whole(&b)).abs() < 1e-6, "step {step}: {union} {common}");
        assert!((rest + common - whole(&a)).abs() < 1e-6, "step {step}: {rest} {common}");
    }
}
