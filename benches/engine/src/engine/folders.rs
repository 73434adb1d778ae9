//! Finds the folder of the benches, makes temporary folders, and compiles libraries into these.

use super::Result;
use largesse_terminal::name;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::{Builder, TempDir};

/// Returns the folder with `definitions` and `programs`: `named` if it is given, else the one installed with the
/// command, else that of the checkout in whose `target` folder the command is.
pub(crate) fn benches(named: Option<&Path>) -> Result<PathBuf> {
    let around = || around(&largesse_terminal::own::path().unwrap_or_default());
    let looked = named.map_or_else(around, |named| vec![named.to_owned()]);
    let is_one = |root: &&PathBuf| root.join("definitions").is_dir() && root.join("programs").is_dir();
    looked.iter().find(is_one).cloned().ok_or_else(|| {
        let looked: String = looked.iter().map(|path| format!("\n  {}", name(path))).collect();
        format!(
            "no benches found; --programs DIR says where `definitions` and `programs` are. Looked in:{looked}"
        )
    })
}

fn around(command: &Path) -> Vec<PathBuf> {
    // The command may be `bin/largesse` of an installation, `target/release/largesse` of a checkout, or one more
    // folder below.
    let below = ["share/largesse/benches", "benches", "benches"];
    command.ancestors().skip(2).zip(below).map(|(above, folder)| above.join(folder)).collect()
}

/// Makes a temporary directory that only this user may enter. It is removed with its contents when dropped.
pub(crate) fn temp_dir() -> Result<TempDir> {
    let made = Builder::new().prefix("largesse-bench-").permissions(Permissions::from_mode(0o700)).tempdir();
    made.map_err(|why| format!("{}: {why}", name(std::env::temp_dir())))
}

/// Compiles a library from the C program `source`, below the folder of programs, into `folder`. The error says why
/// that is not possible.
pub(crate) fn compiled(root: &Path, source: &str, options: &[&str], folder: &Path) -> Result<PathBuf> {
    let (source, made) = (root.join("programs/c").join(source), folder.join("made.so"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-fPIC", "-shared", "-o"]).arg(&made).args(options).arg(&source).arg("-lm");
    let done = gcc.output().map_err(|_| "no gcc (apt-get install gcc)")?;
    let why = || format!("gcc {}: {}", name(&source), String::from_utf8_lossy(&done.stderr));
    if done.status.success() { Ok(made) } else { Err(why()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_search_share_then_their_checkout() {
        assert_eq!(around(Path::new("/usr/bin/largesse"))[0], Path::new("/usr/share/largesse/benches"));
        assert!(around(Path::new("/x/target/release/largesse")).contains(&PathBuf::from("/x/benches")));
        let message = benches(Some(Path::new("/nowhere"))).unwrap_err();
        assert!(message.ends_with("are. Looked in:\n  /nowhere"), "{message}");
        let mode = temp_dir().unwrap().path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "only this user may enter");
    }
}
