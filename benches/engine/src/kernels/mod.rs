//! Implements `largesse bench kernels`, which measures the kernels at every length, with OpenBLAS and plain loops for
//! comparison, as per cent of the limit of the cache level.
//!
//! Rows are lengths and alignments of the vectors, columns are callers, and each kernel has a table. Knows the
//! kernels, and peers that can be loaded. Does not know how kernels work.
//! # Invariants
//! 1. An answer is checked before it is timed: Largesse's must equal the reference to the bit, others within
//!    rounding. A wrong peer is named and left out of the row; only Largesse's wrong answers fail the run.
//! 2. Callers take turns; the best turn of each is shown, with the distance of the median from it.

mod calls;
mod case;
mod kernel;
mod limits;

use crate::args::{Args, KERNELS};
use crate::engine::*;
use calls::{Caller, Library, Time, Timer};
use case::{Case, Data};
use kernel::{ALL, BlasKernel};
use largesse_kernels::{Kernels, reference};
use largesse_machine::cycles::Counter;
use largesse_plot::curves::{Axes, Panel};
use largesse_terminal::say::say;
use largesse_terminal::table::{Column, Table};
use limits::Levels;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Number of elements of the vectors in [`climb`], which fit into the first-level cache.
const LADDER: usize = 1024;

/// The measurements of one case: the least possible seconds, the offset of `y` in its page less that of `x`, the times
/// of all callers, and the callers with wrong answers, each with whether it is Largesse's and what was wrong.
struct Row {
    case: Case,
    level: &'static str,
    limit: Option<f64>,
    offset: usize,
    times: Vec<Time>,
    wrong: Vec<(&'static str, bool, String)>,
}

/// Measures the chosen kernels and prints the results. Returns whether every answer of Largesse's kernels was right.
pub(crate) fn compare(args: &Args) -> Result<bool> {
    let only = &args.only;
    check_names(only, &ALL.map(|kernel| kernel.name.to_owned()))?;
    let mut kernels = ALL.to_vec();
    kernels.retain(|kernel| only.is_empty() || only.iter().any(|name| name == kernel.name));
    if args.list {
        kernels.iter().for_each(|kernel| say!("{:8} {}", kernel.name, kernel.formula));
        return Ok(true);
    }
    let root = benches(args.programs.as_deref())?;
    let data = Data::new(args.scale).map_err(|why| format!("no memory to measure in: {why}"))?;
    let peers = [("openblas", Library::open_blas()), ("gcc -O3", Library::loops(&root))];
    let timer = Timer { counter: Counter::calibrate(), turns: args.rounds() };
    let levels = Levels::measure(&data, &timer);
    let steps = kernels.iter().map(|kernel| kernel.cases(data.room).len()).sum();
    let mut session = Session::begin(args, &root, 1.0, steps);
    show_levels(&session, &levels);
    let installed = |(name, library): (_, Result<Library>)| {
        let absent = |why: &String| format!("{name}: skipped: {why}");
        library.inspect_err(|why| session.absent(KERNELS, Some(name), why, &absent(why))).ok()
    };
    let libraries: Vec<_> = peers.into_iter().filter_map(installed).collect();
    let mut panels = Vec::new();
    for kernel in kernels {
        let mut rows = Vec::new();
        for case in kernel.cases(data.room) {
            session.progress.at(case.title());
            rows.push(measure(case, &data, &calls::of(&case, &libraries), &levels, &timer));
            session.progress.step();
        }
        let outcome = outcome(kernel, &rows);
        session.show(&outcome);
        panels.push(panel(kernel, &rows, &outcome.objects));
    }
    climb(&session, &data, &libraries, &levels, &timer);
    let known = levels.levels.iter().filter(|level| level.size != usize::MAX);
    let walls: Vec<_> = known.map(|level| (level.size as f64, level.name)).collect();
    session.end(include_str!("../legends/kernels.txt"), &panels, &walls)
}

fn measure(case: Case, data: &Data, all: &[Caller], levels: &Levels, timer: &Timer) -> Row {
    let wrong = wrong(&case, data, all);
    let right = all.iter().filter(|one| !wrong.iter().any(|(name, ..)| *name == one.name));
    let vectors = data.fill(&case);
    let offset = vectors.y.addr().wrapping_sub(vectors.x.addr()) % (64 << 10);
    Row {
        case,
        level: levels.of(&case).map_or("memory", |level| level.name),
        limit: levels.limit(&case),
        offset: if case.kernel.vectors == 2 { offset } else { 0 },
        times: timer.time(case.n, right.map(|one| one.work(vectors))),
        wrong,
    }
}

/// Returns the callers with wrong answers. Largesse's answer is wrong if its bits differ from the reference's, a
/// peer's if the difference exceeds the error of rounding.
fn wrong(case: &Case, data: &Data, all: &[Caller]) -> Vec<(&'static str, bool, String)> {
    let vectors = data.fill(case);
    let (want, size) = (case.kernel.want)(vectors);
    let epsilon = if case.kernel.is_single() { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let near = (case.n as f64 * epsilon).min(1.0) * size;
    let wrong = |one: &Caller| {
        let mut got = (one.call)(vectors, 1);
        if case.kernel.updates() {
            got[0] = reference::sum(vectors.y::<f64>());
            data.fill(case);
        }
        let right = |(got, want): (&f64, &f64)| {
            if one.ours { got.to_bits() == want.to_bits() } else { (got - want).abs() <= near }
        };
        let how = format!("{} gave {got:?}, not {want:?}", case.title());
        (!got.iter().zip(&want).all(right)).then_some((one.name, one.ours, how))
    };
    all.iter().filter_map(wrong).collect()
}

fn outcome(kernel: BlasKernel, rows: &[Row]) -> Outcome {
    let mut names: Vec<&str> = Vec::new();
    for time in rows.iter().flat_map(|row| &row.times) {
        if !names.contains(&&*time.name) {
            names.push(&time.name);
        }
    }
    let mut columns = [kernel.name, "level", "lies"].map(Column::number).to_vec();
    // The first column is Largesse's; of the others the last is left out first.
    let column = |(place, name): (u8, &&str)| Column::number(*name).spare(place.min(1));
    columns.extend((0..).zip(&names).map(column));
    columns.extend([Column::number("GB/s").spare(2), Column::number("x")]);
    let (mut table, mut below, mut objects) = (Table::new(columns), String::from("\n"), Vec::new());
    for row in rows {
        let (n, shift) = (row.case.n, row.case.shift);
        let mut lies = shift.to_string();
        if kernel.vectors == 2 {
            let _ = write!(lies, " {:+}", row.offset);
        }
        let time = |name: &str| row.times.iter().find(|time| time.name == name);
        let gflops = |seconds| row.case.rate(kernel.flops, seconds);
        let gigabytes = |seconds| row.case.rate(kernel.moved(), seconds);
        let per_cent = |seconds: f64| row.limit.map(|limit| 100.0 * limit / seconds);
        let mut cells = vec![n.to_string(), row.level.to_owned(), lies];
        for name in &names {
            cells.push(time(name).map_or("-".to_owned(), |time| {
                let of_limit = per_cent(time.best).map_or(String::new(), |part| format!(" {part:.0}%"));
                format!("{:.2}{of_limit} +{:.0}", gflops(time.best), 100.0 * time.spread)
            }));
        }
        let first = row.times.first();
        cells.push(first.map_or("-".to_owned(), |time| format!("{:.1}", gigabytes(time.best))));
        let blas = time("openblas").zip(first).map(|(blas, first)| blas.best / first.best);
        cells.push(blas.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
        table.row(cells);
        for Time { name, best, spread } in &row.times {
            objects.push(json!({
                "kind": "line", "bench": KERNELS, "kernel": kernel.name, "n": n, "level": row.level,
                "shift": shift, "offset": row.offset, "who": name, "seconds": best, "spread": spread,
                "gflops": gflops(*best), "gigabytes": gigabytes(*best), "per_cent": per_cent(*best),
            }));
        }
        for (name, ours, how) in &row.wrong {
            let kind = if *ours { "trouble" } else { "left out" };
            objects.push(json!({ "kind": kind, "bench": KERNELS, "who": name, "text": how }));
            let what = if *ours { "WRONG" } else { "left out, its answer is wrong" };
            let _ = writeln!(below, "{name}: {what}: {how}");
        }
    }
    Outcome { below, objects, ..Outcome::new(KERNELS, kernel.formula.to_owned(), table) }
}

/// Prints the measured limits.
fn show_levels(session: &Session<'_>, levels: &Levels) {
    let rate = |rate: Option<f64>| rate.map_or("not known".to_owned(), |rate| format!("{:.2}", rate * 1e-9));
    let [clock, additions, fused] = [levels.clock, levels.additions, levels.multiply_adds].map(rate);
    let operations = format!("{additions} GFlop/s of additions, {fused} of multiplications with additions");
    let mut text = format!("Limits: clock {clock} GHz, {operations}.\n");
    for level in &levels.levels {
        let ([read, update], kib) = ([level.read, level.update].map(rate), level.bytes >> 10);
        let rates = format!("{read} GB/s of loads, {update} of loads and stores ({kib} KiB)");
        let _ = writeln!(text, "  {:6} {rates}", level.name);
    }
    let object = json!({
        "kind": "limits", "bench": KERNELS, "clock": levels.clock, "additions": levels.additions,
        "multiply_adds": levels.multiply_adds, "levels": levels.levels,
    });
    session.print(&[object], &text);
}

/// Repeats on this processor the steps by which a sum was made faster on the HA8000 (Kuroda, "High-performance
/// programming II", 2008), and prints their times. More accumulators hide the latency of an addition. The last step is
/// Largesse's kernel.
fn climb(session: &Session<'_>, data: &Data, libraries: &[Library], levels: &Levels, timer: &Timer) {
    let steps = [
        ("plain_dsum", "one number, 1 accumulator"),
        ("ladder_1", "SSE2, 1 accumulator"),
        ("ladder_4", "SSE2, 4 accumulators"),
        ("ladder_8", "SSE2, 8 accumulators"),
    ];
    let loops = libraries.iter().find(|library| library.name == "gcc -O3");
    let steps = loops.iter().flat_map(|loops| steps.map(|(function, name)| loops.sum(function, name)));
    let all: Vec<Caller> = steps.flatten().chain([calls::ours(ALL[0], Kernels::best())]).collect();
    let mut objects = Vec::new();
    let title = "The sum of 1024 doubles, step by step (GFlop/s, per cent of the processor's additions)";
    let mut text = format!("{title}:\n");
    let vectors = data.fill(&Case { kernel: ALL[0], n: LADDER, shift: 0 });
    for Time { name, best, spread } in timer.time(LADDER, all.iter().map(|one| one.work(vectors))) {
        let gflops = LADDER as f64 / best * 1e-9;
        let per_cent = levels.additions.map(|most| 100.0 * gflops * 1e9 / most);
        objects.push(json!({
            "kind": "ladder", "bench": KERNELS, "step": name, "gflops": gflops, "per_cent": per_cent,
            "spread": spread,
        }));
        let per_cent = per_cent.map_or(String::new(), |per_cent| format!("{per_cent:5.1}%"));
        let _ = writeln!(text, "  {name:26} {gflops:6.2} {per_cent} +{:.0}", 100.0 * spread);
    }
    text +=
        "  On the HA8000 (Opteron 8356, of 4.6): gcc 0.575, SSE2 with 1 accumulator 1.15, with 4 4.05: 88%\n";
    if let Some(((add, multiply), clock)) = levels.latency.zip(levels.clock) {
        let (add, multiply) = (add * clock, multiply * clock);
        objects.push(json!({
            "kind": "latency", "bench": KERNELS, "addition": add, "multiplication": multiply,
            "gigahertz": clock * 1e-9,
        }));
        let (add, multiply) = (10.0 * add, 10.0 * multiply);
        text += &format!(
            "Ten operations, each waiting for the one before: {add:.0} cycles of additions, {multiply:.0} of multiplications.\n\
             \x20 On the HA8000 40 and 40, when compiled with -O2.\n"
        );
    }
    session.print(&objects, &text);
}

/// Draws operations per second over the size of the vectors, and the limit above them.
fn panel(kernel: BlasKernel, rows: &[Row], lines: &[Value]) -> Panel {
    let bytes = (kernel.element * kernel.vectors) as f64;
    let aligned = lines.iter().filter(|line| line["shift"] == 0);
    let series = curves(aligned, "who", |line| Some((line["n"].as_f64()? * bytes, line["gflops"].as_f64()?)));
    let point = |row: &Row| Some((row.case.footprint() as f64, row.case.rate(kernel.flops, row.limit?)));
    let limit = rows.iter().filter(|row| row.case.shift == 0).filter_map(point).collect();
    Panel { title: format!("{}: {}", kernel.name, kernel.formula), axes: Axes::Speed, limit, series }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_callers_are_named() {
        let case = Case { kernel: ALL[0], n: 1000, shift: 0 };
        let data = Data::new(0.0).unwrap();
        let exact: f64 = reference::sum(data.fill(&case).x());
        let sums = [("near", true, exact.next_up()), ("peer", false, exact.next_up()), ("bad", false, 1.0)];
        let all = sums.map(|(name, ours, sum)| Caller { name, ours, call: Box::new(move |_, _| [sum, 0.0]) });
        let found = wrong(&case, &data, &all);
        assert_eq!(found.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["near", "bad"]);
        assert!(found[1].2.starts_with("dsum of 1000 gave [1.0, 0.0], not [7."), "{found:?}");
    }
}
