//! Implements float-vectors and matrices: chapter 15 of the EusLisp manual, except coordinates.

mod angles;
mod decompose;
mod eigenvalues;
pub(crate) mod linear;
mod lu;
mod lu_in_place;
pub(crate) mod matrix;
pub(crate) mod point;
mod room;
mod rows;
mod statistics;
pub(crate) mod vectors;

use crate::builtin::{Builtin, MANY, builtin};

/// Lists the builtin functions that this module defines.
pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("V+", 2, 3, vectors::plus),
    builtin("V-", 1, 3, vectors::minus),
    builtin("V.", 2, 2, vectors::dot),
    builtin("V*", 2, 3, vectors::cross),
    builtin("V.*", 3, 3, vectors::triple),
    builtin("V=", 2, 2, vectors::equal),
    builtin("V<", 2, 2, vectors::all_less),
    builtin("V>", 2, 2, vectors::all_more),
    builtin("VMIN", 1, MANY, vectors::minimum),
    builtin("VMAX", 1, MANY, vectors::maximum),
    builtin("MINIMAL-BOX", 3, 4, vectors::minimal_box),
    builtin("SCALE", 2, 3, vectors::scale),
    builtin("NORM", 1, 1, vectors::norm),
    builtin("NORM2", 1, 1, vectors::norm2),
    builtin("NORMALIZE-VECTOR", 1, 2, vectors::normalize),
    builtin("DISTANCE", 2, 2, vectors::distance),
    builtin("DISTANCE2", 2, 2, vectors::distance2),
    builtin("HOMO2NORMAL", 1, 2, vectors::homo2normal),
    builtin("HOMOGENIZE", 1, 2, vectors::homogenize),
    builtin("MIDPOINT", 3, 4, vectors::midpoint),
    builtin("ROTATE-VECTOR", 3, 4, angles::rotate_vector),
    builtin("MATRIX", 1, MANY, matrix::matrix),
    builtin("MAKE-MATRIX", 2, 3, matrix::make_matrix),
    builtin("MATRIXP", 1, 1, matrix::matrixp),
    builtin("MATRIX-ROW", 2, 2, matrix::row),
    builtin("MATRIX-COLUMN", 2, 2, matrix::column),
    builtin("SET-MATRIX-ROW", 3, 3, matrix::set_row),
    builtin("SET-MATRIX-COLUMN", 3, 3, matrix::set_column),
    builtin("UNIT-MATRIX", 0, 1, matrix::unit_matrix),
    builtin("REPLACE-MATRIX", 2, 2, matrix::replace),
    builtin("COPY-MATRIX", 1, 1, matrix::copy),
    builtin("SCALE-MATRIX", 2, 3, linear::scale_matrix),
    builtin("M*", 2, 3, linear::product),
    builtin("M+", 2, 3, linear::sum),
    builtin("M-", 2, 3, linear::difference),
    builtin("TRANSPOSE", 1, 2, linear::transpose),
    builtin("TRANSFORM", 2, 3, linear::transform),
    builtin("ROTATE-MATRIX", 3, 5, angles::rotate_matrix),
    builtin("ROTATION-MATRIX", 2, 3, angles::rotation_matrix),
    builtin("ROTATION-ANGLE", 1, 1, angles::rotation_angle),
    builtin("RPY-MATRIX", 3, 3, angles::rpy_matrix),
    builtin("RPY-ANGLE", 1, 1, angles::rpy_angle),
    builtin("EULER-MATRIX", 3, 3, angles::euler_matrix),
    builtin("EULER-ANGLE", 1, 1, angles::euler_angle),
    builtin("LU-DECOMPOSE", 1, 2, lu::lu_decompose),
    builtin("LU-SOLVE", 3, 4, lu::lu_solve),
    builtin("LU-DETERMINANT", 2, 2, lu::lu_determinant),
    builtin("SIMULTANEOUS-EQUATION", 2, 2, lu::simultaneous_equation),
    builtin("INVERSE-MATRIX", 1, 2, lu::inverse_matrix),
    builtin("MATRIX-DETERMINANT", 1, 1, lu::matrix_determinant),
    builtin("PSEUDO-INVERSE", 1, 1, lu::pseudo_inverse),
];

/// Lists the functions that jskeus' Lisp files call and jskeus defines in C. They are in USER, as there.
pub(crate) const JSKEUS_BUILTINS: &[Builtin] = &[
    builtin("USER::ROTM3*", 2, 3, decompose::rotation_product),
    builtin("USER::LU-DECOMPOSE2", 1, 2, lu_in_place::lu_decompose2),
    builtin("USER::LU-SOLVE2", 3, 4, lu_in_place::lu_solve2),
    builtin("USER::SV-DECOMPOSE", 1, 1, decompose::sv_decompose),
    builtin("USER::SV-SOLVE", 2, 3, decompose::sv_solve),
    builtin("USER::QR-DECOMPOSE", 1, 1, decompose::qr_decompose),
    builtin("USER::QL-DECOMPOSE", 1, 1, decompose::ql_decompose),
    builtin("USER::PSEUDO-INVERSE2", 1, 2, decompose::pseudo_inverse2),
    builtin("USER::VMEAN", 1, 1, statistics::mean_of),
    builtin("USER::VARIANCE", 1, 1, statistics::variance),
    builtin("USER::COVARIANCE", 2, 2, statistics::covariance),
    builtin("USER::C-ISNAN", 1, 1, statistics::is_nan),
    builtin("USER::C-MATRIX-ROW", 2, 4, rows::copy_row),
    builtin("USER::C-COORDS-TRANSFORM-VECTOR", 4, 5, rows::transform_rows),
    builtin("USER::VECTOR-ARRAY-MEAN", 1, 2, rows::mean),
    builtin("USER::VECTOR-ARRAY-VARIANCE", 2, 3, rows::variance),
    builtin("USER::VECTOR-ARRAY-MAX-MIN", 1, 3, rows::extremes),
    builtin("USER::FVECTOR-REPLACE", 2, 6, rows::replace),
];
