//! Turns the options of far memory into numbers and a store that is ready, before the program starts.

use crate::environment;
use crate::error::FarError;
use crate::library::library;
use crate::mpi::{self, Ranks};
use crate::own;
use crate::say::complain;
use crate::setting::{Given, Setting};
use crate::stores::{self, PASSWORD};
use largesse_agent::Name;
use largesse_paging::{FarConfig, Store, default_file};
use largesse_settings::{Amount, FaultEngine, SWITCH, SettingsReader, StoreName};
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const ENGINE: &str = "LARGESSE_FAULT_ENGINE";
const LIMIT: &str = "LARGESSE_LIMIT";
const SWITCHES: [&str; 3] = ["LARGESSE_STATIC_DATA", "LARGESSE_PREFETCH", "LARGESSE_SMALL_BLOCKS"];

/// The settings of far memory after they were read and checked.
struct Parsed {
    /// Upper bound of resident far memory (`--local`).
    local: Amount,
    /// Size of a transfer unit in bytes; `None` lets the tuner choose.
    page_size: Option<usize>,
    /// The same settings as environment variables of the program.
    variables: Vec<(&'static str, OsString)>,
}

/// Reads the options of `largesse lisp`. Environment variables apply only to programs that are started: a line names
/// each of them that is set.
/// When this returns, the store can be reached. Under an MPI launcher, it returns only in rank 0, in a forked process.
/// The calling process must have a single thread.
///
/// # Errors
/// Returns the setting that is refused, or why the store cannot be made ready.
pub fn config(
    local: Option<&OsString>,
    store: Option<&OsString>,
    page_size: Option<&OsString>,
) -> Result<Option<FarConfig>, FarError> {
    // A Lisp under `largesse run` has its variables for that.
    if environment::get("LARGESSE_PID").is_none() {
        for line in environment::remarks(SettingsReader::Lisp) {
            complain!("largesse: {line}");
        }
    }
    let given: Vec<Given> = [
        ("--local", "LARGESSE_LOCAL", local),
        ("--far", "LARGESSE_FAR", store),
        ("--page-size", "LARGESSE_PAGE_SIZE", page_size),
    ]
    .into_iter()
    .filter_map(|(option, variable, value)| Some(Given { option, variable, value: value?.clone() }))
    .collect();
    let parsed = parse(|name| Setting::of(name, &given, |_: &str| None), environment::get)?;
    let Some(Parsed { local, page_size, mut variables }) = parsed else {
        environment::remove(PASSWORD);
        return Ok(None);
    };
    warn_of_passwords(&given);
    match ranks(&variables)? {
        None => start_agent(&mut variables)?,
        Some(server) if !server.is_first() => {
            server.serve().map_err(FarError::Ranks)?;
            std::process::exit(0);
        }
        Some(first) => {
            set_store(&mut variables, first.host().map_err(FarError::Ranks)?);
            environment::remove_all(&mpi::VARIABLES);
        }
    }
    environment::remove(PASSWORD);
    let store = named_store(&variables).and_then(|store| Store::parse(&store.to_string_lossy()));
    let store = store.ok_or(FarError::Unready)?;
    Ok(Some(FarConfig { local, store, page_size, prefetch: true, engine: FaultEngine::Auto }))
}

/// Returns the ranks of the MPI launcher, if the store is `mpi:`, so that they hold the pages.
///
/// # Errors
/// Returns an error if this process is not a rank, or if its MPI library has no plug-in.
pub fn ranks(variables: &[(&'static str, OsString)]) -> Result<Option<Ranks>, FarError> {
    let here = || library(environment::get("LARGESSE_LIBRARY")).ok();
    let Some(store) = named_store(variables) else { return Ok(None) };
    Ranks::of(store, environment::get, here).map_err(FarError::Ranks)
}

/// Warns if a password is on the command line, which all users of the machine can read.
pub fn warn_of_passwords(given: &[Given]) {
    if given.iter().any(|one| stores::has_password(&one.value.to_string_lossy())) {
        complain!(
            "largesse: all users of this machine can read the password on the command line; set LARGESSE_REDIS_PASSWORD_FILE instead"
        );
    }
}

/// Returns the settings of far memory as variables for the program's environment; an empty list if the program has no
/// far memory.
///
/// # Errors
/// Returns the value that is not understood or would have no effect.
pub fn variables(
    value: impl Fn(&'static str) -> Option<Setting>,
    get: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(&'static str, OsString)>, FarError> {
    Ok(parse(value, get)?.map_or_else(Vec::new, |parsed| parsed.variables))
}

/// Reads and checks all settings of far memory. Returns `None` if the program has no far memory.
fn parse(
    value: impl Fn(&'static str) -> Option<Setting>,
    get: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<Parsed>, FarError> {
    let (local, limit) = (value("LARGESSE_LOCAL"), value(LIMIT));
    let (amount, first) = match (local, limit) {
        (None, None) => {
            let unused =
                ["LARGESSE_FAR", "LARGESSE_PAGE_SIZE", ENGINE].into_iter().chain(SWITCHES).find_map(&value);
            return unused.map_or(Ok(None), |it| {
                Err(it.refused("nothing without --local SIZE, or --limit under `largesse run`"))
            });
        }
        (Some(local), Some(limit)) => {
            return Err(limit.excluded_by(local.origin, "each bounds memory in its own way"));
        }
        (Some(local), None) => (local.size(largesse_settings::local)?, ("LARGESSE_LOCAL", local.value)),
        (None, Some(limit)) => {
            limit.size(largesse_settings::limit)?;
            served_by_limit(&value, limit.origin)?;
            // The library sets it when the limit comes near.
            (Amount::Bytes(0), (LIMIT, limit.value))
        }
    };
    let mut page_size = None;
    let mut variables = vec![first];
    let store = match value("LARGESSE_FAR") {
        Some(store) => named(&store)?,
        None => in_file(default_file(get("TMPDIR"))),
    };
    variables.push(("LARGESSE_FAR", store));
    if let Some(size) = value("LARGESSE_PAGE_SIZE") {
        page_size = size.size(largesse_settings::page_size)?;
        let value = page_size.map_or_else(|| "auto".to_owned(), |bytes| bytes.to_string());
        variables.push(("LARGESSE_PAGE_SIZE", value.into()));
    }
    if let Some(engine) = value(ENGINE) {
        engine.word(&FaultEngine::WORDS)?;
        variables.push((ENGINE, engine.value));
    }
    for name in SWITCHES {
        if let Some(switch) = value(name) {
            switch.word(&SWITCH)?;
            variables.push((name, switch.value));
        }
    }
    Ok(Some(Parsed { local: amount, page_size, variables }))
}

/// Returns an error for settings of far memory that have no effect with a limit, which the option or variable `limit`
/// has set.
fn served_by_limit(value: impl Fn(&'static str) -> Option<Setting>, limit: &str) -> Result<(), FarError> {
    if let Some(store) = value("LARGESSE_FAR")
        && !matches!(StoreName::parse(&store.value.to_string_lossy()), Some(StoreName::File(_)))
    {
        return Err(store.refused(format!("file:PATH with {limit}")));
    }
    Ok(())
}

fn named(store: &Setting) -> Result<OsString, FarError> {
    let text = store.value.to_string_lossy();
    match StoreName::parse(&text) {
        Some(StoreName::Memory(_) | StoreName::Redis | StoreName::Mpi("")) => Ok(store.value.clone()),
        Some(StoreName::Mpi(room)) => match largesse_settings::room(room) {
            Ok(bytes) => Ok(format!("mpi:{bytes}").into()),
            Err(why) => Err(FarError::BadSize { origin: store.origin, value: text.into_owned(), why }),
        },
        Some(StoreName::Agent(name)) if Name::parse(name).is_some() => Ok(store.value.clone()),
        // The program may change its working directory before the file is created.
        Some(StoreName::File(path)) => Ok(in_file(std::path::absolute(path).unwrap_or_else(|_| path.into()))),
        _ => Err(store.refused(format!("file:PATH, mpi:, mpi:SIZE, {}", stores::ACCEPTED))),
    }
}

/// Returns the value of the variable with the store; `None` if there is no far memory.
fn named_store<'a>(variables: &'a [(&'static str, OsString)]) -> Option<&'a OsString> {
    variables.iter().find(|(name, _)| *name == "LARGESSE_FAR").map(|(_, store)| store)
}

/// Replaces the value of the variable with the store.
pub fn set_store(variables: &mut [(&'static str, OsString)], store: OsString) {
    if let Some((_, it)) = variables.iter_mut().find(|(name, _)| *name == "LARGESSE_FAR") {
        *it = store;
    }
}

/// Starts an agent for this process if the store needs one, and replaces the store in `variables` by the agent's name.
///
/// # Errors
/// Returns an error if the agent was not started.
pub fn start_agent(variables: &mut [(&'static str, OsString)]) -> Result<(), FarError> {
    if let Some(needs) = named_store(variables).filter(|store| stores::is_agents(&store.to_string_lossy())) {
        let name = agent_for(needs).map_err(FarError::Agent)?;
        set_store(variables, name.ok_or(FarError::Unready)?);
    }
    Ok(())
}

/// Starts an agent for `store`, and returns the agent's name; `None` if the agent failed and has printed the reason.
/// The store's name, which may contain a password, is passed through a pipe, since all users can read arguments.
fn agent_for(store: &OsString) -> std::io::Result<Option<OsString>> {
    let mut command = Command::new(own::command());
    let owner = std::process::id().to_string();
    command.args(["agent", "--store", "-", "--owner", &owner]).env_remove("LD_PRELOAD");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(store.as_encoded_bytes())?;
    }
    let mut name = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut name)?;
    }
    Ok(child.wait()?.success().then(|| name.trim_end().into()))
}

/// Returns the name of the store that is the file `path`.
fn in_file(path: PathBuf) -> OsString {
    let mut value = OsString::from("file:");
    value.push(path);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked_out(given: &[(&'static str, &str)]) -> Result<Vec<(&'static str, OsString)>, String> {
        let value = |name: &'static str| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map(|(name, value)| Setting { origin: name, value: value.into() })
        };
        let get = |name: &str| (name == "TMPDIR").then(|| "/scratch".into());
        variables(value, get).map_err(|error| error.to_string())
    }

    #[test]
    fn page_sizes_become_bytes() {
        let all = worked_out(&[("LARGESSE_LOCAL", "4G"), ("LARGESSE_PAGE_SIZE", "64K")]).unwrap();
        let want = [("LARGESSE_LOCAL", "4G"), ("LARGESSE_FAR", "file:/scratch/largesse.far")];
        assert_eq!(all[..2], want.map(|(name, value)| (name, value.into())));
        assert_eq!(all[2], ("LARGESSE_PAGE_SIZE", "65536".into()));
        assert_eq!(worked_out(&[]).unwrap(), []);
    }

    #[test]
    fn limit_takes_a_file() {
        let all = worked_out(&[("LARGESSE_LIMIT", "auto")]).unwrap();
        let want = [("LARGESSE_LIMIT", "auto"), ("LARGESSE_FAR", "file:/scratch/largesse.far")];
        assert_eq!(all, want.map(|(name, value)| (name, value.into())));
        let all = worked_out(&[("LARGESSE_LIMIT", "auto"), ("LARGESSE_STATIC_DATA", "on")]).unwrap();
        assert_eq!(all[2], ("LARGESSE_STATIC_DATA", "on".into()));
        for (given, words) in [
            (("LARGESSE_FAR", "memory:"), "file:PATH with LARGESSE_LIMIT"),
            (("LARGESSE_LOCAL", "1G"), "LARGESSE_LIMIT=8G cannot be combined with LARGESSE_LOCAL"),
        ] {
            let message = worked_out(&[("LARGESSE_LIMIT", "8G"), given]).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn relative_files_become_absolute() {
        let all = worked_out(&[("LARGESSE_LOCAL", "50%"), ("LARGESSE_FAR", "file:swap")]).unwrap();
        assert_eq!(all[0].1, "50%");
        assert!(all[1].1.to_str().unwrap().starts_with("file:/"), "{all:?}");
    }

    #[test]
    fn refusals_say_what_is_accepted() {
        for (given, words) in [
            (("LARGESSE_LOCAL", "much"), "512M or 4G"),
            (("LARGESSE_LOCAL", "0%"), "1% to 100%"),
            (("LARGESSE_LOCAL", "101%"), "1% to 100%"),
            (("LARGESSE_LOCAL", "+5%"), "1% to 100%"),
            (("LARGESSE_LOCAL", "1000"), "1000 bytes without a unit, and the least is 1M"),
            (("LARGESSE_LOCAL", "4"), "did you mean 4G or 4M?"),
            (("LARGESSE_LOCAL", "99999999999T"), "more than this machine can address"),
            (("LARGESSE_FAR", "memory:"), "nothing without --local SIZE, or --limit under `largesse run`"),
        ] {
            let message = worked_out(&[given]).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
        for size in ["4GB", "4gib", "1.5G", "4 GB", "512MB"] {
            assert_eq!(worked_out(&[("LARGESSE_LOCAL", size)]).unwrap()[0].1, size);
        }
        let room = [("LARGESSE_LOCAL", "1G"), ("LARGESSE_FAR", "mpi:4GB")];
        assert_eq!(worked_out(&room).unwrap()[1].1, "mpi:4294967296");
        for (name, value) in [
            ("LARGESSE_FAR", "mpi:1"),
            ("LARGESSE_FAR", "file:"),
            ("LARGESSE_FAR", "disk"),
            ("LARGESSE_PAGE_SIZE", "5000"),
        ] {
            let message = worked_out(&[("LARGESSE_LOCAL", "1G"), (name, value)]).unwrap_err();
            assert!(message.contains(value), "{message}");
        }
    }
}
