//! A finding: the checked item, its present value, the wanted value, the reason, and what to type.

use largesse_machine::Unread;
use serde::Serialize;

/// The severity of a finding, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Ok,
    Info,
    Advice,
    /// The finding keeps programs from getting large pages.
    Problem,
}

/// The heading under which a finding is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Machine,
    Transparent,
    Hugetlb,
    Limits,
    Container,
    Far,
}

impl Subject {
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Subject::Machine => "Machine",
            Subject::Transparent => "Transparent huge pages",
            Subject::Hugetlb => "hugetlb pools",
            Subject::Limits => "Limits",
            Subject::Container => "Container and system calls",
            Subject::Far => "Far memory",
        }
    }
}

/// A row of the table, and an object of `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    #[serde(skip)]
    pub(crate) subject: Subject,
    pub(crate) id: String,
    pub(crate) status: Status,
    pub(crate) now: String,
    pub(crate) wanted: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) command: Option<String>,
}

impl Finding {
    pub(crate) fn new(
        subject: Subject,
        status: Status,
        id: impl Into<String>,
        now: impl Into<String>,
    ) -> Self {
        let (id, now) = (id.into(), now.into());
        Finding { subject, id, status, now, wanted: None, why: None, command: None }
    }

    /// Returns a finding whose value is unknown since a file cannot be read.
    pub(crate) fn unread(subject: Subject, id: impl Into<String>, unread: &Unread) -> Self {
        Finding::new(subject, Status::Info, id, "not known").why(unread.to_string())
    }

    pub(crate) fn wanted(mut self, wanted: impl Into<String>) -> Self {
        self.wanted = Some(wanted.into());
        self
    }

    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// Formats bytes with one decimal at most, such as `23.5 GiB` or `64 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let text = format!("{scaled:.1}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_one_decimal() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(64 << 10), "64 KiB");
        assert_eq!(size((1 << 20) - 1), "1 MiB");
        assert_eq!(size(24_684_096 << 10), "23.5 GiB");
        assert_eq!(size(u64::MAX), "16 EiB");
    }
}
