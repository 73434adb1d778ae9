//! Far memory on a Redis server: whole programs, and a password that nobody sees.

use largesse_tests::{Exit, Run, Stage, is_root, skipped};
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PASSWORD: &str = "hunter2";

struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Server {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("far-redis-{name}"));
        fs::create_dir_all(&folder).unwrap();
        // The same program under its other name: Debian's redis-tools has it, and starts no service.
        let child = Command::new("redis-check-rdb")
            .arg0("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--requirepass", PASSWORD])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-check-rdb (apt-get install redis-tools)");
        let server = Server { child, port, folder };
        until("the server answers", || server.ask(&["PING"]) == "PONG");
        server
    }

    fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.env("REDISCLI_AUTH", PASSWORD).args(["-p", &self.port.to_string()]).args(words);
        let said = command.stderr(Stdio::null()).output().unwrap().stdout;
        String::from_utf8_lossy(&said).trim_end().to_owned()
    }

    fn address(&self, login: &str) -> String {
        format!("--far=redis://{login}127.0.0.1:{}?timeout=2", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ordinary users need `/dev/userfaultfd` or the sysctl.
fn paged(stage: &Stage) -> Option<PathBuf> {
    if !is_root() && fs::File::options().read(true).write(true).open("/dev/userfaultfd").is_err() {
        skipped("userfaultfd is not permitted here");
        return None;
    }
    stage.compiled("paged.c", &["-lpthread", "-O2"])
}

/// What anybody may read of a process, and its environment.
fn tells(process: u32) -> String {
    let read = |file: &str| fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&[read("cmdline"), read("environ")].concat()).into_owned()
}

#[test]
fn a_program_has_its_pages_there_and_leaves_none() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    let server = Server::start("pages");
    let run = Run::new(&stage, &[program]).arg("64").arg("4").arg("2000");
    let run = run.under(&["--local=16M", &server.address("")]);
    let ran = run.variable("LARGESSE_REDIS_PASSWORD", PASSWORD).finish().succeeded();
    assert_eq!(ran.stdout, "8388608 words, 0 wrong\n");
    assert!(!format!("{ran:?}").contains(PASSWORD));
    until("its keys are deleted", || server.ask(&["DBSIZE"]) == "0");
    let calls = server.ask(&["INFO", "commandstats"]);
    assert!(calls.contains("cmdstat_hset") && calls.contains("cmdstat_hmget"), "{calls}");
}

#[test]
fn a_password_is_seen_nowhere_while_the_program_runs_and_its_keys_outlive_no_kill() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    let server = Server::start("secret");
    for (login, variable) in [("", PASSWORD), (":hunter2@", "")] {
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("1000000000");
        let run = run.under(&["--local=16M", &server.address(login)]);
        let mut child = run.variable("LARGESSE_REDIS_PASSWORD", variable).start();
        until("pages are there", || server.ask(&["DBSIZE"]) != "0");
        assert!(tells(child.id()).contains("LARGESSE_FAR=agent:"));
        let all = fs::read_dir("/proc").unwrap().flatten();
        let agents = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mine = format!("--owner\0{}\0", child.id());
        let agent = agents.into_iter().find(|&process| tells(process).contains(&mine)).unwrap();
        let command = fs::read(format!("/proc/{agent}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&command).contains(PASSWORD));
        assert!(!tells(child.id()).contains(PASSWORD), "{}", tells(child.id()));
        let status =
            Command::new(stage.command()).args(["status", &child.id().to_string()]).output().unwrap();
        assert!(!String::from_utf8_lossy(&status.stdout).contains(PASSWORD));
        child.kill().unwrap();
        child.wait().unwrap();
        until("the agent gives the pages back", || server.ask(&["DBSIZE"]) == "0");
    }
}

#[test]
fn a_password_on_the_command_line_is_warned_of_and_a_wrong_one_is_refused() {
    let stage = Stage::new();
    let server = Server::start("wrong");
    let ran = |login: &str, local: &[&str]| {
        let address = server.address(login);
        let options = [local, &[&address]].concat();
        let ran = Run::new(&stage, &["echo", "started"]).under(&options).finish();
        assert!(!format!("{ran:?}").contains("secret"), "{ran:#?}");
        ran
    };
    let wrong = ran("ann:secret@", &["--local=16M"]);
    assert_eq!((wrong.exit, &*wrong.stdout), (Exit::Code(125), ""), "{wrong:#?}");
    assert!(wrong.hints.contains("wrong user or password"), "{wrong:#?}");
    assert!(wrong.hints.contains("everybody on this machine can read the password"), "{wrong:#?}");
    let none = ran("", &["--local=16M"]);
    assert_eq!(none.exit, Exit::Code(125), "{none:#?}");
    assert!(none.hints.contains("LARGESSE_REDIS_PASSWORD"), "{none:#?}");
    let useless = ran("ann:secret@", &[]);
    assert_eq!(useless.exit, Exit::Code(2), "{useless:#?}");
}

#[test]
fn a_server_that_is_killed_or_hangs_ends_the_program_with_a_message() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    for signal in [libc::SIGKILL, libc::SIGSTOP] {
        let server = Server::start(&format!("signal-{signal}"));
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("1000000000");
        let run =
            run.under(&["--local=16M", &server.address("")]).variable("LARGESSE_REDIS_PASSWORD", PASSWORD);
        let ran = std::thread::scope(|scope| {
            let ran = scope.spawn(|| run.finish());
            until("pages are there", || server.ask(&["DBSIZE"]) != "0");
            // SAFETY: a process of this test.
            unsafe { libc::kill(server.child.id().cast_signed(), signal) };
            ran.join().unwrap()
        });
        assert_eq!(ran.exit, Exit::Code(74), "{ran:#?}");
        let which = format!("redis://127.0.0.1:{}: ", server.port);
        assert!(ran.hints.contains("far memory is lost") && ran.hints.contains(&which), "{ran:#?}");
    }
}
