//! Makes a folder with the built files and the programs of a test, which all users may read.

use crate::built::{built_command, built_companion, built_library, workspace};
use crate::skip::skipped;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test. It is removed when this is dropped.
#[derive(Debug)]
pub struct Stage(PathBuf);

impl Stage {
    /// Creates a folder with copies of the library and the command. Copies are needed because an unprivileged user may
    /// not be able to enter the checkout.
    #[must_use]
    pub fn new() -> Stage {
        Stage::with_library(&built_library())
    }

    /// Creates a folder like [`new`](Stage::new), with another build of the library.
    #[must_use]
    pub fn with_library(library: &Path) -> Stage {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("largesse-stage-{}-{number}", std::process::id());
        let stage = Stage(std::env::temp_dir().join(name));
        std::fs::create_dir(&stage.0).expect("a folder for temporary files that can be written");
        permit(&stage.0, 0o755);
        let scratch = stage.scratch();
        std::fs::create_dir(&scratch).expect("the folder was made just now");
        permit(&scratch, 0o1777);
        // The library for `largesse pin --threads` is in the same folder.
        let pin = "liblargesse_pin.so";
        let files = [
            (library.to_owned(), stage.library()),
            (built_library().with_file_name(pin), stage.path(pin)),
            (built_command(), stage.command()),
        ];
        for (from, to) in files {
            copy(&from, &to);
        }
        // Linked programs look for the library by this name.
        std::os::unix::fs::symlink("liblargesse.so", stage.path(&format!("liblargesse.so.{}", abi())))
            .expect("the folder was made just now");
        stage
    }

    /// Creates a folder like [`new`](Stage::new), with a program that the command executes, such as `largesse-lisp`.
    #[must_use]
    pub fn with_companion(name: &str) -> Stage {
        let stage = Stage::new();
        stage.add_companion(name);
        stage
    }

    /// Adds a program that the command executes, such as `largesse-lisp`.
    pub fn add_companion(&self, name: &str) {
        copy(&built_companion(name), &self.path(name));
    }

    /// Returns the path of a file in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the path of a subfolder to which all users may write.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    /// Returns a value of `--far` for a store in a file in [`scratch`](Stage::scratch).
    #[must_use]
    pub fn store(&self) -> String {
        store_in(&self.scratch())
    }

    /// Returns values of `--far` for the two stores that need no other program.
    #[must_use]
    pub fn stores(&self) -> [String; 2] {
        ["memory:".to_owned(), self.store()]
    }

    /// Returns the path of the copied library.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.path("liblargesse.so")
    }

    /// Returns the path of the copied command.
    #[must_use]
    pub fn command(&self) -> PathBuf {
        self.path("largesse")
    }

    /// Copies a file of `tests/programs` to the folder, and returns its path.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        let to = self.path(name);
        copy(&source(name), &to);
        to
    }

    /// Compiles a file of `tests/programs` and returns the program's path. Without a compiler, reports that the test is
    /// skipped and returns `None`.
    #[must_use]
    pub fn compiled(&self, name: &str, options: &[&str]) -> Option<PathBuf> {
        let to = self.path(&Path::new(name).with_extension("bin").to_string_lossy());
        compile(name, &to, options).then_some(to)
    }
}

/// Returns the number of the library's binary interface.
fn abi() -> String {
    let header = workspace().join("fronts/preload/include/largesse.h");
    let header = std::fs::read_to_string(header).expect("the library's header");
    let number = header.lines().find_map(|line| line.strip_prefix("#define LARGESSE_ABI "));
    number.expect("the header defines LARGESSE_ABI").trim().to_owned()
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::new()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Copies a program so that every user may run it. Another process makes the copy: if we wrote the file ourselves, a
/// child that another test starts at this moment would inherit it open for writing, and such a file cannot be
/// executed.
fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").args([from, to]).status();
    assert!(done.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
    permit(to, 0o755);
}

/// Returns a value of `--far` for a store in a file of `folder`.
#[must_use]
pub fn store_in(folder: &Path) -> String {
    format!("file:{}", folder.join("pages").display())
}

/// Compiles a file of `tests/programs`. Without a compiler, reports that the test is skipped and returns `false`.
pub(crate) fn compile(name: &str, to: &Path, options: &[&str]) -> bool {
    let source = source(name);
    let compiler = match source.extension().and_then(|extension| extension.to_str()) {
        Some("f90") => "gfortran",
        Some("cpp") => "c++",
        _ => "cc",
    };
    let include = workspace().join("fronts/preload/include");
    let mut command = Command::new(compiler);
    command.arg("-I").arg(include).arg("-O2").arg("-o").arg(to).arg(source).args(options);
    let Ok(done) = command.output() else {
        skipped(&format!("no {compiler}"));
        return false;
    };
    let message = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{compiler} {name}: {message}");
    permit(to, 0o755);
    true
}

fn source(name: &str) -> PathBuf {
    workspace().join("tests/programs").join(name)
}

pub(crate) fn permit(path: &Path, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("a file made just now");
}
