//! Tests `make install`: programs can be linked with the installed library, and `make uninstall` removes all files.
//! The installer of the archive refuses machines and folders on which it cannot work.

use largesse_tests::{Exit, Run, Stage, has_program, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder into which `make install` installed the built files. It is removed when this is dropped.
struct Installed(PathBuf);

impl Installed {
    fn new(name: &str) -> Installed {
        let name = format!("largesse-{name}-{}", std::process::id());
        let installed = Installed(std::env::temp_dir().join(name));
        installed.make("install");
        installed
    }

    /// Runs a target of the Makefile, as a user who has no cargo.
    fn make(&self, target: &str) {
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(workspace()).arg(target).arg(format!("PREFIX={}", self.0.display()));
        run(make.env("PATH", "/usr/bin:/bin"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the options of pkg-config for a compiler.
    fn flags(&self) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.args(["--cflags", "--libs", "largesse"]);
        let found = run(command.env("PKG_CONFIG_PATH", self.path("lib/pkgconfig")));
        found.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn everything_below(folder: &Path) -> String {
    run(Command::new("find").arg(folder))
}

/// Checks that a linked program has the library loaded once, both alone and under `largesse run`.
#[track_caller]
fn check_linked(installed: &Installed, program: &Path) {
    let served = "abi 2, hooked 1, blocks 1, copies 1\n";
    assert_eq!(run(&mut Command::new(program)), served, "started directly");
    let launched = run(Command::new(installed.path("bin/largesse")).arg("run").arg("--").arg(program));
    assert_eq!(launched, served, "started by largesse run");
}

#[test]
fn uninstall_removes_everything() {
    let installed = Installed::new("removed");
    std::fs::write(installed.path("share/other"), "of another package").unwrap();
    let listed = everything_below(&installed.0);
    for name in ["bin/largesse-lisp", "lib/largesse/liblargesse.so.2", "share/man/man1/largesse-run.1"] {
        assert!(listed.contains(name), "{name} is not in {listed}");
    }
    installed.make("install"); // a second time, over the first
    installed.make("uninstall");
    let other = installed.path("share/other");
    let left = format!("{0}\n{0}/share\n{1}\n", installed.0.display(), other.display());
    assert_eq!(everything_below(&installed.0), left);
}

#[test]
fn foreign_files_are_not_replaced() {
    let installed = Installed::new("foreign");
    installed.make("uninstall");
    assert!(!installed.0.exists(), "the installer made the prefix, too");
    std::fs::create_dir_all(installed.path("bin")).unwrap();
    std::fs::write(installed.path("bin/largesse"), "of a wheel").unwrap();
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(workspace()).arg("install").arg(format!("PREFIX={}", installed.0.display()));
    let output = make.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("remove it first"), "{message}");
    assert_eq!(std::fs::read_to_string(installed.path("bin/largesse")).unwrap(), "of a wheel");
}

/// Changes the executable `file` so that it seems to be for another processor, RISC-V.
fn for_another_machine(file: &Path) {
    change(file, |bytes| bytes[18..20].copy_from_slice(&[0xf3, 0]));
}

/// Changes the executable `file` so that it seems to need version 9 of the C library.
fn for_a_newer_c_library(file: &Path) {
    const NAME: &[u8] = b"\0GLIBC_";
    change(file, |bytes| {
        let at =
            bytes.windows(NAME.len()).position(|window| window == NAME).expect("a version of the C library");
        bytes[at + NAME.len()] = b'9';
    });
}

fn change(file: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(file).unwrap();
    change(&mut bytes);
    std::fs::write(file, bytes).unwrap();
}

/// Runs the installer of an archive whose command `break_command` has changed, with this home folder. Checks that it
/// refuses and installs nothing, and returns its message.
#[track_caller]
fn refusal(name: &str, break_command: impl FnOnce(&Path), home: &str) -> String {
    let tree = std::env::temp_dir().join(format!("largesse-{name}-{}", std::process::id()));
    run(Command::new(workspace().join("packaging/tree.sh")).arg(&tree).env("PATH", "/usr/bin:/bin"));
    break_command(&tree.join("bin/largesse"));
    let home = if home.is_empty() { tree.join("home") } else { PathBuf::from(home) };
    let output = Command::new(tree.join("install.sh")).env("HOME", &home).output().unwrap();
    let installed = home.join(".local").exists();
    std::fs::remove_dir_all(&tree).unwrap();
    assert!(!output.status.success() && !installed, "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn archive_for_another_machine_is_refused() {
    for (name, change) in
        [("machine", for_another_machine as fn(&Path)), ("c-library", for_a_newer_c_library as fn(&Path))]
    {
        let message = refusal(name, change, "");
        assert!(message.contains("the programs of this archive do not run here"), "{message}");
        assert!(message.contains("They need glibc 2.28 or later and the processor"), "{message}");
    }
}

#[test]
fn home_that_cannot_be_written_is_named() {
    // Not even root may make folders there.
    let message = refusal("home", |_| (), "/proc");
    assert!(message.contains("/proc/.local cannot be made: name a prefix"), "{message}");
}

#[test]
fn library_for_another_machine_is_refused() {
    let stage = Stage::new();
    let start = |change: fn(&Path)| {
        let library = stage.path("other.so");
        std::fs::copy(stage.library(), &library).unwrap();
        change(&library);
        Run::new(&stage, &["echo", "started"]).under(&[]).variable("LARGESSE_LIBRARY", library).finish()
    };
    let ran = start(for_another_machine);
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(125), ""), "{ran:#?}");
    assert!(ran.hints.contains("cannot be preloaded: it is built for another processor"), "{ran:#?}");
    assert!(ran.stderr.contains("Install Largesse again"), "{ran:#?}");
    // The loader itself refuses.
    let ran = start(for_a_newer_c_library);
    assert!(ran.exit != Exit::Code(0) && ran.stdout.is_empty(), "{ran:#?}");
    assert!(ran.stderr.contains("version `GLIBC_9"), "{ran:#?}");
}

#[test]
fn pkg_config_links_one_copy() {
    if !has_program("pkg-config", &["--version"]) || !has_program("cc", &["--version"]) {
        return;
    }
    let installed = Installed::new("pkg-config");
    let program = installed.path("linked");
    let source = workspace().join("tests/programs/linked.c");
    run(Command::new("cc").arg("-o").arg(&program).arg(source).args(installed.flags()));
    check_linked(&installed, &program);
}

#[test]
fn cmake_links_one_copy() {
    if !has_program("cmake", &["--version"]) || !has_program("cc", &["--version"]) {
        return;
    }
    let installed = Installed::new("cmake");
    let project = installed.path("project");
    std::fs::create_dir(&project).unwrap();
    let source = workspace().join("tests/programs/linked.c");
    let lists = format!(
        "cmake_minimum_required(VERSION 3.18)\nproject(linked C)\nfind_package(largesse 0.1 REQUIRED)\n\
         add_executable(linked {})\ntarget_link_libraries(linked largesse::largesse)\n",
        source.display()
    );
    std::fs::write(project.join("CMakeLists.txt"), lists).unwrap();
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", installed.0.display());
    run(Command::new("cmake").arg("-S").arg(&project).arg("-B").arg(project.join("build")).arg(prefix));
    run(Command::new("cmake").arg("--build").arg(project.join("build")));
    check_linked(&installed, &project.join("build/linked"));
}
