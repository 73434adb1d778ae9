//! Defines kernels that take the shortest path for short vectors.

/// Defines a function that computes short vectors itself, and calls other functions for middle and long ones. So the
/// path for short vectors is small and saves no registers.
macro_rules! by_length {
    (
        $features:literal, fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty {
            if $is_short:expr => $short:expr,
            else $other:expr $(,)?
        }
    ) => {
        #[target_feature(enable = $features)]
        unsafe fn $name($($argument: $type),*) -> $result {
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn other($($argument: $type),*) -> $result {
                // SAFETY: the caller's promise, and this function's instruction set.
                unsafe { $other }
            }
            // SAFETY: as above.
            unsafe { if $is_short { $short } else { other($($argument),*) } }
        }
    };
    (
        $features:literal, fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty {
            if $is_short:expr => $short:expr,
            if $is_middle:expr => $middle:expr,
            else $long:expr $(,)?
        }
    ) => {
        by_length!($features, fn $name($($argument: $type),*) -> $result {
            if $is_short => $short,
            else {
                by_length!($features, fn not_short($($argument: $type),*) -> $result {
                    if $is_middle => $middle,
                    else $long
                });
                not_short($($argument),*)
            }
        });
    };
}
pub(super) use by_length;
