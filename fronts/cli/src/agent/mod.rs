//! `largesse agent`: the process beside a program that holds its far pages, for every store but `file:`.
//!
//! # Picture
//! ```text
//!   largesse run ── store, on standard input ─► largesse agent ──fork──► agent, in a group of its own
//!        ▲                                           │ waits                  │ opens the store
//!        └────────── agent:NAME, on standard output ─┴────────────────────────┘ serves, until nobody is left
//! ```
//! # Knows / does not know
//! Knows names of stores, and how a process leaves its terminal, pipes and folder behind. Does not know how
//! pages get to it, nor how a store keeps them.
//! # Invariants
//! 1. Nothing of the agent's keeps a pipe, a terminal or a folder of the program's busy.
//! 2. No secret of a store's name is an argument, or is printed.
//! 3. The folder of the agent's socket is gone when the agent is, unless SIGKILL or an error of its own ended it.

mod background;
mod ending;
mod redis;
mod stores;

use crate::say::complain;
use background::Background;
use largesse_agent::Agent;
use largesse_far::environment::agent_folders;
use largesse_far::without_secrets;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

/// Exit status when there is no far memory, as of `largesse run`.
const NO_STORE: u8 = 125;

/// Hold the far pages of programs, in the background, until the last of them has ended.
///
/// Prints `agent:NAME`, which `largesse run --far` takes.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// memory:, or another store that programs reach through an agent; - reads it from standard input
    #[arg(long, value_name = "STORE")]
    store: String,
    /// Stay for as long as this process, too
    #[arg(long, value_name = "PID")]
    owner: Option<i32>,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    let store = match args.store.as_str() {
        "-" => {
            let mut text = String::new();
            let _ = std::io::stdin().read_to_string(&mut text);
            text.trim_end().to_owned()
        }
        store => store.to_owned(),
    };
    match Background::enter() {
        Ok(Background::Before(code)) => code,
        Ok(Background::Behind(ready)) => {
            let done = prepare(&store, args.owner).and_then(|agent| {
                let _ = writeln!(std::io::stdout(), "agent:{}", agent.name());
                ready.detach().map_err(|error| error.to_string())?;
                agent.run().map_err(|error| error.to_string())
            });
            done.map_or_else(|why| refuse(&why), |()| ExitCode::SUCCESS)
        }
        Err(error) => refuse(&format!("the agent was not started: {error}")),
    }
}

fn prepare(store: &str, owner: Option<i32>) -> Result<Agent, String> {
    let called = without_secrets(store);
    if called != "memory:" {
        background::hide();
    }
    let place = stores::open(store).map_err(|why| format!("no far memory: {why}"))?;
    let agent = Agent::new(&agent_folders(), place, &called, owner);
    let agent = agent.map_err(|error| format!("the agent was not started: {error}"))?;
    ending::withdraw_at_signals(agent.name());
    Ok(agent)
}

fn refuse(why: &str) -> ExitCode {
    complain!("largesse: {why}");
    ExitCode::from(NO_STORE)
}
