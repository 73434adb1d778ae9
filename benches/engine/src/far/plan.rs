//! Plans the rows, columns and contestants of a far bench.

use super::guard::Guard;
use crate::args::{AUTO, Args, MARKED, Peer};
use crate::engine::*;
use largesse_store::Mechanism;
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Least value of `--local`, in bytes, that `largesse run` accepts; `EVERYTHING` is enough for every program.
const LEAST_LOCAL: u64 = 1 << 20;
const EVERYTHING: u64 = 1 << 50;
/// Number of bytes of a control group that stay free, since a program does not need the same in each run.
const SPARE: u64 = 2 << 20;
/// Least size in bytes of the memory of transfers in flight, and greatest ones, for reads and for writes.
const LEAST_TRANSFERS: u64 = 512 << 10;
const MOST_TRANSFERS: [u64; 2] = [3 << 20, 2 << 20];
/// Shares of local memory, in per cent, with which Largesse runs if it is compared with peers, unless the user asks
/// for others.
const PEERS_LOCAL: [u8; 2] = [50, 25];

/// A row of the table: a page size of Largesse, or a peer. Serde's names are the JSON keys.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    PageSize(String),
    Peer(Peer),
}

impl Way {
    pub(super) fn name(&self) -> &str {
        match self {
            Way::PageSize(size) => size,
            Way::Peer(peer) => peer.name(),
        }
    }

    /// Returns whether this is a page size that the tuner does not change.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Way::PageSize(size) if ![AUTO, MARKED].contains(&&**size))
    }
}

/// A column of the table: the share of the program's data in per cent, the value of `--local` in bytes, and the limit
/// of the control group in bytes, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarColumn {
    pub(super) percent: u8,
    pub(super) local: u64,
    pub(super) limit: Option<u64>,
}

/// The memory of a program under Largesse, in bytes. `data` is the part that can be far; `own` is what a control group
/// is charged in addition, for the program and for Largesse, without the memory of transfers in flight. Without a
/// control group it is the resident memory beyond `data`, and no column uses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Footprint {
    pub(super) data: u64,
    pub(super) own: u64,
}

/// One bench of `largesse bench far`, and how it is run.
pub(super) struct FarPlan<'a> {
    pub(super) args: &'a Args,
    root: &'a Path,
    pub(super) bench: &'a Bench,
    settings: &'a Settings,
    /// The bench's definition, with the columns that the command line asks for.
    pub(super) spec: FarSpec,
    pub(super) ways: Vec<Way>,
    stock: &'a Setting,
    /// The setting to which the options of far memory are added.
    far: &'a Setting,
    /// Folder for the report and the trace of the last run.
    pub(super) folder: &'a Path,
    /// The guard that makes the control group and switches swap; `None` without peers.
    pub(super) guard: Option<&'a RefCell<Guard>>,
}

/// Returns the largest size in bytes of the memory of transfers in flight, which is needed in addition to at most `bytes`
/// bytes of local memory: a thirty-second of it for reads, and another one for writes, within bounds (`docs/design/pager.md`).
fn transfers(bytes: u64) -> u64 {
    MOST_TRANSFERS.iter().map(|&most| (bytes / 32).clamp(LEAST_TRANSFERS, most)).sum()
}

/// Returns the folder of a store in a file, or `None` for other stores.
pub(super) fn store_folder(store: &str) -> Option<PathBuf> {
    let path = std::path::absolute(store.strip_prefix("file:")?).ok()?;
    path.parent().map(Path::to_owned)
}

impl<'a> FarPlan<'a> {
    /// Plans the rows and columns that the command line asks for, or else those of the definition.
    pub(super) fn new(
        args: &'a Args,
        root: &'a Path,
        bench: &'a Bench,
        settings: &'a Settings,
        folder: &'a Path,
        guard: Option<&'a RefCell<Guard>>,
    ) -> Result<FarPlan<'a>> {
        let incomplete = |why: &str| format!("bench {} {why}", bench.name);
        let mut spec = bench.far.clone().ok_or_else(|| incomplete("has no [bench.far]"))?;
        let [stock, far] = settings.of(bench, false)?[..] else {
            return Err(incomplete("names no subject in `settings`"));
        };
        if args.peers.is_some() {
            (spec.page_sizes, spec.local_percent) = (vec![AUTO.to_owned()], PEERS_LOCAL.to_vec());
        }
        spec.local_percent = args.local.clone().unwrap_or(spec.local_percent);
        let sizes = args.page_sizes.clone().unwrap_or_else(|| spec.page_sizes.clone()).into_iter();
        let sizes = sizes.filter(|size| size != MARKED || !spec.marked.is_empty()).map(Way::PageSize);
        let ways = sizes.chain(args.peers.iter().flatten().copied().map(Way::Peer)).collect();
        Ok(FarPlan { args, root, bench, settings, spec, ways, stock, far, folder, guard })
    }

    /// Returns the number of MiB that must be available. A store in memory holds all data a second time.
    pub(super) fn needed_mib(&self) -> u64 {
        self.bench.needed_mib(self.args.scale) * if store_folder(self.args.store()).is_some() { 1 } else { 2 }
    }

    pub(super) fn cap(&self) -> Duration {
        Duration::from_secs(self.args.limit().into())
    }

    /// Returns the columns of the table for a program with this footprint, one for each share of local memory.
    pub(super) fn columns(&self, footprint: Footprint) -> Vec<FarColumn> {
        let column = |&percent: &u8| {
            let share = footprint.data * u64::from(percent) / 100;
            let limit = self.guard.map(|_| share);
            let other = limit.map_or(0, |limit| footprint.own + transfers(limit) + SPARE);
            let local = share.saturating_sub(other);
            FarColumn { percent, local, limit }
        };
        self.spec.local_percent.iter().map(column).collect()
    }

    /// Returns the command line of the program, with `more` arguments.
    fn words(&self, more: &[String]) -> Vec<OsString> {
        let mut words = self.bench.words(self.root, self.args.scale, self.args.times);
        words.extend(more.iter().map(OsString::from));
        words
    }

    /// Returns the command that runs the program without Largesse.
    pub(super) fn stock_command(&self) -> Command {
        self.settings.command(self.stock, &[], &[], &self.words(&[]))
    }

    fn contestant<'c>(
        &'c self,
        name: String,
        start: impl Fn() -> Result<Run, Ended> + 'c,
    ) -> Contestant<'c, Run> {
        let touched = move || {
            touch_mib(self.args.touch.unwrap_or(self.needed_mib()))?;
            start()
        };
        Contestant { needs: vec![0], ..Contestant::new(name, touched) }
    }

    pub(super) fn stock(&self, name: &str) -> Contestant<'_, Run> {
        self.contestant(name.into(), || run(self.stock_command(), self.cap()))
    }

    /// Makes the contestant of a cell. It has no result if the column has less local memory than Largesse can work
    /// with.
    pub(super) fn cell<'c>(&'c self, way: &'c Way, column: FarColumn, data: u64) -> Contestant<'c, Run> {
        let FarColumn { percent, local, limit } = column;
        let name = format!("{percent}% local, {}", way.name());
        let mut keys = merged(json!({ "setting": name, "local_percent": percent }), &json!(way));
        if let Some(limit) = limit {
            keys["limit_bytes"] = limit.into();
        }
        if let Way::PageSize(_) = way {
            keys["local_bytes"] = local.into();
        }
        let contestant = match way {
            Way::PageSize(_) if local < LEAST_LOCAL => Contestant::new(name, || Err(Ended::Absent)),
            Way::PageSize(size) => self.contestant(name, move || self.with_far(size, local, limit)),
            Way::Peer(peer) => self.contestant(name, move || {
                // All data and as much of the rest may leave.
                let swap = (*peer, data + (data >> 1) + (64 << 20));
                self.limited(self.stock_command(), limit, Some(swap))
            }),
        };
        Contestant { keys, ..contestant }
    }

    /// Runs the program in far memory. The counters of far memory in its report are added to the result.
    fn with_far(&self, size: &str, local: u64, limit: Option<u64>) -> Result<Run, Ended> {
        let (size, marks) = if size == MARKED { (AUTO, &self.spec.marked[..]) } else { (size, &[][..]) };
        let (local, report) = (local.to_string(), self.folder.join("report"));
        let mut options = vec!["--local", &local, "--far", self.args.store(), "--page-size", size];
        options.extend(self.args.fault_engine.iter().flat_map(|engine| ["--fault-engine", engine]));
        let mut options: Vec<OsString> = options.into_iter().map(OsString::from).collect();
        options.extend(["--report".into(), report.clone().into()]);
        // Of the two ranks one has the pages.
        let launcher = if self.args.store().starts_with("mpi:") { &["mpirun", "-n", "2"][..] } else { &[] };
        let command = self.settings.command(self.far, launcher, &options, &self.words(marks));
        let done = self.limited(command, limit, None);
        let text = std::fs::read_to_string(&report).unwrap_or_default();
        let _ = std::fs::remove_file(&report);
        let mut run = done?;
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        run.more.insert("far".into(), report["far"].clone());
        if report["tuned"].as_array().is_some_and(|cores| !cores.is_empty()) {
            run.more.insert("tuned".into(), report["tuned"].clone());
        }
        Ok(run)
    }

    /// Runs a command, in a control group with this limit in bytes if there is one.
    fn limited(&self, command: Command, limit: Option<u64>, swap: Option<(Peer, u64)>) -> Result<Run, Ended> {
        match self.guard.zip(limit) {
            Some((guard, limit)) => guard.borrow_mut().run(limit, swap, command, self.cap()),
            None => run(command, self.cap()),
        }
    }

    /// Runs the program with all memory local. Its data are the far memory that it touches, which is the resident far
    /// memory at the end if no page was evicted. Programs of far benches free no memory before, or else their
    /// definition has `far_mib`. With peers, the program runs in its control group, with a limit that is never reached.
    pub(super) fn footprint(&self) -> Result<Footprint> {
        let known = self.spec.far_mib.map(|mib| scaled(mib << 20, self.args.scale));
        if let Some(data) = known.filter(|_| self.guard.is_none()) {
            return Ok(Footprint { data, own: 0 });
        }
        touch_mib(self.args.touch.unwrap_or(self.needed_mib()))?;
        // The smallest page size is used, since larger transfers would count untouched neighbours.
        let limit = self.guard.map(|_| EVERYTHING);
        let run = self.with_far("4K", EVERYTHING, limit).map_err(|ended| match ended {
            Ended::Stopped => {
                format!("takes more than {} s with all memory local; give more with --cap", self.args.limit())
            }
            // A refusal by Largesse has its own advice.
            Ended::Failed(why) if !why.contains("largesse: ") => {
                format!("{why}; needed: {}", self.bench.needs)
            }
            ended => ended.to_string(),
        })?;
        let data = known.or(run.more["far"]["resident_bytes"].as_u64()).filter(|bytes| *bytes > 0);
        let data = data.ok_or("uses no far memory: it has no block of 64 KiB or more")?;
        let charged = run.more.get("group").and_then(|group| group["peak_bytes"].as_u64());
        // With io_uring the memory of all transfers is allocated at the start, so that the peak contains it.
        let in_rings =
            if run.more["far"]["mechanism"] == Mechanism::IoUring as u64 { transfers(EVERYTHING) } else { 0 };
        // The smaller of two upper bounds: the group is also charged for page cache that this run filled, and resident
        // memory has pages of libraries that other groups are charged for.
        let most = charged.map_or(run.peak.bytes(), |peak| peak.min(run.peak.bytes()));
        Ok(Footprint { data, own: most.saturating_sub(data + in_rings) })
    }
}
