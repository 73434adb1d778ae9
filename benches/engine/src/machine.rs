//! Describes where and when a comparison was run.

use super::options;
use serde::Serialize;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// The facts in the line above every table.
#[derive(Debug, Serialize)]
pub(super) struct MachineFacts {
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    /// Selected word of `transparent_hugepage/enabled`.
    thp: String,
    version: &'static str,
    /// Commit of the checkout that holds the benches, if any.
    commit: Option<String>,
    date: String,
    /// `LARGESSE_*` variables, which change the measurements.
    settings: Vec<String>,
}

impl MachineFacts {
    pub(super) fn here(benches: &Path) -> MachineFacts {
        let processors = read("/proc/cpuinfo");
        let thp = read("/sys/kernel/mm/transparent_hugepage/enabled");
        MachineFacts {
            processor: field(&processors, "model name").unwrap_or(std::env::consts::ARCH).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_mib(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            thp: thp.split(['[', ']']).nth(1).unwrap_or("none").to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(benches),
            date: date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
            settings: options::ours(),
        }
    }

    /// Returns the facts as one line.
    pub(super) fn line(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default();
        let settings = if self.settings.is_empty() {
            String::new()
        } else {
            format!("; in the environment: {}", self.settings.join(" "))
        };
        format!(
            "{}, {} cores, {} MiB, Linux {}, THP {}; largesse {}{commit}; {}{settings}",
            self.processor, self.cores, self.memory_mib, self.kernel, self.thp, self.version, self.date
        )
    }
}

/// Returns the MiB of memory that can be allocated now without reclaim or swapping.
pub(super) fn available_mib() -> u64 {
    largesse_store::available() >> 20
}

fn memory_mib() -> u64 {
    let text = read("/proc/meminfo");
    let kib = field(&text, "MemTotal").and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns the value after the first occurrence of `name` and a colon.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn commit(folder: &Path) -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--exclude=*"];
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Formats a Unix time as year, month, day and minute in UTC. Days are counted from 1 March, so that leap days come
/// last in a year.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400 + 719_468, seconds % 86_400 / 60);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_278_633_660), "2010-07-09 00:01 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "MemTotal: 1 kB\nMem: 2 kB\nmodel name\t: Some CPU: fast\n";
        assert_eq!(field(text, "Mem"), Some("2 kB"));
        assert_eq!(field(text, "model name"), Some("Some CPU: fast"));
        assert_eq!(field(text, "Me"), None);
    }
}
