//! Formats findings as a table: one line for what is fine, several lines for advice and problems.

use super::finding::{Finding, Status, Subject};
use super::machine::MachineFacts;
use largesse_terminal::say::counted;
use largesse_terminal::size;
use largesse_terminal::table::folded as fold;

/// Minimum width in columns; narrower lines would hold single words.
const NARROWEST: usize = 40;
const WIDEST: usize = 110;
/// Number of columns of the status, with two spaces before and after it.
const STATUS: usize = 11;
const LABEL: usize = 9;

/// Returns the whole table, with a summary at the end.
pub(crate) fn table(machine: &MachineFacts, findings: &[Finding], columns: usize, colour: bool) -> String {
    let page = Page { width: columns.clamp(NARROWEST, WIDEST), colour };
    let name = findings.iter().map(|finding| finding.id.len()).max().unwrap_or(0) + 2;
    let mut text = page.heading(machine);
    let mut subject: Option<Subject> = None;
    for finding in findings {
        if subject != Some(finding.subject) {
            text += &format!("\n{}\n", page.paint(BOLD, finding.subject.heading()));
            subject = Some(finding.subject);
        }
        text += &page.finding(finding, name);
    }
    text + "\n" + &page.summary(findings)
}

const BOLD: &str = "1";
const DIM: &str = "2";

fn style(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Ok => ("32", "ok"),
        Status::Info => ("36", "info"),
        Status::Advice => ("33", "advice"),
        Status::Problem => ("1;31", "PROBLEM"),
    }
}

/// Returns the count and the noun as [`counted`] does, or a text such as `nodes not known`.
fn known(count: Option<usize>, noun: &str) -> String {
    count.map_or_else(|| format!("{noun}s not known"), |count| counted(count as u64, noun))
}

struct Page {
    width: usize,
    colour: bool,
}

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn heading(&self, machine: &MachineFacts) -> String {
        let facts = [
            if machine.kernel.is_empty() {
                "kernel not known".to_owned()
            } else {
                format!("Linux {}", machine.kernel)
            },
            if machine.memory == 0 { "memory not known".to_owned() } else { size(machine.memory) },
            known(machine.processors, "processor"),
            known(machine.nodes, "node"),
            if machine.is_root() { "as root".to_owned() } else { format!("as user {}", machine.user) },
        ];
        format!("{}  {}\n", self.paint(BOLD, "largesse doctor"), self.paint(DIM, &facts.join(" · ")))
    }

    fn finding(&self, finding: &Finding, name: usize) -> String {
        let (code, word) = style(finding.status);
        let status = self.paint(code, &format!("{word:<7}"));
        let margin = STATUS + name;
        let mut text = format!("  {status}  {:<name$}", finding.id);
        let label = |label: &str| self.paint(DIM, &format!("{:margin$}{label:<LABEL$}", ""));
        if finding.status <= Status::Info {
            text += &self.line(&finding.now, finding.why.as_deref(), margin);
            if let Some(command) = &finding.command {
                text += &self.command(margin, "$ ", command, DIM);
            }
            return text;
        }
        text += &self.folded(&finding.now, margin);
        for (name, value) in [("wanted", &finding.wanted), ("why", &finding.why)] {
            let Some(value) = value else { continue };
            text += &label(name);
            text += &self.folded(value, margin + LABEL);
        }
        if let Some(command) = &finding.command {
            text += &self.command(margin, &format!("{:<LABEL$}", "type"), command, BOLD);
        }
        text
    }

    /// Returns a command after its label. It is never folded, so that it can be copied: if it does not fit, its remark
    /// moves to the next line, and then the command moves to the left.
    fn command(&self, margin: usize, label: &str, command: &str, code: &str) -> String {
        let (line, remark) = command.split_once("   # ").unwrap_or((command, ""));
        let room = self.width.saturating_sub(margin + label.chars().count());
        let label = self.paint(DIM, label);
        if command.chars().count() <= room {
            return format!("{:margin$}{label}{}\n", "", self.paint(code, command));
        }
        let margin = if line.chars().count() <= room { margin } else { 4 };
        let mut text = format!("{:margin$}{label}{}\n", "", self.paint(code, line));
        if !remark.is_empty() {
            text += &format!("{:margin$}{}\n", "", self.paint(DIM, &format!("# {remark}")));
        }
        text
    }

    /// Returns the present value, followed in faint print by the reason why it matters.
    fn line(&self, now: &str, why: Option<&str>, margin: usize) -> String {
        let Some(why) = why else { return self.folded(now, margin) };
        let width = self.width.saturating_sub(margin);
        let both = format!("{now} · {why}");
        if both.chars().count() <= width {
            return format!("{now} · {}\n", self.paint(DIM, why));
        }
        let faint =
            fold(why, width).into_iter().map(|line| format!("{:margin$}{}\n", "", self.paint(DIM, &line)));
        self.folded(now, margin) + &faint.collect::<String>()
    }

    /// Returns text folded to begin at column `margin`; its first line continues the current one.
    fn folded(&self, text: &str, margin: usize) -> String {
        fold(text, self.width.saturating_sub(margin)).join(&format!("\n{:margin$}", "")) + "\n"
    }

    fn summary(&self, findings: &[Finding]) -> String {
        let count = |status| findings.iter().filter(|finding| finding.status == status).count();
        let (problems, advice) = (count(Status::Problem), count(Status::Advice));
        let verdict = match (problems, advice) {
            (0, 0) => self.paint("1;32", "Programs get large pages here."),
            (0, _) => self.paint("1;32", "Programs get large pages here; some options ask for more."),
            _ => self.paint("1;31", "Something keeps programs from getting large pages."),
        };
        let nouns = [
            (problems, "problem"),
            (advice, "advice"),
            (count(Status::Info), "info"),
            (count(Status::Ok), "ok"),
        ];
        let counts: Vec<String> = nouns
            .iter()
            .map(|(count, noun)| match *noun {
                "problem" => counted(*count as u64, noun),
                _ => format!("{count} {noun}"),
            })
            .collect();
        let counts = counts.join(", ");
        // Escape sequences take no columns.
        let shown =
            verdict.chars().count() - if self.colour { self.paint("1;32", "").chars().count() } else { 0 };
        let between = if shown + 2 + counts.len() <= self.width { "  " } else { "\n" };
        format!("{verdict}{between}{counts}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fold_at_spaces() {
        assert_eq!(fold("a bc d", 4), ["a bc", "d"]);
        assert_eq!(fold("longer-than-that x", 4), ["longer-than-that", "x"]);
        assert_eq!(fold("", 4), [""; 0]);
    }

    #[test]
    fn plain_output_has_no_escapes() {
        let finding = Finding::new(Subject::Limits, Status::Advice, "memlock", "8 MiB").command("type this");
        let page = |colour| Page { width: 60, colour };
        assert!(!page(false).finding(&finding, 10).contains('\x1b'));
        assert!(page(true).finding(&finding, 10).contains('\x1b'));
    }
}
