//! Names the destination of the report.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The destination of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportTarget {
    /// Standard output, given as `-`.
    Stdout,
    /// A file with this absolute path.
    File(PathBuf),
}

impl ReportTarget {
    pub(crate) fn of(value: &OsStr) -> ReportTarget {
        let path = Path::new(value);
        // The program may change its directory.
        let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if value == "-" { ReportTarget::Stdout } else { ReportTarget::File(absolute()) }
    }
}
