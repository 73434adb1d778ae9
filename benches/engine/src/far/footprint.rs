//! Measures the far memory that a program touches, and reads the reports of runs.

use super::super::runner::{Ended, run_within};
use super::super::settings::Settings;
use super::super::temp_dir::TempDir;
use super::plan::FarPlan;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Local memory that suffices for every program, in bytes.
const EVERYTHING: u64 = 1 << 50;

/// A temporary file for reports, without pictures, which is removed when dropped.
#[derive(Debug)]
pub(super) struct Report {
    path: PathBuf,
    _folder: TempDir,
}

impl Report {
    pub(super) fn new() -> Result<Report, String> {
        let folder = TempDir::new()?;
        Ok(Report { path: folder.path().join("report"), _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and removes the report of the last run.
    pub(super) fn take(&self) -> Value {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let _ = std::fs::remove_file(&self.path);
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }
}

/// Returns the bytes of far memory that the program touches: its resident memory at the end, if no page was evicted.
/// Programs of far benches free no memory before.
pub(super) fn measure(
    plan: &FarPlan<'_>,
    settings: &Settings,
    words: &[OsString],
    report: &Report,
) -> Result<u64, String> {
    if let Some(mib) = plan.spec.far_mib {
        return Ok(scaled(mib << 20, plan.scale));
    }
    // The smallest page size is used, since larger transfers would count untouched neighbours.
    let options = plan.options(EVERYTHING, "4K", report.path());
    run_within(settings.command(plan.far, &options, words), plan.cap).map_err(|ended| match ended {
        Ended::Stopped => {
            format!("takes more than {} s with all memory local; give more with --cap", plan.cap.as_secs())
        }
        // A refusal by Largesse has its own advice.
        Ended::Failed(why) if why.contains("largesse: ") => why,
        Ended::Failed(why) => format!("{why}; needed: {}", plan.bench.needs),
    })?;
    of_report(&report.take()["far"])
}

fn of_report(far: &Value) -> Result<u64, String> {
    let bytes = far["resident_bytes"].as_u64().filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "uses no far memory: it has no block of 64 KiB or more".to_owned())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bytes of one machine, and the scale is at most 16"
)]
fn scaled(bytes: u64, scale: f64) -> u64 {
    (bytes as f64 * scale) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn resident_memory_at_the_end_was_touched() {
        assert_eq!(of_report(&json!({ "resident_bytes": 4096, "mapped_bytes": 8192 })), Ok(4096));
        for nothing in [json!({ "resident_bytes": 0 }), Value::Null] {
            assert!(of_report(&nothing).unwrap_err().contains("64 KiB"));
        }
    }

    #[test]
    fn reports_are_taken_once() {
        let report = Report::new().unwrap();
        std::fs::write(report.path(), r#"{"far":{"faults":3},"pid":1}"#).unwrap();
        assert_eq!(report.take()["far"], json!({ "faults": 3 }));
        assert_eq!(report.take(), Value::Null);
    }
}
