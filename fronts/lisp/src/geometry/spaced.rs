//! Removes points that are close to others.

use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::numeric::point::{Point, distance, less};
use std::collections::HashMap;

/// Returns for each point whether it stays: whether no later point is nearer than `near`. As in EusLisp, a distance
/// that is NaN counts as nearer.
fn last_of_close(points: &[Point], near: f64) -> Vec<bool> {
    if !near.is_finite() || points.iter().flatten().any(|x| !x.is_finite()) {
        return last_by_pairs(points, near);
    }
    if near <= 0.0 {
        return vec![true; points.len()];
    }
    // A point that is nearer lies in the same cube or in one next to it, also after rounding.
    let cube = |point: &Point| point.map(|x| (x / (2.0 * near)).floor() as i64);
    let mut later: HashMap<[i64; 3], Vec<Point>> = HashMap::new();
    let mut last = vec![true; points.len()];
    for (point, last) in points.iter().zip(&mut last).rev() {
        let [x, y, z] = cube(point);
        let beside = |step: i64| {
            [x.wrapping_add(step % 3 - 1), y.wrapping_add(step / 3 % 3 - 1), z.wrapping_add(step / 9 - 1)]
        };
        let mut around = (0..27).filter_map(|step| later.get(&beside(step))).flatten();
        *last = !around.any(|other| distance(*point, *other) < near);
        later.entry([x, y, z]).or_default().push(*point);
    }
    last
}

/// Does the same as [`last_of_close`] by comparing all pairs.
fn last_by_pairs(points: &[Point], near: f64) -> Vec<bool> {
    let last = |(index, point): (usize, &Point)| {
        !points[index + 1..].iter().any(|other| less(distance(*point, *other), near))
    };
    points.iter().enumerate().map(last).collect()
}

/// Implements `(spaced-points points distance)`: removes each point with a later point nearer than the distance.
pub(super) fn spaced_points(cx: &mut Context, args: Args<'_>) -> Answer {
    let near = args.float(cx, 1)?;
    let (values, points) = cx.vertices(args[0])?;
    let last = last_of_close(&points, near);
    let kept = cx.mark();
    for (value, _) in values.into_iter().zip(last).filter(|(_, last)| *last) {
        cx.push(value)?;
    }
    cx.stacked(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubes_find_what_all_pairs_find() {
        let points: Vec<Point> = (0..400_i32)
            .map(|i| [f64::from(i * 37 % 11) * 0.3, f64::from(i % 7) * -0.3, f64::from(i % 3)])
            .collect();
        for near in [0.0, 0.1, 0.3, 0.35, 1.0, 5.0, f64::INFINITY, f64::NAN] {
            let all = last_by_pairs(&points, near);
            assert_eq!(last_of_close(&points, near), all, "{near}");
        }
    }
}
