//! Implements points and directions in space.

/// A point or a vector has three coordinates.
pub(crate) type Point = [f64; 3];

pub(crate) fn add(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn sub(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn scale(s: f64, a: Point) -> Point {
    [s * a[0], s * a[1], s * a[2]]
}

pub(crate) fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn norm(a: Point) -> f64 {
    dot(a, a).sqrt()
}

pub(crate) fn distance(a: Point, b: Point) -> f64 {
    norm(sub(a, b))
}

pub(crate) fn unit(a: Point) -> Point {
    scale(1.0 / norm(a), a)
}

/// Returns the point at fraction `at` between `a` and `b`.
pub(crate) fn between(at: f64, a: Point, b: Point) -> Point {
    add(scale(1.0 - at, a), scale(at, b))
}

/// Returns twice the area of a triangle in a plane; positive when it turns left, seen against the normal.
pub(crate) fn turn(a: Point, b: Point, c: Point, normal: Point) -> f64 {
    dot(cross(sub(b, a), sub(c, b)), normal)
}

/// Returns whether `a` is less than `b`; as in EusLisp, also if either is NaN.
pub(crate) fn less(a: f64, b: f64) -> bool {
    a < b || a.is_nan() || b.is_nan()
}

/// Returns the angle from `a` to `b` about `normal`; exactly 0 or pi when they are nearly parallel.
pub(crate) fn angle(a: Point, b: Point, normal: Point) -> f64 {
    const PARALLEL: f64 = 1e-10;
    let product = cross(a, b);
    if dot(product, product) < PARALLEL {
        return if dot(a, b) > 0.0 { 0.0 } else { std::f64::consts::PI };
    }
    dot(normal, product).atan2(dot(a, b))
}

/// A box has sides parallel to the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) low: Point,
    pub(crate) high: Point,
}

impl Bounds {
    /// Returns the smallest box around points; without points, an empty one.
    pub(crate) fn around(points: impl Iterator<Item = Point>) -> Bounds {
        let none = Bounds { low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };
        points.fold(none, |b, p| Bounds {
            low: std::array::from_fn(|i| b.low[i].min(p[i])),
            high: std::array::from_fn(|i| b.high[i].max(p[i])),
        })
    }

    /// Returns the intersection of two boxes; touching ones share a face, an edge or a corner.
    pub(crate) fn common(self, other: Bounds) -> Option<Bounds> {
        let low = std::array::from_fn(|i| self.low[i].max(other.low[i]));
        let high = std::array::from_fn(|i| self.high[i].min(other.high[i]));
        (0..3).all(|i| low[i] <= high[i]).then_some(Bounds { low, high })
    }

    pub(crate) fn meets(self, other: Bounds) -> bool {
        self.common(other).is_some()
    }
}
