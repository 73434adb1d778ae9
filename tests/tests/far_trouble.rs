//! Tests programs under failures of the store, of limits and of their own: they end with a message and a status, or
//! continue with the right data.

use largesse_tests::{
    Exit, Ran, Run, Stage, Steps, User, events_are_permitted, fault_engines, is_root, shared_memory, signal,
    skipped, stop, store_in, users, wait_until,
};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn program(stage: &Stage) -> Option<PathBuf> {
    stage.compiled("far_trouble.c", &["-lpthread", "-O2"])
}

/// Runs `far_trouble.c` with the arguments `words` and a file as its store: once as the current user, and if that is
/// root, once as an ordinary user. Passes each result to `check`.
fn over_file(words: &[&str], check: impl Fn(Ran)) {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    for user in users() {
        let run = words.iter().fold(Run::new(&stage, &[&program]), |run, word| run.arg(word));
        check(run.as_user(user).under(&["--local=8M", "--far", &stage.store()]).finish());
    }
}

#[test]
fn program_that_closes_foreign_descriptors_keeps_its_pages() {
    for how in ["closefrom", "close"] {
        over_file(&[how, "32"], |ran| {
            let ran = ran.succeeded();
            // The numbers are those of a run without the library: the program starts with descriptors 0 to 2.
            assert_eq!(ran.stdout, "number 3\nnumbers 3 to 22\n0 wrong\n", "{how}");
            assert!(ran.report["far"]["fills"].as_u64().unwrap() > 1000, "{how} {ran:#?}");
        });
    }
}

#[test]
fn child_made_without_fork_handlers_dies_rather_than_reading_zeros() {
    let expected = "clone reads: signal 11\nclone execs: status 0\n\
        _Fork reads: signal 11\n_Fork execs: status 0\nposix_spawn: status 0\nvfork reads: status 0\n\
        fork reads: status 0\n0 wrong\n";
    over_file(&["children", "32"], |ran| assert_eq!(ran.succeeded().stdout, expected));
}

#[test]
fn programs_handlers_see_only_its_own_faults() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    for user in users() {
        for engine in fault_engines(user) {
            let run = Run::new(&stage, &[&program]).arg("handlers").arg("32").as_user(user);
            let options = ["--local=8M", "--far", &stage.store(), "--fault-engine", engine];
            let ran = run.under(&options).finish().succeeded();
            assert_eq!(ran.stdout, "caught 0\ncaught 100\n0 wrong\n", "{user:?} {engine}");
        }
    }
}

#[test]
fn static_array_and_thousands_of_blocks_are_far_at_once() {
    over_file(&["regions", "16"], |ran| {
        let ran = ran.succeeded();
        assert_eq!(ran.stdout, "0 wrong\n");
        for (region, mib) in [("static", 16), ("heap", 140)] {
            let all = ran.report["far"]["regions"].as_array().unwrap().iter();
            let mapped =
                all.filter(|it| it["region"] == region).map(|it| it["mapped_bytes"].as_u64().unwrap());
            assert!(mapped.sum::<u64>() >= mib << 20, "{region}: {ran:#?}");
        }
    });
}

/// A small file system, which is in a file. It is unmounted when this is dropped.
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
            return None;
        }
        let disk = SmallDisk(at);
        std::fs::set_permissions(&disk.0, Permissions::from_mode(0o1777)).unwrap();
        Some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn malloc_fails_when_the_disk_is_full() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let Some(disk) = SmallDisk::new(&stage, 256 << 20) else { return };
    let store = store_in(&disk.0);
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg("full").arg("32").as_user(user);
        let ran = run.under(&["--local=8M", "--far", &store]).finish().succeeded();
        assert_eq!(ran.stdout, "full\nroom again\n0 wrong\n", "{user:?} {ran:#?}");
        assert!(ran.not_granted("out-of-memory") > 0, "{user:?} {ran:#?}");
    }
}

// This test has been seen to fail (74, "No space left on device") when a failed write-back ends the program.
#[test]
fn pages_stay_resident_when_the_disk_is_full_after_a_fork() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let Some(disk) = SmallDisk::new(&stage, 128 << 20) else { return };
    let store = store_in(&disk.0);
    for user in users() {
        for engine in fault_engines(user) {
            let run = Run::new(&stage, &[&program]).arg("sides").arg("64").as_user(user);
            let options = ["--local=8M", "--far", &store, "--fault-engine", engine];
            let ran = run.under(&options).finish().succeeded();
            assert_eq!(ran.stdout, "child: status 0\n0 wrong\n", "{user:?} {engine} {ran:#?}");
            let [stayed, over] =
                ["no_room", "over_limit"].map(|count| ran.report["far"][count].as_u64().unwrap());
            assert!(stayed > 0 && over > 0, "{user:?} {engine}: {stayed} {over}");
        }
    }
}

/// Returns the pages that were written to the store, each with its offset in bytes.
fn pages_of(store: &Path) -> BTreeMap<u64, Vec<u8>> {
    let file = std::fs::File::open(store).unwrap();
    let seek = |from: u64, what| {
        // SAFETY: the descriptor is open, and the other arguments are numbers.
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

/// Overwrites pages of the store at these offsets, as another process could.
fn write_pages(store: &Path, pages: &BTreeMap<u64, Vec<u8>>) {
    let file = std::fs::File::options().write(true).open(store).unwrap();
    for (&place, page) in pages {
        file.write_all_at(page, place).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn flipped_bit_in_the_store_is_detected() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        let mut pages = pages_of(&steps.store());
        pages.values_mut().for_each(|page| page[1000] ^= 16);
        write_pages(&steps.store(), &pages);
        assert_eq!(steps.does("read 1"), "");
        steps.ends_lost("damaged or out of date");
    }
}

#[test]
fn old_version_of_a_page_is_detected() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        assert_eq!(steps.does("read 1"), "0 wrong");
        let old = pages_of(&steps.store());
        assert_eq!(steps.does("write 2"), "written");
        write_pages(&steps.store(), &old);
        assert_eq!(steps.does("read 2"), "");
        steps.ends_lost("damaged or out of date");
    }
}

#[test]
fn truncated_store_is_detected_even_without_the_first_thread() {
    let stage = Stage::new();
    for (user, leave) in users().into_iter().flat_map(|user| [(user, false), (user, true)]) {
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        if leave {
            // After the first thread has ended, messages must still reach the program's standard error.
            assert_eq!(steps.does("leave"), "left");
        }
        std::fs::File::options().write(true).open(steps.store()).unwrap().set_len(0).unwrap();
        assert_eq!(steps.does("read 1"), "");
        steps.ends_lost("store");
    }
}

#[test]
fn last_message_follows_a_redirected_standard_error() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        let messages = stage.scratch().join(format!("messages-{user:?}"));
        assert_eq!(steps.does(&format!("stderr {}", messages.display())), "stderr");
        std::fs::File::options().write(true).open(steps.store()).unwrap().set_len(0).unwrap();
        assert_eq!(steps.does("read 1"), "");
        assert_eq!(steps.end(), (Some(74), String::new()), "{user:?}");
        assert!(std::fs::read_to_string(messages).unwrap().contains("far memory is lost"), "{user:?}");
    }
}

#[test]
fn freed_memory_is_removed_from_the_store() {
    let stage = Stage::new();
    let blocks = |steps: &Steps| std::fs::metadata(steps.store()).unwrap().blocks() * 512;
    let programs = users().into_iter().map_while(|user| Steps::written(user, &stage));
    let freed = programs.map(|mut steps| {
        let before = blocks(&steps);
        assert!(before >= 24 << 20, "{before}");
        assert_eq!(steps.does("free"), "free");
        (steps, before)
    });
    let freed: Vec<_> = freed.collect();
    // Freed pages are kept for reuse for ten seconds, and then removed from the store.
    for (mut steps, before) in freed {
        let is_smaller = || blocks(&steps) <= before - (22 << 20);
        wait_until("the store has given freed pages back", Duration::from_secs(60), is_smaller);
        assert_eq!(steps.does("more"), "more");
        assert_eq!(steps.end().0, Some(0));
    }
}

#[test]
fn malloc_fails_at_a_limit_on_file_size() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        assert_eq!(steps.does("limit 48"), "limit");
        assert_eq!(steps.does("more"), "no more");
        assert_eq!(steps.does("read 1"), "0 wrong");
        let (status, messages) = steps.end();
        assert_eq!(status, Some(0), "{messages}");
        let said = messages.starts_with("largesse: no memory for ")
            && messages.contains("ulimit -f limits files to ");
        assert!(said && messages.lines().count() == 1, "one line names the limit: {messages}");
    }
}

#[test]
fn program_that_changes_user_keeps_its_pages_but_its_children_end() {
    if !is_root() {
        return skipped("only root can become another user");
    }
    let stage = Stage::new();
    for step in ["user", "root /usr"] {
        let Some(mut steps) = Steps::written(User::Current, &stage) else { return };
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
fn killed_program_leaves_no_file_and_no_process() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        let group = steps.id();
        steps.kill();
        assert_eq!(steps.end().0, None);
        let files = std::fs::read_dir(stage.scratch()).unwrap().flatten();
        assert_eq!(files.filter(|it| !is_report(it)).count(), 0, "{user:?}");
        assert_eq!(shared_memory(group), Vec::<String>::new(), "{user:?}");
        let member = |stat: String| stat.rsplit(')').next()?.split(' ').nth(3)?.parse().ok();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let stats = processes.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
        assert!(stats.filter_map(member).all(|it: u32| it != group), "{user:?}: a process is left");
    }
}

fn is_report(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with("report-")
}

/// Returns the number of bytes that a process has written to disks.
fn written_by(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
}

/// The program is stopped for longer than any transfer takes. The library must not report this as a failure.
#[test]
fn stopped_program_continues_with_its_data() {
    let stage = Stage::new();
    let Some(stress) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        let run = Run::new(&stage, &[&stress]).arg("32").arg("4").arg("until-eof").as_user(user);
        let mut steps = Steps::start(&run.under(&["--local=8M", "--far", &stage.store()]));
        let pid = steps.id();
        let deadline = Duration::from_secs(60);
        wait_until("pages are written to the store", deadline, || written_by(pid) > 16 << 20);
        for _ in 0..20 {
            stop(pid);
            // Writes that had been handed to the kernel may still be counted. The looks take longer than any transfer,
            // which is what the test is about.
            let (mut before, mut same) = (u64::MAX, 0);
            wait_until("the stopped program writes nothing", deadline, || {
                let last = std::mem::replace(&mut before, written_by(pid));
                same = if last == before { same + 1 } else { 0 };
                same == 5
            });
            signal(pid, libc::SIGCONT);
            wait_until("the program writes again", deadline, || written_by(pid) > before);
        }
        steps.close_input();
        assert_eq!(steps.says(), "0 wrong", "{user:?}");
        assert_eq!(steps.end().0, Some(0), "{user:?}");
    }
}

/// When a process ends, the kernel ends its threads one by one. As long as one of them is in a system call, a page
/// that is not resident must not read as zeros. This can only happen under the fault engine whose system calls wait
/// for far pages, because the other engines make pages resident before a call.
#[test]
fn program_that_ends_during_a_system_call_sends_no_zeros() {
    if !events_are_permitted() {
        return;
    }
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    for others in ["0", "0", "0", "2", "2"] {
        let run = Run::new(&stage, &[&program]).arg("ends").arg("8").arg(others);
        let options = ["--local=3M", "--far=memory:", "--page-size=4K", "--prefetch=off"];
        let ran = run.under(&options).finish();
        assert_eq!((ran.exit, ran.hints.as_str()), (Exit::Code(0), ""));
        assert!(!ran.stdout.is_empty(), "it ended before it sent anything");
        let wrong = ran.stdout.bytes().filter(|&byte| byte != b'7').count();
        assert_eq!(wrong, 0, "of {}", ran.stdout.len());
    }
}

#[test]
fn filtered_userfaultfd_is_explained_and_older_calls_suffice() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let Some(filtered) = stage.compiled("filtered.c", &[]) else { return };
    let run = |errno: i32, calls: &str| {
        let run =
            Run::new(&stage, &[filtered.clone().into_os_string(), errno.to_string().into(), calls.into()]);
        let store = stage.store();
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
fn one_mebibyte_of_local_memory_is_enough_and_less_is_refused() {
    let stage = Stage::new();
    let Some(paged) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let run = Run::new(&stage, &[&paged]).arg("8").arg("8").arg("300");
    let store = stage.store();
    for local in ["1M", "1%"] {
        let ran = run.clone().under(&["--local", local, "--far", &store]).finish().succeeded();
        assert_eq!(ran.stdout, "1048576 words, 0 wrong\n", "{local}");
    }
    let ran = run.under(&["--local=1023K", "--far", &store]).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(2), ""), "{ran:#?}");
    assert!(format!("{}{}", ran.hints, ran.stderr).contains("1M"), "{ran:#?}");
}
