//! Draws the time line of a report, and writes the picture without replacing foreign files.

use largesse_plot::Moment;
use serde_json::Value;
use std::borrow::Borrow;
use std::io;
use std::path::Path;

/// Marks a picture as one that this command may replace.
const MARK: &str = "<!-- drawn by largesse -->";
/// The mark of earlier pictures. XML forbids its two hyphens inside a comment, so that viewers refused them.
const FORMER_MARK: &str = "<!-- drawn by largesse run --report -->";

/// The reason why a report has no picture, as the rest of a sentence that begins with the file's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPicture {
    /// The file lacks the keys of a report.
    #[error("is not a report")]
    NotAReport,
    /// The program had no far memory.
    #[error("is the report of a program without far memory")]
    NoFarMemory,
    /// The program ended, by `signal` if that is known, without writing its time line.
    #[error("has no time line, which a program writes when it calls `exit`; this one {}", ending(.signal.as_deref()))]
    NoTimeline { signal: Option<String> },
    /// The drawing library failed with this message.
    #[error("could not be drawn: {0}")]
    NotDrawn(String),
}

/// Says how a program without a time line ended.
fn ending(signal: Option<&str>) -> String {
    signal.map_or_else(
        || "did not".to_owned(),
        |signal| format!("was ended by {}", largesse_text::line(signal)),
    )
}

/// Returns the picture of a report, as SVG.
pub(crate) fn of(report: &Value) -> Result<String, NoPicture> {
    of_rows(report, rows(report))
}

/// Returns the picture of a report whose time line has these intervals, as SVG.
pub(crate) fn of_rows(
    report: &Value,
    rows: Option<impl Iterator<Item = impl Borrow<Value>>>,
) -> Result<String, NoPicture> {
    let (title, moments) = timeline_of(report, rows)?;
    let svg = largesse_plot::svg(&title, &moments).map_err(NoPicture::NotDrawn)?;
    Ok(format!("{}\n{MARK}\n", svg.trim_end()))
}

/// Returns the command of a report, without control characters, and its time line.
pub(crate) fn timeline(report: &Value) -> Result<(String, Vec<Moment>), NoPicture> {
    timeline_of(report, rows(report))
}

fn rows(report: &Value) -> Option<impl Iterator<Item = &Value>> {
    report["timeline"].as_array().map(|rows| rows.iter())
}

fn timeline_of(
    report: &Value,
    rows: Option<impl Iterator<Item = impl Borrow<Value>>>,
) -> Result<(String, Vec<Moment>), NoPicture> {
    if !report["launched_pid"].is_u64() || !report["processes"].is_array() {
        return Err(NoPicture::NotAReport);
    }
    let Some(intervals) = rows else {
        let signal = report["signal"].as_str().map(str::to_owned);
        let far = report["far"].is_object();
        return Err(if far { NoPicture::NoTimeline { signal } } else { NoPicture::NoFarMemory });
    };
    let command: Vec<&str> =
        report["command"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    Ok((largesse_text::line(command.join(" ")), moments(intervals)))
}

/// Returns the moments at the ends of the intervals, after one at the start of the first interval. At that start far
/// memory was empty; its limit and transfer unit are taken from the interval's end.
fn moments(intervals: impl Iterator<Item = impl Borrow<Value>>) -> Vec<Moment> {
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
    let mut moments: Vec<Moment> = Vec::new();
    for row in intervals {
        let row = row.borrow();
        let now = Moment {
            seconds: row["seconds"].as_f64().unwrap_or(f64::NAN),
            set: number(row, "set_bytes"),
            least_set: number(row, "least_set_bytes"),
            most_set: number(row, "most_set_bytes"),
            local: number(row, "local_bytes"),
            resident: number(row, "resident_bytes"),
            stored: number(row, "stored_bytes"),
            ..Moment::default()
        };
        let beginning = Moment { seconds: 0.0, resident: 0, stored: 0, ..now };
        let before = *moments.last().unwrap_or(&beginning);
        if moments.is_empty() {
            moments.push(before);
        }
        // Intervals hold increments, moments hold totals.
        moments.push(Moment {
            swapped_in: before.swapped_in.wrapping_add(number(row, "bytes_in")),
            faults: before.faults.wrapping_add(number(row, "faults")),
            written: before.written.wrapping_add(number(row, "bytes_out")),
            ..now
        });
    }
    moments
}

/// The reason why a picture was not written, as the rest of a sentence that begins with the file's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotWritten {
    /// The user did not name this file, and this command did not draw it.
    #[error("is there already and not a picture of Largesse's: no picture was drawn")]
    Foreign,
    /// The system refused to write the file.
    #[error("cannot be written: {0}")]
    Refused(io::Error),
}

/// Writes a picture to the file that the user named.
pub(crate) fn write(path: &Path, picture: &str) -> Result<(), NotWritten> {
    std::fs::write(path, picture).map_err(NotWritten::Refused)
}

/// Writes a picture to a file that the user did not name, unless the file exists and this command did not draw it.
pub(crate) fn write_unnamed(path: &Path, picture: &str) -> Result<(), NotWritten> {
    let is_ours =
        || std::fs::read_to_string(path).is_ok_and(|text| text.contains(MARK) || text.contains(FORMER_MARK));
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() || !is_ours() => Err(NotWritten::Foreign),
        _ => write(path, picture),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marked_picture_is_xml() {
        let report = json!({ "launched_pid": 1, "processes": [], "timeline": [], "command": ["a --b"] });
        let picture = of(&report).unwrap();
        let comments: Vec<&str> = picture.split("<!--").skip(1).collect();
        assert!(picture.ends_with(&format!("{MARK}\n")) && !comments.is_empty());
        for comment in comments {
            assert!(!comment.split_once("-->").unwrap().0.contains("--"), "{comment}");
        }
    }

    #[test]
    fn moments_are_totals_from_zero() {
        let row = |seconds: f64, faults: u64| {
            json!({ "seconds": seconds, "faults": faults, "bytes_in": 4096, "bytes_out": 1, "set_bytes": 65536,
                    "local_bytes": 1 << 20, "resident_bytes": 4096, "stored_bytes": 8192 })
        };
        let moments = moments([row(0.5, 3), row(1.0, 4)].iter());
        let seen: Vec<_> =
            moments.iter().map(|it| (it.seconds, it.faults, it.swapped_in, it.written)).collect();
        assert_eq!(seen, [(0.0, 0, 0, 0), (0.5, 3, 4096, 1), (1.0, 7, 8192, 2)]);
        assert_eq!((moments[0].set, moments[0].local), (65536, 1 << 20));
        assert_eq!((moments[0].resident, moments[0].stored), (0, 0));
        assert_eq!((moments[2].resident, moments[2].stored), (4096, 8192));
    }

    #[test]
    fn absurd_reports_do_not_panic() {
        for row in [
            json!(null),
            json!({ "seconds": 1e300, "faults": u64::MAX, "bytes_in": -1 }),
            json!({ "seconds": -5.0, "local_bytes": "much" }),
            json!({ "seconds": 1e-300, "set_bytes": u64::MAX, "stored_bytes": u64::MAX }),
        ] {
            for rows in [vec![], vec![row.clone()], vec![row.clone(), json!({ "seconds": 1.0 }), row.clone()]]
            {
                let report = json!({ "launched_pid": 1, "processes": [], "far": {}, "timeline": rows });
                assert!(of(&report).is_ok_and(|svg| svg.contains("</svg>")), "{report}");
            }
        }
    }
}
