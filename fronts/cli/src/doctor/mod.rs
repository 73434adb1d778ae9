//! `largesse doctor`: reports what the machine grants, why that matters, and what to type.
//!
//! # Picture
//! ```text
//!   Tree (files below a root) ─┐
//!   Live (results of trials)  ─┴─► MachineFacts ─► checks ─► findings ─► show
//!                                       └───► fix: plan ─► apply
//! ```
//! # Knows / does not know
//! Knows the kernel's settings and the rights to change them. Does not know how a heap uses what they grant.
//! # Invariants
//! 1. Without `--fix` or `--undo` nothing is written.
//! 2. Only files named `60-largesse.*` are created, and only such files with our first line are replaced or removed.

mod checks;
mod finding;
mod fix;
mod live;
mod machine;
mod options;
pub(crate) mod probe;
mod show;
mod tree;

use finding::Status;
use largesse_terminal::name;
use largesse_terminal::say::{complain, say};
use largesse_terminal::table::Paper;
use live::Live;
use machine::MachineFacts;
pub(crate) use probe::is_root;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use tree::Tree;

/// Check what this machine grants, and show how to get more.
///
/// Exit status: 0 if programs can get large pages, 1 if something prevents it, 2 for a wrong option.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Correct settings, for members of the group `largesse` where possible. Without root, print the commands
    #[arg(long, conflicts_with_all = ["json", "undo"])]
    fix: bool,
    /// Remove the files that --fix created, and restore the earlier settings
    #[arg(long, conflicts_with = "json")]
    undo: bool,
    /// Print what --fix or --undo would do, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Let --fix make settings for every user where a group does not suffice
    #[arg(long, requires = "fix")]
    yes: bool,
    /// Let --fix reserve N hugetlb pages, now and at every boot
    #[arg(long, value_name = "N", requires = "fix")]
    hugetlb_pages: Option<u64>,
    /// Check the saved machine below this directory instead of this machine
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    /// Copy all files that are read to this directory, for --root on another machine
    #[arg(long, value_name = "DIR", hide = true)]
    save: Option<PathBuf>,
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    machine: &'a MachineFacts,
    findings: &'a [finding::Finding],
}

pub(crate) fn main(args: &Args) -> ExitCode {
    if !args.root.is_dir() {
        complain!("largesse doctor: --root {}: no such directory", name(&args.root));
        return ExitCode::from(2);
    }
    let tree = Tree::new(&args.root);
    let live = if tree.is_saved() { Live::of_saved(&tree) } else { probe::live(options::preload()) };
    let machine = MachineFacts::read(&tree, &live);
    if args.fix || args.undo {
        return change(args, &tree, &live, &machine);
    }
    if args.dry_run {
        complain!("largesse doctor: --dry-run goes with --fix or --undo");
        return ExitCode::from(2);
    }
    let findings = checks::all(&tree, &live, &machine);
    if let Some(directory) = &args.save {
        // A plan reads more files than the checks.
        drop(fix::plan(&tree, &live, &machine, fix::FixOptions { hugetlb_pages: Some(1), for_all: false }));
        let saved = tree.save(directory).and_then(|()| std::fs::write(directory.join("live"), live.text()));
        if let Err(error) = saved {
            complain!("largesse doctor: --save {}: {error}", name(directory));
            return ExitCode::from(2);
        }
    }
    if args.json {
        let report = Report { machine: &machine, findings: &findings };
        say!("{}", serde_json::to_string_pretty(&report).unwrap_or_default());
    } else {
        let columns = largesse_terminal::table::terminal_columns();
        let colour = std::io::stdout().is_terminal() && !options::no_colour();
        let text = show::table(&machine, &findings, columns.unwrap_or(100), colour);
        say!("{}", Paper::here().text(text.trim_end()));
    }
    let worst = findings.iter().map(|finding| finding.status).max();
    if worst == Some(Status::Problem) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs `--fix` or `--undo`.
fn change(args: &Args, tree: &Tree, live: &Live, machine: &MachineFacts) -> ExitCode {
    let wanted = fix::FixOptions { hugetlb_pages: args.hugetlb_pages, for_all: args.yes };
    let planned = if args.undo { Ok(fix::undo(tree, live)) } else { fix::plan(tree, live, machine, wanted) };
    let plan = match planned {
        Ok(plan) => plan,
        Err(refusal) => {
            complain!("largesse doctor: {refusal}.");
            return ExitCode::FAILURE;
        }
    };
    if plan.steps.is_empty() {
        say!("{}", nothing(args.undo, plan.notes.is_empty()));
    }
    let how = match () {
        () if args.dry_run => fix::How::Say,
        () if tree.is_saved() || probe::is_root() => fix::How::Act,
        () => fix::How::Commands,
    };
    if fix::apply(tree, &plan, how) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the message for a plan without steps. `all_is_fine` is false if the plan has notes about settings that stay
/// as they are.
fn nothing(undo: bool, all_is_fine: bool) -> &'static str {
    match (all_is_fine, undo) {
        (true, true) => "Nothing to undo.",
        (true, false) => "Nothing to fix.",
        (false, _) => "Nothing was changed.",
    }
}
