//! Whole programs under the library, and the layer test.
