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
    /// Programs do not get large pages because of this.
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

/// The result of a check: a row of the table, and an object of `--json`.
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
