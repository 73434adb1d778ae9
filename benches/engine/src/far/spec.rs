//! Reads the parameters that a far comparison varies, as data of its definition.

use serde::Deserialize;

/// The table `[bench.far]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Spec {
    /// Columns: local memory in per cent of the footprint.
    pub(super) local_percent: Vec<u8>,
    /// Rows: arguments of `--page-size`; `auto` is compared with the others. `marked` is `auto` for a program that
    /// marks its compute core.
    pub(super) page_sizes: Vec<String>,
    /// Arguments that make the program mark its core.
    #[serde(default)]
    pub(super) marked: Vec<String>,
    /// MiB that the program touches at scale 1; without it the footprint is measured.
    pub(super) far_mib: Option<u64>,
    /// A published table to print next to the measured one.
    pub(super) published: Option<Published>,
}

/// A table that others have published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) title: String,
    /// Denominator of the ratios.
    pub(super) baseline_seconds: f64,
    pub(super) local_percent: Vec<u8>,
    /// Rows by page size, with one number for each share.
    #[serde(rename = "row")]
    pub(super) rows: Vec<PublishedRow>,
}

/// One row of a published table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedRow {
    pub(super) page_size: String,
    pub(super) seconds: Vec<f64>,
}

/// Page size that the library's tuner chooses.
pub(super) const AUTO: &str = "auto";
/// Page size that the tuner chooses with the program's marks.
pub(super) const MARKED: &str = "marked";

#[cfg(test)]
mod tests {
    use super::super::super::definition::{read_all, tests::shipped};
    use super::*;

    #[test]
    fn shipped_far_benches_are_complete() {
        let benches: Vec<_> =
            read_all(&shipped()).unwrap().into_iter().filter(|bench| bench.far.is_some()).collect();
        assert_eq!(benches.len(), 9);
        for bench in benches {
            let far = bench.far.unwrap();
            let program = shipped().join("programs/c/far").join(format!("{}.c", bench.args[0]));
            let text = std::fs::read_to_string(program).unwrap();
            assert_eq!(bench.tests.len(), 1, "{}: one table", bench.name);
            assert!(text.contains(&format!("result(\"{}\"", bench.tests[0].name)), "{}", bench.name);
            assert!(far.local_percent.iter().all(|percent| (1..=100).contains(percent)), "{}", bench.name);
            assert!(far.page_sizes.iter().any(|size| size == AUTO), "{}", bench.name);
            let marks = far.page_sizes.iter().any(|size| size == MARKED);
            assert_eq!(marks, !far.marked.is_empty(), "{}", bench.name);
            for row in far.published.iter().flat_map(|published| &published.rows) {
                let columns = far.published.as_ref().map(|published| published.local_percent.len());
                assert_eq!(Some(row.seconds.len()), columns, "{} {}", bench.name, row.page_size);
                assert!(far.page_sizes.contains(&row.page_size), "{} {}", bench.name, row.page_size);
            }
        }
    }
}
