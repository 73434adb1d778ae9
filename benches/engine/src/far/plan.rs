//! Chooses the cells of a bench, and how each is run.

use super::super::definition::Bench;
use super::super::error::Error;
use super::super::settings::{Role, Setting, Settings};
use super::super::{Args, warm};
use super::spec::{AUTO, MARKED, Spec};
use super::{CAP, RUNS};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Least local memory that `largesse run --local` accepts, in bytes.
const LEAST_LOCAL: u64 = 1 << 20;

/// A bench and the way it is run.
#[derive(Debug)]
pub(super) struct FarPlan<'a> {
    pub(super) bench: &'a Bench,
    pub(super) spec: &'a Spec,
    pub(super) stock: &'a Setting,
    /// The setting to which the options of far memory are added.
    pub(super) far: &'a Setting,
    pub(super) runs: usize,
    pub(super) times: Option<u32>,
    pub(super) scale: f64,
    pub(super) cap: Duration,
    pub(super) store: String,
    /// Name of the fault engine; `None` leaves the library's choice.
    fault_engine: Option<&'a str>,
    touch_mib: Option<u64>,
}

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FarCell<'a> {
    pub(super) page_size: &'a str,
    pub(super) percent: u8,
    /// Local memory in bytes.
    pub(super) local: u64,
}

impl<'a> FarPlan<'a> {
    pub(super) fn of(bench: &'a Bench, settings: &'a Settings, args: &'a Args) -> Result<FarPlan<'a>, Error> {
        let chosen = settings.of(bench, false)?;
        let the = |role| chosen.iter().copied().find(|setting| setting.role == role);
        let incomplete = |why: &str| Error::Incomplete { bench: bench.name.clone(), why: why.to_owned() };
        Ok(FarPlan {
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

    /// Returns the number of runs: the footprint, then rounds of stock, stock again and every cell.
    pub(super) fn steps(&self) -> u64 {
        let cells = self.spec.local_percent.len() * self.spec.page_sizes.len();
        (1 + self.runs * (2 + cells)) as u64
    }

    /// Returns the cells of a program that touches `footprint` bytes, row by row; `None` where the local memory would
    /// be less than the minimum.
    pub(super) fn cells(&self, footprint: u64) -> Vec<Option<FarCell<'a>>> {
        let spec = self.spec;
        let row = |page_size: &'a String| {
            spec.local_percent.iter().map(move |&percent| {
                let local = footprint * u64::from(percent) / 100;
                (local >= LEAST_LOCAL).then_some(FarCell { page_size, percent, local })
            })
        };
        spec.page_sizes.iter().flat_map(row).collect()
    }

    /// Returns the options of `largesse run`.
    pub(super) fn options(&self, local: u64, page_size: &str, report: &Path) -> Vec<OsString> {
        let page_size = if page_size == MARKED { AUTO } else { page_size };
        let words =
            ["--local", &local.to_string(), "--far", &self.store, "--page-size", page_size, "--report"];
        let engine = self.fault_engine.into_iter().flat_map(|engine| ["--fault-engine", engine]);
        engine.chain(words).map(OsString::from).chain([report.into()]).collect()
    }

    /// Returns the MiB that must be available: a store in memory holds all data once more.
    pub(super) fn needed_mib(&self) -> u64 {
        let program = self.bench.needed_mib(self.scale);
        if self.store == "memory:" { 2 * program } else { program }
    }

    /// Touches and frees the same amount of memory before every run.
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
    struct CommandLine {
        #[command(flatten)]
        args: Args,
    }

    /// Gives `look` the plan of the shipped bench `name` with further `words` on the command line.
    pub(in super::super) fn with_plan<T>(
        name: &str,
        words: &[&str],
        look: impl FnOnce(&FarPlan<'_>) -> T,
    ) -> T {
        let bench = read_all(&shipped()).unwrap().into_iter().find(|bench| bench.name == name).unwrap();
        let settings = Settings::read(&shipped()).unwrap();
        let line = CommandLine::try_parse_from(["bench", "far"].iter().chain(words)).unwrap();
        let bench = super::super::varied(&bench, &line.args);
        look(&FarPlan::of(&bench, &settings, &line.args).unwrap())
    }

    #[test]
    fn cells_are_page_sizes_by_shares() {
        with_plan("bt", &[], |plan| {
            let cells = plan.cells(100 << 20);
            assert_eq!(cells.len(), 7 * 5);
            assert_eq!(cells[0], Some(FarCell { page_size: "4K", percent: 75, local: 75 << 20 }));
            assert_eq!(cells[29], Some(FarCell { page_size: "auto", percent: 5, local: 5 << 20 }));
            assert_eq!(plan.steps(), 1 + 3 * (2 + 35));
        });
    }

    #[test]
    fn options_choose_columns_rows_and_engine() {
        let words = ["--local", "50,5", "--page-sizes", "16K,auto,marked", "--fault-engine", "thread"];
        with_plan("bt", &words, |plan| {
            assert_eq!(plan.cells(100 << 20).len(), 2 * 3);
            let options = plan.options(50 << 20, MARKED, Path::new("/r"));
            let of = |name: &str| options[options.iter().position(|it| it == name).unwrap() + 1].clone();
            assert_eq!([of("--fault-engine"), of("--page-size")], ["thread", "auto"]);
        });
        // CG does not mark its compute core.
        with_plan("cg", &words, |plan| assert_eq!(plan.cells(100 << 20).len(), 2 * 2));
    }

    #[test]
    fn too_little_local_memory_is_no_cell() {
        with_plan("bt", &[], |plan| {
            let missing: Vec<_> = plan.cells(8 << 20)[..5].iter().map(Option::is_none).collect();
            assert_eq!(missing, [false, false, false, true, true]);
        });
    }

    #[test]
    fn stores_in_memory_need_it_twice() {
        let needed = |words: &[&str]| with_plan("bt", words, |plan| plan.needed_mib());
        assert_eq!(needed(&["--store", "memory:"]), 2 * needed(&["--store", "file:/var/tmp/x"]));
    }
}
