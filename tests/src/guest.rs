//! Runs commands in an emulated machine (the *guest*) of four NUMA nodes with an older kernel, which
//! `tests/guest/boot.sh` starts.

use crate::built::{built_command, built_library, target, workspace};
use crate::features::has_program;
use crate::skip::skipped;
use crate::stage::{compile, permit};
use crate::wait::poll;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time after which a guest is considered hung. The longest test takes 160 seconds when all guests run at the same time
/// on two processors.
const DEADLINE: Duration = Duration::from_secs(1200);
const DISK: &str = "192M";

/// A guest in preparation: the folder that becomes its disk, and the commands that it will run.
#[derive(Debug)]
pub struct Guest {
    folder: PathBuf,
    kernel: PathBuf,
    script: String,
}

/// The result of one command in the guest.
#[derive(Debug)]
pub struct Done {
    /// The name that was given to the command.
    pub name: String,
    /// Exit status of the command, or 128 plus the number of the signal that ended it.
    pub exit: i32,
    /// The command's standard output and standard error.
    pub output: String,
}

impl Guest {
    /// Prepares a guest with the library, the command, a shell, and the libraries that they need. Without an emulator
    /// or a kernel, reports that the test is skipped and returns `None`.
    #[must_use]
    pub fn new() -> Option<Guest> {
        let Some(kernel) = kernel() else {
            skipped("no kernel for the guest (make test-numa fetches it)");
            return None;
        };
        if !has_program("qemu-system-x86_64", &["--version"]) || !has_program("mkfs.ext4", &["-V"]) {
            return None;
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("largesse-guest-{}-{number}", std::process::id());
        let mut guest = Guest { folder: std::env::temp_dir().join(name), kernel, script: String::new() };
        let root = guest.root();
        for folder in ["bin", "dev", "proc", "sys", "tmp", "scratch"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder for temporary files");
        }
        guest.put(Path::new("/bin/busybox"), "bin/busybox");
        for name in [
            "sh", "mount", "cat", "echo", "poweroff", "chmod", "sleep", "kill", "grep", "sed", "ls", "env",
            "pidof", "cmp", "ip",
        ] {
            std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).expect("a link in our folder");
        }
        guest.put(Path::new("/usr/bin/setpriv"), "bin/setpriv");
        guest.put(&built_command(), "bin/largesse");
        guest.put(&built_library(), "bin/liblargesse.so");
        Some(guest)
    }

    /// Compiles a file of `tests/programs` to `/bin/NAME` of the guest.
    pub fn compiled(&mut self, name: &str, options: &[&str]) {
        let to = self.root().join("bin").join(Path::new(name).file_stem().expect("a file"));
        assert!(compile(name, &to, options), "a C compiler is needed");
        self.needs(&to);
    }

    /// Adds a command line for the guest's shell. The program `setpriv` must be called by its path, `/bin/setpriv`,
    /// because the shell has a command of this name.
    pub fn command(&mut self, name: &str, words: &str) {
        // The empty `echo` puts the status on a line of its own even if the output does not end with a newline.
        let _ = writeln!(
            self.script,
            "echo '== {name}'\n( {words} ) 2>&1\nstatus=$?; echo; echo \"== exit $status\""
        );
    }

    /// Boots the guest, runs the commands in order, and powers it off. Returns their results.
    #[must_use]
    pub fn run(&self) -> Vec<Done> {
        let init = format!(
            "#!/bin/sh\nmount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev\n\
             ip link set lo up; chmod 1777 /tmp /scratch; cd /scratch; export PATH=/bin TMPDIR=/scratch HOME=/scratch\n{}\n\
             echo '== end'\npoweroff -f\n",
            self.script
        );
        let root = self.root();
        std::fs::write(root.join("init"), init).expect("our folder");
        permit(&root.join("init"), 0o755);
        let disk = self.folder.join("disk");
        let made =
            Command::new("mkfs.ext4").args(["-q", "-F", "-d"]).arg(&root).arg(&disk).arg(DISK).output();
        let made = made.expect("mkfs.ext4, which was found");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let console = boot(&self.kernel, &disk);
        let done = read(&console);
        assert!(console.contains("== end"), "the guest did not come to its end:\n{console}");
        done
    }

    fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Copies a program and the libraries it is linked with to the guest's disk.
    fn put(&mut self, from: &Path, to: &str) {
        let to = self.root().join(to);
        std::fs::copy(from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        permit(&to, 0o755);
        self.needs(&to);
    }

    fn needs(&self, program: &Path) {
        let output = Command::new("ldd").arg(program).output().expect("ldd, which comes with the C library");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let libraries: BTreeSet<&str> =
            text.split_whitespace().filter(|word| word.starts_with('/')).collect();
        for library in libraries {
            let to = self.root().join(library.trim_start_matches('/'));
            if !to.exists() {
                std::fs::create_dir_all(to.parent().expect("a file below the root")).expect("our folder");
                std::fs::copy(library, &to).expect("a library that the loader finds");
                permit(&to, 0o755);
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the newest kernel that `ci/numa.sh` fetched.
fn kernel() -> Option<PathBuf> {
    let target = target().join("guest");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(target).ok()?.filter_map(|it| Some(it.ok()?.path())).collect();
    found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")));
    found.sort();
    found.pop()
}

fn boot(kernel: &Path, disk: &Path) -> String {
    let mut emulator = Command::new(workspace().join("tests/guest/boot.sh"))
        .args([kernel, disk])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the script that starts the emulator");
    let mut pipe = emulator.stdout.take().expect("piped");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).replace('\r', "")
    });
    let _ = poll(DEADLINE, || emulator.try_wait().expect("a child of this process"));
    let _ = emulator.kill();
    let _ = emulator.wait();
    reader.join().unwrap_or_default()
}

/// Returns the result of each command from the text that the guest printed on its console.
fn read(console: &str) -> Vec<Done> {
    let parts = console.split("== ").skip(1);
    let mut done: Vec<Done> = Vec::new();
    for part in parts {
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        match first.strip_prefix("exit ").and_then(|status| status.trim().parse().ok()) {
            Some(exit) => done.iter_mut().last().into_iter().for_each(|it| it.exit = exit),
            None if first.trim() == "end" => {}
            None => {
                let output = rest.trim().to_owned();
                done.push(Done { name: first.trim().to_owned(), exit: -1, output });
            }
        }
    }
    done
}
