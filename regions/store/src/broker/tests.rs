use super::*;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _};

/// Returns the descriptor numbers that are open in the table of a thread.
fn open_in(thread: u32) -> BTreeSet<i32> {
    let entries = std::fs::read_dir(format!("/proc/self/task/{thread}/fd")).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[test]
fn program_and_broker_have_separate_descriptors() {
    let ours = File::open("/dev/null").unwrap();
    let broker = Broker::start().unwrap();
    assert_eq!(open_in(broker.thread()), BTreeSet::from([0, 1, 2]));
    let theirs = broker.call(|| File::open("/dev/zero").unwrap().into_raw_fd());
    assert_eq!(theirs, 3);
    assert_eq!(open_in(broker.thread()), BTreeSet::from([0, 1, 2, 3]));
    // Number 3 of this table is another file, or none: closing it changes nothing there.
    //
    // SAFETY: at worst a descriptor that is not open.
    let mine = unsafe { libc::fcntl(ours.as_raw_fd(), libc::F_DUPFD, 100) };
    // SAFETY: our own descriptor.
    unsafe { libc::close(mine) };
    let mut byte = [1];
    // SAFETY: the broker's own descriptor, used and closed on its thread.
    broker.call(|| unsafe { File::from_raw_fd(theirs) }.read_exact(&mut byte).unwrap());
    assert_eq!(byte, [0]);
}

#[test]
fn table_is_emptied_without_the_system_call() {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    for listed in ["/proc/thread-self/fd", "/nowhere"] {
        std::thread::spawn(move || {
            own_table_one_by_one(listed).unwrap();
            let open = open_in(largesse_pages::thread_id()).len();
            assert_eq!(open, 1, "the folder that is being read, after {listed}");
        })
        .join()
        .unwrap();
    }
    writer.write_all(b"x").unwrap();
    drop(writer);
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all, "x");
}

#[test]
fn each_caller_gets_its_own_result() {
    let broker = Broker::start().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let broker = &broker;
            scope.spawn(move || {
                for turn in 0..500 {
                    assert_eq!(broker.call(|| thread << 32 | turn), thread << 32 | turn);
                }
            });
        }
        for _ in 0..50 {
            drop(broker.hold());
        }
    });
}

/// A calling thread would wait for ever for a broker whose thread has ended.
#[test]
fn panic_in_a_call_aborts_the_process() {
    const CHILD: &str = "TEST_BROKER_PANICS";
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts itself again, and tells so by this variable"
    )]
    let is_child = std::env::var_os(CHILD).is_some();
    if is_child {
        Broker::start().unwrap().call(|| panic!("on purpose"));
    }
    let name = "broker::tests::panic_in_a_call_aborts_the_process";
    let program = std::env::current_exe().unwrap();
    let mut child =
        std::process::Command::new(program).args(["--exact", name]).env(CHILD, "1").spawn().unwrap();
    let since = std::time::Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if since.elapsed() > std::time::Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGABRT));
}

#[test]
fn descriptors_of_the_program_are_found_by_number() {
    let broker = Broker::start().unwrap();
    let mut dup = None;
    let (mut reader, writer) = std::io::pipe().unwrap();
    broker.call(|| dup = descriptors::of_first_thread(writer.as_raw_fd()).ok());
    let Some(dup) = dup else { return }; // Linux before 5.6, or a filter
    drop(writer);
    // SAFETY: the broker's own descriptor, used and closed on its thread.
    broker.call(|| unsafe { File::from_raw_fd(dup) }.write_all(b"last words").unwrap());
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all, "last words");
}
