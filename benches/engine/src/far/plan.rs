//! Which cells a bench has, and how each is run.

use super::super::definition::Bench;
use super::super::settings::{Role, Setting, Settings};
use super::super::trouble::Trouble;
use super::super::{Args, warm};
use super::spec::{AUTO, MARKED, Spec};
use super::{CAP, RUNS};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// `largesse run --local` takes no less.
const LEAST_LOCAL: u64 = 1 << 20;

/// A bench and how it will be run.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) bench: &'a Bench,
    pub(super) spec: &'a Spec,
    pub(super) stock: &'a Setting,
    /// The setting to which far memory's options are added.
    pub(super) far: &'a Setting,
    pub(super) runs: usize,
    pub(super) times: Option<u32>,
    pub(super) scale: f64,
    pub(super) cap: Duration,
    pub(super) store: String,
    /// `None`: the library's choice.
    fault_engine: Option<&'a str>,
    touch_mib: Option<u64>,
}

/// One place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell<'a> {
    pub(super) page_size: &'a str,
    pub(super) percent: u8,
    /// Bytes.
    pub(super) local: u64,
}

impl<'a> Plan<'a> {
    pub(super) fn of(bench: &'a Bench, settings: &'a Settings, args: &'a Args) -> Result<Plan<'a>, Trouble> {
        let chosen = settings.of(bench, false)?;
        let the = |role| chosen.iter().copied().find(|setting| setting.role == role);
        let incomplete = |why: &str| Trouble::Incomplete { bench: bench.name.clone(), why: why.to_owned() };
        Ok(Plan {
            bench,
            spec: bench.far.as_ref().ok_or_else(|| incomplete("has no [bench.far]"))?,
            stock: the(Role::Baseline).ok_or_else(|| incomplete("names no baseline in `settings`"))?,
            far: the(Role::Subject).ok_or_else(|| incomplete("names no subject in `settings`"))?,
            runs: args.runs.unwrap_or(RUNS) as usize,
            times: args.times,
            scale: args.scale,
            cap: Duration::from_secs(args.cap.unwrap_or(CAP).into()),
            store: args.store.clone().unwrap_or_else(|| "memory:".to_owned()),
            fault_engine: args.fault_engine.as_deref(),
            touch_mib: args.touch,
        })
    }

    /// Runs in all: the footprint, then rounds of stock, stock again and every cell.
    pub(super) fn steps(&self) -> u64 {
        let cells = self.spec.local_percent.len() * self.spec.page_sizes.len();
        (1 + self.runs * (2 + cells)) as u64
    }

    /// The cells of a program that touches `footprint` bytes, row by row; `None` where its local
    /// memory would be less than can be had.
    pub(super) fn cells(&self, footprint: u64) -> Vec<Option<Cell<'a>>> {
        let spec = self.spec;
        let row = |page_size: &'a String| {
            spec.local_percent.iter().map(move |&percent| {
                let local = footprint * u64::from(percent) / 100;
                (local >= LEAST_LOCAL).then_some(Cell { page_size, percent, local })
            })
        };
        spec.page_sizes.iter().flat_map(row).collect()
    }

    /// Options of `largesse run`.
    pub(super) fn options(&self, local: u64, page_size: &str, report: &Path) -> Vec<OsString> {
        let page_size = if page_size == MARKED { AUTO } else { page_size };
        let words =
            ["--local", &local.to_string(), "--far", &self.store, "--page-size", page_size, "--report"];
        let engine = self.fault_engine.into_iter().flat_map(|engine| ["--fault-engine", engine]);
        engine.chain(words).map(OsString::from).chain([report.into()]).collect()
    }

    /// MiB that must be free: a store in memory holds everything once more.
    pub(super) fn needed_mib(&self) -> u64 {
        let program = self.bench.needed_mib(self.scale);
        if self.store == "memory:" { 2 * program } else { program }
    }

    /// The same memory for everyone, whoever was first.
    pub(super) fn warm_up(&self) -> Result<(), String> {
        warm::touch_mib(self.touch_mib.unwrap_or_else(|| self.needed_mib()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::definition::{read_all, tests::shipped};
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// The plan of the shipped bench `name` with further `words` on the command line.
    pub(in super::super) fn with_plan<T>(name: &str, words: &[&str], look: impl FnOnce(&Plan<'_>) -> T) -> T {
        let bench = read_all(&shipped()).unwrap().into_iter().find(|bench| bench.name == name).unwrap();
        let settings = Settings::read(&shipped()).unwrap();
        let line = Line::try_parse_from(["bench", "far"].iter().chain(words)).unwrap();
        let bench = super::super::varied(&bench, &line.args);
        look(&Plan::of(&bench, &settings, &line.args).unwrap())
    }

    #[test]
    fn cells_are_rows_of_page_sizes_by_columns_of_shares() {
        with_plan("bt", &[], |plan| {
            let cells = plan.cells(100 << 20);
            assert_eq!(cells.len(), 7 * 5);
            assert_eq!(cells[0], Some(Cell { page_size: "4K", percent: 75, local: 75 << 20 }));
            assert_eq!(cells[29], Some(Cell { page_size: "auto", percent: 5, local: 5 << 20 }));
            assert_eq!(plan.steps(), 1 + 3 * (2 + 35));
        });
    }

    #[test]
    fn columns_rows_and_who_serves_are_as_asked() {
        let words = ["--local", "50,5", "--page-sizes", "16K,auto,marked", "--fault-engine", "thread"];
        with_plan("bt", &words, |plan| {
            assert_eq!(plan.cells(100 << 20).len(), 2 * 3);
            let options = plan.options(50 << 20, MARKED, Path::new("/r"));
            let of = |name: &str| options[options.iter().position(|it| it == name).unwrap() + 1].clone();
            assert_eq!([of("--fault-engine"), of("--page-size")], ["thread", "auto"]);
        });
        // It marks nothing.
        with_plan("cg", &words, |plan| assert_eq!(plan.cells(100 << 20).len(), 2 * 2));
    }

    #[test]
    fn less_than_can_be_had_is_no_cell() {
        with_plan("bt", &[], |plan| {
            let missing: Vec<_> = plan.cells(8 << 20)[..5].iter().map(Option::is_none).collect();
            assert_eq!(missing, [false, false, false, true, true]);
        });
    }

    #[test]
    fn a_store_in_memory_needs_the_memory_twice() {
        let needed = |words: &[&str]| with_plan("bt", words, |plan| plan.needed_mib());
        assert_eq!(needed(&["--store", "memory:"]), 2 * needed(&["--store", "file:/var/tmp/x"]));
    }
}
