//! Plans the contestants of `largesse bench far`, and runs them.
//!
//! Rows are page sizes and the kernel's own ways to keep memory elsewhere (peers), columns are shares of local memory;
//! contestants are stock, stock again, and every cell. With peers, each program runs in a control group whose limit is
//! the column's share of its data.
//! # Invariants
//! 1. An answer that differs from stock's in a bit has no time.
//! 2. A run that was stopped has a lower bound, and counts as neither wrong nor measured.

use super::device;
use super::least::{self, Trace};
use super::moved;
use super::rows::{AUTO, FarColumn, Way};
use super::swap::Guard;
use super::table::FarTable;
use crate::args::{Args, MARKED};
use crate::engine::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Least local memory that `largesse run --local` accepts, in bytes, and enough for every program.
const LEAST_LOCAL: u64 = 1 << 20;
const EVERYTHING: u64 = 1 << 50;
/// Bytes that a process needs in addition to `--local` and to its own resident memory: page tables and the like, which
/// only the group counts.
const ADDITION: u64 = 4 << 20;
/// Shares of local memory, in per cent, and the store that are compared with peers, unless others are asked for.
const PEERS_LOCAL: [u8; 2] = [50, 25];
const PEERS_STORE: &str = "file:/var/tmp/largesse-bench.far";

/// A bench and the way it is run.
struct FarPlan<'a> {
    args: &'a Args,
    bench: &'a Bench,
    settings: &'a Settings,
    /// The definition's, with the columns of the command line.
    spec: FarSpec,
    ways: Vec<Way>,
    stock: &'a Setting,
    /// The setting to which the options of far memory are added.
    far: &'a Setting,
    root: &'a Path,
    /// Folder of the last run's report and trace.
    folder: &'a Path,
    /// Makes the control group and switches swap; none without peers.
    guard: Option<&'a RefCell<Guard>>,
    /// The library that records traces, if the least is asked for.
    recorder: Option<&'a Path>,
}

/// The memory of a program under Largesse: its data, which can be far, and the rest with Largesse's own, in bytes.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    data: u64,
    own: u64,
}

/// Runs the chosen benches. Returns whether everything ran and every answer agrees.
pub(crate) fn compare(args: &Args, root: &Path, benches: &[Bench], settings: &Settings) -> Result<bool> {
    let (folder, mut plans) = (temp_dir()?, Vec::new());
    let peers = args.peers.as_deref().unwrap_or_default();
    let files = store_folder(store(args));
    let guard = match (&files, peers) {
        (_, []) => None,
        (Some(folder), _) => Some(Guard::start(peers, folder)?),
        (None, _) => {
            let store = store(args);
            return Err(format!("{store} may be in this machine's memory: --peers needs --store file:PATH"));
        }
    };
    let recorder = args.least.then(|| least::recorder(root, folder.path())).transpose()?;
    for bench in benches {
        let incomplete = |why: &str| format!("bench {} {why}", bench.name);
        let mut spec = bench.far.clone().ok_or_else(|| incomplete("has no [bench.far]"))?;
        let usual = if peers.is_empty() { spec.page_sizes.clone() } else { vec![AUTO.to_owned()] };
        let mut sizes = args.page_sizes.clone().unwrap_or(usual);
        sizes.retain(|size| size != MARKED || !spec.marked.is_empty());
        let ways = sizes.into_iter().map(Way::Pages).chain(peers.iter().copied().map(Way::Peer)).collect();
        if !peers.is_empty() {
            spec.local_percent = PEERS_LOCAL.to_vec();
        }
        spec.local_percent = args.local.clone().unwrap_or(spec.local_percent);
        let [stock, far] = settings.of(bench, false)?[..] else {
            return Err(incomplete("names no subject in `settings`"));
        };
        let (folder, guard, recorder) = (folder.path(), guard.as_ref(), recorder.as_deref());
        plans.push(FarPlan { args, bench, settings, spec, ways, stock, far, root, folder, guard, recorder });
    }
    let cells = plans.iter().map(|plan| plan.spec.local_percent.len() * plan.ways.len());
    let steps = cells.map(|cells| 1 + args.rounds() as usize * (2 + cells)).sum();
    let mut session = Session::begin(args, root, args.scale, steps);
    plans.iter().for_each(|plan| plan.measure(&mut session));
    let mut legend = String::new();
    if session.compared > 0 {
        legend += include_str!("../legends/far.txt");
        legend += if args.least { include_str!("../legends/far-least.txt") } else { "" };
        if let Some(folder) = files.filter(|_| guard.is_some()) {
            legend += include_str!("../legends/far-peers.txt");
            session.progress.at("the device".into());
            session.show(&device::measure(&folder)?);
        }
    }
    session.end(&legend, &[], &[])
}

/// Returns the store that is asked for.
fn store(args: &Args) -> &str {
    args.store.as_deref().unwrap_or(if args.peers.is_some() { PEERS_STORE } else { "memory:" })
}

/// Returns the folder of a store in a file.
fn store_folder(store: &str) -> Option<PathBuf> {
    let path = std::path::absolute(store.strip_prefix("file:")?).ok()?;
    path.parent().map(Path::to_owned)
}

impl FarPlan<'_> {
    fn store(&self) -> &str {
        store(self.args)
    }

    /// Returns the MiB that must be available: a store in memory holds all data once more.
    fn needed_mib(&self) -> u64 {
        self.bench.needed_mib(self.args.scale) * if store_folder(self.store()).is_some() { 1 } else { 2 }
    }

    fn cap(&self) -> Duration {
        Duration::from_secs(self.args.limit().into())
    }

    /// Returns the command that runs the program with `more` arguments under a setting.
    fn command(&self, setting: &Setting, options: &[OsString], more: &[String]) -> Command {
        let mut words = self.bench.words(self.root, self.args.scale, self.args.times);
        words.extend(more.iter().map(OsString::from));
        self.settings.command(setting, options, &words)
    }

    /// Makes a contestant that runs a command, with memory touched before.
    fn contestant<'c>(
        &'c self,
        name: String,
        start: impl Fn() -> Result<Run, Ended> + 'c,
    ) -> Contestant<'c, Run> {
        let set_up = Box::new(|| touch_mib(self.args.touch.unwrap_or(self.needed_mib())));
        Contestant { needs: vec![0], set_up, ..Contestant::new(name, start) }
    }

    fn stock(&self, name: &str) -> Contestant<'_, Run> {
        self.contestant(name.into(), || run(self.command(self.stock, &[], &[]), self.cap()))
    }

    /// Returns the columns of a program.
    fn columns(&self, footprint: Footprint) -> Vec<FarColumn> {
        let column = |&percent: &u8| {
            let share = footprint.data * u64::from(percent) / 100;
            let limit = self.guard.map(|_| share);
            let local = if limit.is_some() { share.saturating_sub(footprint.own + ADDITION) } else { share };
            FarColumn { percent, local, limit }
        };
        self.spec.local_percent.iter().map(column).collect()
    }

    /// Makes the contestant of a cell; none if there is less local memory than Largesse can work with.
    fn cell(&self, way: &Way, column: FarColumn, data: u64) -> Option<Contestant<'_, Run>> {
        let FarColumn { percent, local, limit } = column;
        let name = format!("{percent}% local, {}", way.name());
        let mut keys = merged(json!({ "setting": name, "local_percent": percent }), &way.keys());
        if let Some(limit) = limit {
            keys["limit_bytes"] = limit.into();
        }
        match way {
            Way::Pages(_) if local < LEAST_LOCAL => None,
            Way::Pages(size) => {
                keys["local_bytes"] = local.into();
                let size = size.clone();
                let start = move || self.in_group(limit, false, self.with_far(&size, local));
                let tear_down = Box::new(|run: Option<&mut Run>| self.add_report(run));
                Some(Contestant { keys, tear_down, ..self.contestant(name, start) })
            }
            Way::Peer(peer) => {
                let (guard, peer) = (self.guard?, *peer);
                let start = move || {
                    let before = moved::swapped();
                    let mut run = self.in_group(limit, true, self.command(self.stock, &[], &[]))?;
                    let swapped = merged(moved::since(&before), &run.more["group"]);
                    run.more.insert("swap".into(), swapped);
                    Ok(run)
                };
                // All data and as much of the rest may leave.
                let set_up = Box::new(move || {
                    touch_mib(self.args.touch.unwrap_or(self.needed_mib()))?;
                    guard.borrow_mut().on(peer, data + (data >> 1) + (64 << 20))
                });
                let tear_down = Box::new(move |_: Option<&mut Run>| {
                    // The guard has said why swap is still on, and the next run is refused.
                    let _ = guard.borrow_mut().off();
                });
                Some(Contestant { keys, set_up, tear_down, ..self.contestant(name, start) })
            }
        }
    }

    /// Returns the command that runs the program in far memory.
    fn with_far(&self, size: &str, local: u64) -> Command {
        let (size, marks) = if size == MARKED { (AUTO, &self.spec.marked[..]) } else { (size, &[][..]) };
        let local = local.to_string();
        let mut options = vec!["--local", &local, "--far", self.store(), "--page-size", size];
        options.extend(self.args.fault_engine.iter().flat_map(|engine| ["--fault-engine", engine]));
        let mut options: Vec<OsString> = options.iter().map(OsString::from).collect();
        options.extend(["--report".into(), self.folder.join("report").into()]);
        let command = self.command(self.far, &options, marks);
        if !self.store().starts_with("mpi:") {
            return command;
        }
        let mut launched = Command::new("mpirun");
        launched.args(["-n", "2"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => launched.env(name, value),
                None => launched.env_remove(name),
            };
        }
        launched
    }

    /// Runs a command, in a control group with this limit if there is one. A run in a group has its major faults.
    fn in_group(&self, limit: Option<u64>, swap: bool, mut command: Command) -> Result<Run, Ended> {
        let (Some(guard), Some(limit)) = (self.guard, limit) else { return run(command, self.cap()) };
        let folder = guard.borrow().group.clone();
        let group = ControlGroup::make(&folder, limit, swap).map_err(Ended::Failed)?;
        group.confine(&mut command).map_err(Ended::Failed)?;
        let done = run(command, self.cap());
        let is_killed = matches!(done, Err(Ended::Failed(_))) && group.killed() > 0;
        let mut run = if is_killed { Err(Ended::OutOfMemory) } else { done }?;
        run.more.insert("group".into(), json!({ "major_faults": group.count("memory.stat", "pgmajfault") }));
        Ok(run)
    }

    /// Adds the far memory of the report to the result.
    fn add_report(&self, run: Option<&mut Run>) {
        let path = self.folder.join("report");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(run) = run else { return };
        run.more.insert("far".into(), report["far"].clone());
        if report["tuned"].as_array().is_some_and(|cores| !cores.is_empty()) {
            run.more.insert("tuned".into(), report["tuned"].clone());
        }
    }

    /// Runs the program with all memory local. Its data are the far memory that it touches: its resident memory at the
    /// end, if no page was evicted. Programs of far benches free no memory before, or their definition has `far_mib`.
    fn footprint(&self) -> Result<Footprint> {
        let known = self.spec.far_mib.map(|mib| scaled(mib << 20, self.args.scale));
        if let Some(data) = known.filter(|_| self.guard.is_none()) {
            return Ok(Footprint { data, own: 0 });
        }
        let cap = self.args.limit();
        // The smallest page size is used, since larger transfers would count untouched neighbours.
        let all = FarColumn { percent: 100, local: EVERYTHING, limit: None };
        let all_local = self.cell(&Way::Pages("4K".into()), all, 0).ok_or("needs more local memory")?;
        let run = all_local.once().map_err(|ended| match ended {
            Ended::Stopped => format!("takes more than {cap} s with all memory local; give more with --cap"),
            Ended::OutOfMemory => "was killed for lack of memory".to_owned(),
            // A refusal by Largesse has its own advice.
            Ended::Failed(why) | Ended::Wrong(why) if why.contains("largesse: ") => why,
            Ended::Failed(why) | Ended::Wrong(why) => format!("{why}; needed: {}", self.bench.needs),
        })?;
        let data = known.or(run.more["far"]["resident_bytes"].as_u64()).filter(|bytes| *bytes > 0);
        let data = data.ok_or("uses no far memory: it has no block of 64 KiB or more")?;
        Ok(Footprint { data, own: run.peak.bytes().saturating_sub(data) })
    }

    /// Records the touches of the program, if they are asked for and can be recorded.
    fn trace(&self, session: &Session<'_>, columns: &[FarColumn]) -> Option<Trace> {
        let (recorder, smallest) = (self.recorder?, columns.iter().map(|column| column.local).min()?);
        session.progress.at(format!("{}, its touches", self.bench.name));
        let file = self.folder.join("trace");
        let mut command = self.command(self.stock, &[], &[]);
        Trace::record(&mut command, recorder, &file, smallest);
        let read = match run(command, self.cap()) {
            Ok(_) => Trace::read(&file),
            Err(Ended::Stopped) => {
                Err(format!("not recorded within {} s: use a smaller --scale", self.args.limit()))
            }
            Err(Ended::OutOfMemory) => Err("killed for lack of memory".into()),
            Err(Ended::Failed(why) | Ended::Wrong(why)) => Err(why),
        };
        let _ = std::fs::remove_file(&file);
        let bench = &self.bench.name;
        let missing =
            |why: &String| session.absent(bench, Some("least"), why, &format!("{bench}: touches: {why}"));
        read.inspect_err(missing).ok()
    }

    /// Runs all rounds and prints the outcome, if the bench is possible here.
    fn measure(&self, session: &mut Session<'_>) {
        let name = &self.bench.name;
        if !session.has_room(name, self.needed_mib()) {
            return;
        }
        session.progress.at(format!("{name}, its footprint"));
        let footprint = match self.footprint() {
            Ok(footprint) => footprint,
            Err(why) => return session.skip(name, &why),
        };
        session.print(
            &[json!({ "kind": "footprint", "bench": name, "bytes": footprint.data, "own": footprint.own })],
            "",
        );
        session.progress.step();
        let columns = self.columns(footprint);
        let trace = self.trace(session, &columns);
        let mut all = vec![self.stock("stock"), self.stock("stock again")];
        // The index of each cell's contestant, row by row.
        let mut places = Vec::new();
        for way in &self.ways {
            for column in &columns {
                let contestant = self.cell(way, *column, footprint.data);
                places.push(contestant.is_some().then_some(all.len()));
                all.extend(contestant);
            }
        }
        let absent = self.args.rounds() as usize * (2 + places.len() - all.len());
        (0..absent).for_each(|_| session.progress.step());
        let samples = session.rounds(name, &all, Some(self.args.limit()));
        let mut failures = Vec::new();
        let seconds = |place| self.seconds(place, &all[place].name, &samples, &mut failures);
        let values: Vec<_> = (0..all.len()).map(seconds).collect();
        failures.sort_by_key(|why| why.starts_with("WRONG"));
        let table = FarTable {
            bench: self.bench,
            spec: &self.spec,
            scale: self.args.scale,
            store: self.store(),
            is_grouped: self.guard.is_some(),
            ways: &self.ways,
            data: footprint.data,
            columns: &columns,
            places: &places,
            samples: &samples,
            values: &values,
            trace: trace.as_ref(),
        };
        session.show(&Outcome { failures, ..table.outcome() });
    }

    /// Returns the seconds of each run of a contestant, whose index is `place`.
    fn seconds(&self, place: usize, name: &str, all: &[Samples<Run>], failures: &mut Vec<String>) -> Values {
        let (bench, sample, stock, cap) = (self.bench, &all[place], &all[0].runs, self.args.limit());
        let why = match &sample.ended {
            Some(Ended::Failed(why)) => Some(why.clone()),
            Some(Ended::Stopped) if place < 2 => Some(format!("stopped after {cap} s; give more with --cap")),
            _ => None,
        };
        failures.extend(why.map(|why| format!("{}, {name}: could not run: {why}", bench.name)));
        let baseline = stock.first().ok_or(Cell::Absent)?;
        let test = &bench.tests[0].name;
        let right = sample.seconds(bench, test, self.args.scale, baseline).map_err(|why| {
            failures.push(format!("WRONG: {}, {name}: {why}", bench.name));
            Cell::Wrong
        })?;
        match sample.ended {
            None => Ok(right),
            Some(Ended::Stopped) => {
                // As a multiple of the whole stock run.
                let whole = Summary::of(&stock.iter().map(|run| run.took.as_secs_f64()).collect::<Vec<_>>());
                Err(Cell::Above(f64::from(cap) / whole.map_or(1e-3, |whole| whole.median.max(1e-3))))
            }
            Some(Ended::OutOfMemory) => Err(Cell::OutOfMemory),
            Some(_) => Err(Cell::Failed),
        }
    }
}
