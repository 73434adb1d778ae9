//! Defines the options of `largesse bench`.

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use largesse_settings::StoreName;
use largesse_terminal::word;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Values of the argument `NAME`: the comparisons, and `touch`, which only touches memory.
const R: &str = "r";
pub(crate) const FAR: &str = "far";
pub(crate) const GC: &str = "gc";
pub(crate) const KERNELS: &str = "kernels";
pub(crate) const TOUCH: &str = "touch";
/// Values of `--page-sizes` with which the tuner chooses the size: `marked` is for a program that marks its compute
/// core.
pub(crate) const AUTO: &str = "auto";
pub(crate) const MARKED: &str = "marked";
/// Store with which Largesse runs if it is compared with peers, unless the user asks for another.
const PEERS_STORE: &str = "file:/var/tmp/largesse-bench.far";
/// Greatest number of threads after `--threads`, which is that of EusLisp.
const MOST_THREADS: u32 = 64;

/// A kind of Linux swap with which far memory is compared.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Peer {
    /// Swap to a file.
    Swap,
    /// Swap to memory that is compressed.
    Zram,
}

impl Peer {
    pub(crate) fn name(self) -> &'static str {
        if self == Peer::Swap { "swap" } else { "zram" }
    }
}

/// Compare programs with and without Largesse.
///
/// Programs run in turns under each setting; ratios are of medians, to the C library's malloc. `r`: R under Largesse
/// and other allocators. `far`: programs with less local memory than they use, by its share and the page size.
/// `kernels`: sums and products at every length, compared with OpenBLAS and plain loops, as per cent of each cache
/// level's limit. `gc`: programs on garbage-collected heaps by threads, under each `largesse lisp --sync`, and in
/// EusLisp and other installed languages. Exit status: 0 when everything ran and every answer agrees, 1 when not, 2
/// for a wrong option.
#[derive(Debug, Parser)]
#[command(name = "largesse-bench", bin_name = "largesse bench", version)]
pub(crate) struct Args {
    /// Comparison to run: r, far, gc, kernels; or `touch`: only touch and free --touch MiB
    pub(crate) name: String,
    /// Print one JSON object a line, raw samples included
    #[arg(long)]
    pub(crate) json: bool,
    /// Compare with others, too. r: with other installed allocators. far: with the kernel's swap to a file (swap) or to
    /// compressed memory (zram), which is on for the time of a run; needs root, and runs programs in a control group
    #[arg(long, value_name = "swap,zram", value_delimiter = ',', num_args = 0..=1, help_heading = "r, far")]
    pub(crate) peers: Option<Vec<Peer>>,
    /// Run each program this many times under each setting [default: 5; far: 3; kernels: 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// Repeat each test this often within a run; its time is their mean [default: 1]. far: iterate this often; the
    /// time is their sum [default: the program's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "r, far")]
    pub(crate) times: Option<u32>,
    /// Use this share of the data; answers are known for 1, 0.25 and 0.01. gc: share of the repetitions
    #[arg(long, value_name = "F", default_value = "1", value_parser = share)]
    pub(crate) scale: f64,
    /// Run only this bench, group or single test (BENCH/TEST); gc: program or system; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Print the benches and their tests, and run none
    #[arg(long)]
    pub(crate) list: bool,
    /// Touch and free this much memory before every run and every test, in MiB, or a size such as 4G [default: the
    /// memory that the program needs, and at most half of the available memory]
    #[arg(long, value_name = "MIB", value_parser = touch, help_heading = "r, far, gc")]
    pub(crate) touch: Option<u64>,
    /// Read `definitions` and `programs` from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
    /// Stop a run after this many seconds; the table then shows a lower bound [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "far, gc")]
    pub(crate) cap: Option<u32>,
    /// Keep far pages in this store: memory:, file:PATH, redis://HOST:PORT, or mpi: with the command `mpirun` [default:
    /// memory:, and with --peers a file in /var/tmp]
    #[arg(long, value_name = "STORE", value_parser = store, help_heading = "far")]
    pub(crate) store: Option<String>,
    /// Keep these percentages of the touched memory local, one column each [default: the bench's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "far")]
    pub(crate) local: Option<Vec<u8>>,
    /// Use these page sizes, one row each, as `largesse run --page-size` takes them [default: the bench's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = page_size, help_heading = "far")]
    pub(crate) page_sizes: Option<Vec<String>>,
    /// Record what the program touches, and compare with the least that must be fetched; for small programs (--scale)
    #[arg(long, help_heading = "far")]
    pub(crate) least: bool,
    /// Handle faults with this engine, as `largesse run --fault-engine` takes it [default: auto]
    #[arg(long, value_name = "ENGINE", help_heading = "far")]
    pub(crate) fault_engine: Option<String>,
    /// Draw the measurements as a picture in this file
    #[arg(long, value_name = "FILE", help_heading = "gc, kernels")]
    pub(crate) svg: Option<PathBuf>,
    /// Run with these numbers of threads, and with 1 [default: 1,2,4,8,16, up to twice the processors]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = threads, help_heading = "gc")]
    pub(crate) threads: Option<Vec<u32>>,
}

impl Args {
    /// Returns how often each program runs under each setting.
    pub(crate) fn rounds(&self) -> u32 {
        self.runs.unwrap_or(match &*self.name {
            FAR => 3,
            KERNELS => 15,
            _ => 5,
        })
    }

    /// Returns the time after which a run is stopped, in seconds.
    pub(crate) fn limit(&self) -> u32 {
        self.cap.unwrap_or(60)
    }

    /// Returns the store that the command line asks for, or the default.
    pub(crate) fn store(&self) -> &str {
        self.store.as_deref().unwrap_or(if self.peers.is_some() { PEERS_STORE } else { "memory:" })
    }

    /// Reads the command line. The inner error is the message for an option that the chosen comparison does not have.
    pub(crate) fn read() -> Result<Result<Args, String>, clap::Error> {
        let given = Args::command().try_get_matches()?;
        let args = Args::from_arg_matches(&given)?;
        Ok(args.misplaced(&given).map_or(Ok(args), Err))
    }

    /// Returns the message for the first option given whose heading does not name the chosen comparison.
    fn misplaced(&self, given: &ArgMatches) -> Option<String> {
        let name = [R, FAR, GC, KERNELS].into_iter().find(|known| self.name == *known)?;
        match (name, self.peers.as_deref()) {
            (FAR, Some([])) => return Some("--peers needs names here: --peers swap,zram".into()),
            (R, Some([_, ..])) => return Some("--peers needs no names in `largesse bench r`".into()),
            _ => {}
        }
        let command = Args::command();
        let is_given = |option: &str| given.value_source(option) == Some(ValueSource::CommandLine);
        let mut options = command.get_arguments().filter(|option| is_given(option.get_id().as_str()));
        options.find_map(|option| {
            let of = option.get_help_heading().filter(|of| !of.split(", ").any(|of| of == name))?;
            let of = of.replace(", ", "` and `largesse bench ");
            Some(format!("--{} is an option of `largesse bench {of}` only", option.get_long()?))
        })
    }
}

/// Reads `--touch` and returns it in MiB.
fn touch(text: &str) -> Result<u64, String> {
    let bytes = largesse_settings::touch(text).map_err(|why| format!("{} {why}", word(text)))?;
    Ok(bytes as u64 >> 20)
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 16.0);
    share.ok_or_else(|| "a number above 0 and up to 16, such as 0.25".into())
}

fn store(text: &str) -> Result<String, String> {
    match StoreName::parse(text) {
        Some(StoreName::File(_)) => Ok(text.to_owned()),
        // The name becomes an argument of other programs, which all users can read.
        _ if largesse_far::has_password(text) => {
            Err("no password in the address: set LARGESSE_REDIS_PASSWORD".into())
        }
        Some(StoreName::Mpi(_)) => Ok(text.to_owned()),
        _ if largesse_far::is_agents(text) => Ok(text.to_owned()),
        _ => Err(format!("file:PATH, mpi:, {}", largesse_far::ACCEPTED)),
    }
}

/// Reads an element of `--page-sizes`, which becomes a row of the table: a size, `auto` or `marked`.
fn page_size(text: &str) -> Result<String, String> {
    let size = if text == MARKED { Ok(None) } else { largesse_settings::page_size(text) };
    size.map(|_| text.to_owned()).map_err(|why| format!("{} {why}, or {MARKED}", word(text)))
}

/// Reads one of the numbers after `--threads`.
fn threads(text: &str) -> Result<u32, String> {
    let threads = text.parse().ok().filter(|threads| (1..=MOST_THREADS).contains(threads));
    threads.ok_or_else(|| format!("numbers from 1 to {MOST_THREADS} with commas between: 1,2,4"))
}
