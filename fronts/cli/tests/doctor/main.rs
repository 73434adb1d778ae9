//! Tests of `largesse doctor` on saved machines, on changed copies of them, and on this machine.
#![expect(clippy::disallowed_macros, reason = "a test that is skipped says so")]

mod changes;
mod findings;
mod live;
mod machine;
