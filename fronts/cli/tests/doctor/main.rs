//! `largesse doctor` on saved machines, on changed copies of them, and on the one we run on.

mod changes;
mod findings;
mod live;
mod machine;
