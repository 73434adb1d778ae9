//! Programs in trouble: a message and a status, or the right data, and never wrong ones.

use largesse_tests::{Exit, Ran, Run, Stage, is_root, skipped};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};
use std::time::{Duration, Instant};

/// Far memory for ordinary users needs `/dev/userfaultfd` or the sysctl.
fn permitted() -> bool {
    let yes = is_root() || std::fs::File::options().read(true).write(true).open("/dev/userfaultfd").is_ok();
    if !yes {
        skipped("userfaultfd is not permitted here");
    }
    yes
}

/// A folder on a disk, whatever the temporary folder is.
fn store_in(folder: &Path) -> String {
    format!("file:{}", folder.join("pages").display())
}

fn program(stage: &Stage) -> Option<PathBuf> {
    if !permitted() {
        return None;
    }
    stage.compiled("far_trouble.c", &["-lpthread", "-O2"])
}

/// What it says over a file.
fn over_file(stage: &Stage, words: &[&str]) -> Option<Ran> {
    let program = program(stage)?;
    let store = store_in(&stage.scratch());
    let run = words.iter().fold(Run::new(stage, &[program]), |run, word| run.arg(word));
    Some(run.under(&["--local=8M", "--far", &store]).finish())
}

#[test]
fn a_program_that_closes_what_it_does_not_know_keeps_its_pages() {
    let stage = Stage::new();
    for how in ["closefrom", "close"] {
        let Some(ran) = over_file(&stage, &[how, "32"]) else { return };
        let ran = ran.succeeded();
        // As in a run without the library: what `Run` starts with is 0 to 2.
        assert_eq!(ran.stdout, "number 3\nnumbers 3 to 22\n0 wrong\n", "{how}");
        assert!(ran.report["far"]["fills"].as_u64().unwrap() > 1000, "{how} {ran:#?}");
    }
}

#[test]
fn a_child_made_behind_our_back_dies_rather_than_reading_zeros() {
    let stage = Stage::new();
    let Some(ran) = over_file(&stage, &["children", "32"]) else { return };
    let expected = "clone reads: signal 11\nclone execs: status 0\n\
        _Fork reads: signal 11\n_Fork execs: status 0\nposix_spawn: status 0\nvfork reads: status 0\n\
        fork reads: status 0\n0 wrong\n";
    assert_eq!(ran.succeeded().stdout, expected);
}

#[test]
fn handlers_of_the_program_see_its_own_faults_and_none_of_ours() {
    let stage = Stage::new();
    let Some(ran) = over_file(&stage, &["handlers", "32"]) else { return };
    assert_eq!(ran.succeeded().stdout, "caught 0\ncaught 100\n0 wrong\n");
}

#[test]
fn a_static_array_and_thousands_of_blocks_are_far_at_once() {
    let stage = Stage::new();
    let Some(ran) = over_file(&stage, &["regions", "16"]) else { return };
    let ran = ran.succeeded();
    assert_eq!(ran.stdout, "0 wrong\n");
    assert!(ran.report["far"]["mapped_bytes"].as_u64().unwrap() > 160 << 20, "{ran:#?}");
}

/// A file system of so many bytes, in a file.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(stage: &Stage, bytes: u64) -> Option<SmallDisk> {
        let (image, at) = (stage.path("disk"), stage.path("mounted"));
        std::fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        std::fs::create_dir(&at).unwrap();
        let run = |words: &[&std::ffi::OsStr]| {
            Command::new(words[0]).args(&words[1..]).output().is_ok_and(|done| done.status.success())
        };
        let mounted = is_root()
            && run(&["mkfs.ext4".as_ref(), "-q".as_ref(), image.as_ref()])
            && run(&["mount".as_ref(), "-o".as_ref(), "loop".as_ref(), image.as_ref(), at.as_ref()]);
        if !mounted {
            skipped("no file system can be mounted here");
        }
        mounted.then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_is_a_block_that_is_not_given() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let Some(disk) = SmallDisk::new(&stage, 256 << 20) else { return };
    let store = store_in(&disk.0);
    let run = Run::new(&stage, &[&program]).arg("full").arg("32");
    let ran = run.under(&["--local=8M", "--far", &store]).finish().succeeded();
    assert_eq!(ran.stdout, "full\nroom again\n0 wrong\n", "{ran:#?}");
    assert!(ran.not_granted("out-of-memory") > 0, "{ran:#?}");
}

/// The program, stopped between steps.
struct Steps {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Steps {
    fn start(run: &Run<'_>) -> Steps {
        let mut child = run.start();
        let said = BufReader::new(child.stdout.take().unwrap());
        Steps { child, said }
    }

    /// Over a file, in which 24 MiB that were written lie now, but for 8.
    fn written(stage: &Stage) -> Option<Steps> {
        let run = Run::new(stage, &[program(stage)?]).arg("steps").arg("24");
        let mut steps = Steps::start(&run.under(&["--local=8M", "--far", &store_in(&stage.scratch())]));
        assert_eq!(steps.does("write 1"), "written");
        Some(steps)
    }

    /// One step, and the answer to it; nothing when the program has ended.
    fn does(&mut self, step: &str) -> String {
        let _ = writeln!(self.child.stdin.as_mut().unwrap(), "{step}");
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The store: a file without a name that only threads of ours have open.
    fn store(&self) -> PathBuf {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let files = threads.flatten().filter_map(|thread| std::fs::read_dir(thread.path().join("fd")).ok());
        let mut files = files.flat_map(|files| files.flatten().map(|file| file.path()));
        let is_store = |file: &PathBuf| {
            std::fs::read_link(file).is_ok_and(|name| name.to_string_lossy().contains("pages."))
        };
        files.find(is_store).expect("a store")
    }

    /// To the end: how, and its messages.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut messages = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        (self.child.wait().unwrap().code(), messages)
    }

    /// It ended for want of its pages, and said so.
    #[track_caller]
    fn ends_lost(self, why: &str) {
        let (status, messages) = self.end();
        assert_eq!(status, Some(74), "{messages}");
        assert!(messages.contains("far memory is lost") && messages.contains(why), "{messages}");
    }
}

/// Pages that were written to the store, by their place.
fn pages_of(store: &Path) -> BTreeMap<u64, Vec<u8>> {
    let file = std::fs::File::open(store).unwrap();
    let seek = |from: u64, what| {
        // SAFETY: our own descriptor.
        u64::try_from(unsafe { libc::lseek(file.as_raw_fd(), from.cast_signed(), what) }).ok()
    };
    let (mut pages, mut at) = (BTreeMap::new(), 0);
    while let Some(data) = seek(at, libc::SEEK_DATA) {
        at = seek(data, libc::SEEK_HOLE).unwrap();
        for place in (data..at).step_by(4096) {
            let mut page = vec![0; 4096];
            file.read_exact_at(&mut page, place).unwrap();
            pages.insert(place, page);
        }
    }
    pages
}

/// Somebody else writes them.
fn write_pages(store: &Path, pages: &BTreeMap<u64, Vec<u8>>) {
    let file = std::fs::File::options().write(true).open(store).unwrap();
    for (&place, page) in pages {
        file.write_all_at(page, place).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn a_bit_that_flips_in_the_store_is_noticed() {
    let stage = Stage::new();
    let Some(mut steps) = Steps::written(&stage) else { return };
    let mut pages = pages_of(&steps.store());
    pages.values_mut().for_each(|page| page[1000] ^= 16);
    write_pages(&steps.store(), &pages);
    assert_eq!(steps.does("read 1"), "");
    steps.ends_lost("damaged or out of date");
}

#[test]
fn a_page_of_long_ago_is_noticed() {
    let stage = Stage::new();
    let Some(mut steps) = Steps::written(&stage) else { return };
    assert_eq!(steps.does("read 1"), "0 wrong");
    let old = pages_of(&steps.store());
    assert_eq!(steps.does("write 2"), "written");
    write_pages(&steps.store(), &old);
    assert_eq!(steps.does("read 2"), "");
    steps.ends_lost("damaged or out of date");
}

#[test]
fn a_store_that_is_cut_off_is_noticed_whoever_is_left_to_say_so() {
    let stage = Stage::new();
    for leave in [false, true] {
        let Some(mut steps) = Steps::written(&stage) else { return };
        if leave {
            // The first thread ends: what the others say must reach the same standard error.
            assert_eq!(steps.does("leave"), "left");
        }
        std::fs::File::options().write(true).open(steps.store()).unwrap().set_len(0).unwrap();
        assert_eq!(steps.does("read 1"), "");
        steps.ends_lost("store");
    }
}

#[test]
fn the_last_message_goes_where_the_program_wants_its_messages() {
    let stage = Stage::new();
    let Some(mut steps) = Steps::written(&stage) else { return };
    let messages = stage.scratch().join("messages");
    assert_eq!(steps.does(&format!("stderr {}", messages.display())), "stderr");
    std::fs::File::options().write(true).open(steps.store()).unwrap().set_len(0).unwrap();
    assert_eq!(steps.does("read 1"), "");
    assert_eq!(steps.end(), (Some(74), String::new()));
    assert!(std::fs::read_to_string(messages).unwrap().contains("far memory is lost"));
}

#[test]
fn what_is_freed_leaves_the_store() {
    let stage = Stage::new();
    let Some(mut steps) = Steps::written(&stage) else { return };
    let blocks = |steps: &Steps| std::fs::metadata(steps.store()).unwrap().blocks() * 512;
    let before = blocks(&steps);
    assert!(before >= 24 << 20, "{before}");
    assert_eq!(steps.does("free"), "free");
    // A program may take the same again at once; what it does not take for ten seconds goes back.
    let patience = Instant::now() + Duration::from_secs(25);
    while blocks(&steps) > before - (22 << 20) {
        assert!(Instant::now() < patience, "{} of {before}", blocks(&steps));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(steps.does("more"), "more");
    assert_eq!(steps.end().0, Some(0));
}

#[test]
fn a_limit_on_files_is_a_block_that_is_not_given() {
    let stage = Stage::new();
    let Some(mut steps) = Steps::written(&stage) else { return };
    assert_eq!(steps.does("limit 48"), "limit");
    assert_eq!(steps.does("more"), "no more");
    assert_eq!(steps.does("read 1"), "0 wrong");
    assert_eq!(steps.end(), (Some(0), String::new()));
}

#[test]
fn a_program_that_becomes_another_user_keeps_its_pages_and_its_children_say_that_they_cannot() {
    if !is_root() {
        return skipped("only root can become another user");
    }
    let stage = Stage::new();
    for step in ["user", "root /usr"] {
        let Some(mut steps) = Steps::written(&stage) else { return };
        assert_eq!(steps.does("fork 1"), "fork: status 0");
        assert_eq!(steps.does(step), step.split(' ').next().unwrap());
        assert_eq!(steps.does("read 1"), "0 wrong");
        assert_eq!(steps.does("more"), "more");
        assert_eq!(steps.does("fork 1"), "fork: status 74", "{step}");
        assert_eq!(steps.does("read 1"), "0 wrong");
        let (status, messages) = steps.end();
        assert_eq!(status, Some(0));
        assert!(messages.contains("far memory cannot follow this fork"), "{messages}");
    }
}

#[test]
fn a_killed_program_leaves_nothing() {
    let stage = Stage::new();
    let Some(mut steps) = Steps::written(&stage) else { return };
    let group = steps.child.id();
    steps.child.kill().unwrap();
    assert_eq!(steps.end().0, None);
    assert_eq!(std::fs::read_dir(stage.scratch()).unwrap().flatten().filter(|it| !is_report(it)).count(), 0);
    let ours = |name: &std::ffi::OsString| name.to_string_lossy().contains(&group.to_string());
    let shared = std::fs::read_dir("/dev/shm").unwrap().flatten().filter(|it| ours(&it.file_name()));
    assert_eq!(shared.count(), 0);
    let member = |stat: String| stat.rsplit(')').next()?.split(' ').nth(3)?.parse().ok();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    assert!(stats.filter_map(member).all(|it: u32| it != group), "a process is left");
}

fn is_report(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with("report-")
}

#[test]
fn a_program_that_is_stopped_and_goes_on_is_as_it_was() {
    let stage = Stage::new();
    let Some(_) = program(&stage) else { return };
    let Some(paged) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let run = Run::new(&stage, &[&paged]).arg("32").arg("4").arg("20000");
    let mut steps = Steps::start(&run.under(&["--local=8M", "--far", &store_in(&stage.scratch())]));
    let pid = i32::try_from(steps.child.id()).unwrap();
    for _ in 0..20 {
        for signal in [libc::SIGSTOP, libc::SIGCONT] {
            // SAFETY: a process of ours that nobody has waited for.
            unsafe { libc::kill(pid, signal) };
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    let mut line = String::new();
    steps.said.read_line(&mut line).unwrap();
    assert_eq!(line, "4194304 words, 0 wrong\n");
    assert_eq!(steps.end().0, Some(0));
}

#[test]
fn a_program_that_ends_while_pages_are_on_their_way_writes_no_zeros() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    for others in ["0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "2", "2", "2", "2"] {
        let run = Run::new(&stage, &[&program]).arg("ends").arg("8").arg(others);
        let options = ["--local=3M", "--far=memory:", "--page-size=4K", "--prefetch=off"];
        let ran = run.under(&options).finish();
        assert_eq!((ran.exit, ran.hints.as_str()), (Exit::Code(0), ""));
        assert!(ran.stdout.len() >= 15 << 20, "{}", ran.stdout.len());
        let wrong = ran.stdout.bytes().filter(|&byte| byte != b'7').count();
        assert_eq!(wrong, 0, "of {}", ran.stdout.len());
    }
}

#[test]
fn userfaultfd_behind_a_filter_is_refused_with_what_to_do_and_older_calls_do() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let Some(filtered) = stage.compiled("filtered.c", &[]) else { return };
    let run = |errno: i32, calls: &str| {
        let run =
            Run::new(&stage, &[filtered.clone().into_os_string(), errno.to_string().into(), calls.into()]);
        let store = store_in(&stage.scratch());
        let words = [
            stage.command().into_os_string(),
            "run".into(),
            "--local=8M".into(),
            "--far".into(),
            store.into(),
            "--".into(),
        ];
        let words = words.into_iter().chain([program.clone().into(), "closefrom".into(), "16".into()]);
        words.fold(run, Run::arg).finish()
    };
    for errno in [libc::EPERM, libc::ENOSYS] {
        let ran = run(errno, "userfaultfd");
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(125), ""), "{ran:#?}");
        assert!(ran.hints.contains("userfaultfd") && ran.hints.contains("largesse doctor"), "{ran:#?}");
        let ran = run(errno, "close_range,pidfd_getfd").succeeded();
        assert_eq!(ran.stdout, "number 3\nnumbers 3 to 22\n0 wrong\n");
    }
    let ran = run(libc::EAGAIN, "io_setup");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(125), ""), "{ran:#?}");
    assert!(ran.hints.contains("fs.aio-max-nr"), "{ran:#?}");
}

#[test]
fn the_least_local_memory_is_enough_to_go_on_and_less_is_refused() {
    let stage = Stage::new();
    let Some(_) = program(&stage) else { return };
    let Some(paged) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let run = Run::new(&stage, &[&paged]).arg("8").arg("8").arg("300");
    let store = store_in(&stage.scratch());
    for local in ["1M", "1%"] {
        let ran = run.clone().under(&["--local", local, "--far", &store]).finish().succeeded();
        assert_eq!(ran.stdout, "1048576 words, 0 wrong\n", "{local}");
    }
    let ran = run.under(&["--local=1023K", "--far", &store]).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(2), ""), "{ran:#?}");
    assert!(format!("{}{}", ran.hints, ran.stderr).contains("1M"), "{ran:#?}");
}
