//! `largesse agent`: a background process that holds the far pages of a program, for every store but `file:`.
//!
//! # Picture
//! ```text
//!   largesse run ── store, on standard input ─► largesse agent ──fork──► agent, in its own process group
//!        ▲                                           │ waits                  │ opens the store
//!        └────────── agent:NAME, on standard output ─┴────────────────────────┘ serves until its last client ends
//! ```
//! # Knows / does not know
//! Knows names of stores, and how a process detaches from its terminal, pipes and folder. Does not know how pages reach
//! it, nor how a store keeps them.
//! # Invariants
//! 1. The agent keeps no pipe, terminal or folder of the program open.
//! 2. No secret in a store's name is printed or passed as an argument.
//! 3. The agent removes the folder of its socket when it ends, except after SIGKILL or an error of its own.

mod background;
mod ending;
mod redis;
mod stores;

use background::Background;
use largesse_agent::Agent;
use largesse_far::environment::agent_folders;
use largesse_far::without_secrets;
use largesse_terminal::say::complain;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

/// Exit status when far memory cannot be set up, as of `largesse run`.
const NO_STORE: u8 = 125;

/// Hold the far pages of programs in the background until the last program has ended.
///
/// Prints `agent:NAME`, a value for `largesse run --far`.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Open this store: memory: or redis://HOST:PORT; - reads its name from standard input
    #[arg(long, value_name = "STORE")]
    store: String,
    /// Keep serving as long as this process runs, even if no program uses the agent
    #[arg(long, value_name = "PID")]
    owner: Option<i32>,
}

impl Args {
    /// Returns whether another command of Largesse has started the agent.
    pub(crate) fn has_owner(&self) -> bool {
        self.owner.is_some()
    }
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
        Ok(Background::Parent { ready: true }) => ExitCode::SUCCESS,
        // The background process has printed the reason.
        Ok(Background::Parent { ready: false }) => ExitCode::from(NO_STORE),
        Ok(Background::Child(ready)) => {
            let done = prepare(&store, args.owner).and_then(|agent| {
                writeln!(std::io::stdout(), "agent:{}", agent.name())
                    .map_err(|error| format!("standard output: {error}"))?;
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
