//! Describes the solid that a composition makes.

use crate::numeric::point::Point;

/// Describes a face of the result by indices of its points.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) rings: Vec<Vec<usize>>,
    /// Index of the original face, counted through the first solid and then the second.
    pub(crate) source: usize,
}

/// Describes the result by its points and its faces.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    pub(crate) points: Vec<Point>,
    pub(crate) faces: Vec<Made>,
}
