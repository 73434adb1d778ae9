//! The arena against a naive model.
