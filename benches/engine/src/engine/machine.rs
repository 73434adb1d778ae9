//! Describes where and when a comparison was run, and touches its memory.
//!
//! Memory is touched and freed before each run, so that no run pays for pages that a virtual machine does not have
//! yet. A hypervisor with free page reporting takes free 2 MiB pages back after two seconds, and the next touch of
//! such a page takes twenty times longer. A program that prepares its input for seconds would pay for this, too;
//! therefore every program runs [`touch_command`] right before it starts the clock.

use super::Result;
use crate::args::TOUCH;
use largesse_pages::{MapError, PageKind, Reserved, SPAN, base_page};
use largesse_terminal::say::counted;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The facts about the machine and the moment of a comparison that are in the line above every table.
#[derive(Debug, Serialize)]
pub(crate) struct MachineFacts {
    processor: String,
    /// Number of processors that this process may use.
    processors: usize,
    /// `processors` under its former name in JSON, which stays for one release.
    cores: usize,
    memory_mib: u64,
    kernel: String,
    thp: String,
    version: &'static str,
    /// Commit of the checkout that holds the benches, if there is one.
    commit: Option<String>,
    date: String,
    /// The variables `LARGESSE_*` in the environment, which change the measurements.
    settings: Vec<String>,
}

impl MachineFacts {
    pub(crate) fn here(benches: &Path) -> MachineFacts {
        let processor = field("/proc/cpuinfo", "model name", ':');
        let memory = field("/proc/meminfo", "MemTotal", ':');
        let kib = memory.and_then(|it| it.split(' ').next()?.parse::<u64>().ok());
        let text = |(name, value): (OsString, OsString)| {
            largesse_terminal::line(format!("{}={}", name.display(), value.display()))
        };
        let mut settings: Vec<_> =
            std::env::vars_os().map(text).filter(|line| line.starts_with("LARGESSE_")).collect();
        settings.sort();
        let thp = read("/sys/kernel/mm/transparent_hugepage/enabled");
        let git = ["-C", &benches.to_string_lossy(), "describe", "--always", "--dirty", "--exclude=*"];
        MachineFacts {
            processor: processor.unwrap_or_else(|| std::env::consts::ARCH.into()),
            processors: processors(),
            cores: processors(),
            memory_mib: kib.unwrap_or(0) / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            thp: thp.split(['[', ']']).nth(1).unwrap_or("none").to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            commit: printed("git", &git),
            date: printed("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default(),
            settings,
        }
    }

    /// Returns these facts as one line of text.
    pub(crate) fn line(&self) -> String {
        let MachineFacts { processor, processors, memory_mib, kernel, thp, version, date, .. } = self;
        let commit = self.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default();
        let processors = counted(*processors as u64, "processor");
        let machine = format!("{processor}, {processors}, {memory_mib} MiB, Linux {kernel}, THP {thp}");
        let mut line = format!("{machine}; largesse {version}{commit}; {date}");
        if !self.settings.is_empty() {
            line += &format!("; in the environment: {}", self.settings.join(" "));
        }
        line
    }
}

/// Returns the number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of MiB of memory that can be allocated now without reclaim or swapping.
pub(crate) fn available_mib() -> u64 {
    largesse_store::available() >> 20
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns the text after `name` and the separator, from the first line of the file that has them.
pub(crate) fn field(path: impl AsRef<Path>, name: &str, separator: char) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Returns the output of `program` without the newline, or `None` if it fails or prints nothing.
pub(crate) fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Environment variable with the command line that a program must run right before it starts its clock.
pub(crate) const TOUCH_VARIABLE: &str = "LARGESSE_BENCH_TOUCH";

/// Returns a shell command that touches and frees `mib` MiB, without the allocator of the setting that is measured.
pub(crate) fn touch_command(mib: u64) -> String {
    let own = largesse_terminal::own::path().unwrap_or_else(|_| "largesse-bench".into());
    let own = own.display().to_string().replace('\'', r"'\''");
    format!("env -u LD_PRELOAD -u GLIBC_TUNABLES '{own}' {TOUCH} --touch {mib}")
}

/// Touches and frees `mib` MiB, and at most half of the available memory.
pub(crate) fn touch_mib(mib: u64) -> Result<()> {
    let mib = mib.min(available_mib() / 2);
    let bytes = usize::try_from(mib << 20).unwrap_or(0);
    let touched = if bytes == 0 { Ok(()) } else { written(bytes.next_multiple_of(SPAN)).map(drop) };
    touched.map_err(|error| format!("{mib} MiB could not be touched before the run: {error:?}"))
}

/// Allocates `len` bytes, a multiple of [`SPAN`], on large pages where possible. It writes to every page, because
/// pages that were never written share one page of zeros.
pub(crate) fn written(len: usize) -> Result<Reserved, MapError> {
    let range = Reserved::new(len, SPAN)?;
    range.commit(0, len, PageKind::Thp)?;
    for offset in (0..len).step_by(base_page()) {
        // SAFETY: `offset` is below the length of a range that was just committed, and no other code has its address.
        unsafe { range.start().add(offset).write_volatile(0) };
    }
    Ok(range)
}
