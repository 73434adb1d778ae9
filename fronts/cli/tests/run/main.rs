//! Tests of the command `largesse run` with a stand-in for the library.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

mod in_place;
mod refusals;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("largesse-run-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Compiles `source` to `name`, or prints the reason and returns `None` if that fails.
    fn compiled(&self, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
        let (path, text) = (self.path(name), self.path(&format!("{name}.c")));
        std::fs::write(&text, source).unwrap();
        let done = Command::new("cc").args(options).arg("-o").arg(&path).arg(&text).output();
        match done {
            Ok(done) if done.status.success() => Some(path),
            _ => {
                eprintln!("skipped: cc {options:?} does not work here");
                None
            }
        }
    }

    /// Compiles a shared object that the command accepts as the library.
    fn library(&self) -> Option<PathBuf> {
        self.compiled(
            "liblargesse.so",
            "unsigned largesse_version(void) { return 1; }",
            &["-shared", "-fPIC"],
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the command `largesse run` without Largesse's variables in its environment.
fn largesse() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse"));
    command.arg("run");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
        command.env_remove(name);
    }
    command.env_remove("LD_PRELOAD");
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn write_program(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
