//! Tests far memory on a Redis server: whole programs, and a password that no other process can read.

use largesse_tests::{Exit, Run, Stage, skipped, users, wait_until};
use std::fs;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PASSWORD: &str = "hunter2";

/// A network namespace at the other end of a virtual cable, which can be cut.
struct Network {
    name: String,
    host: String,
}

impl Network {
    /// Makes the network. Where no namespace can be made, reports that the test is skipped and returns `None`.
    fn new() -> Option<Network> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id() % 1000 * 10 + NUMBER.fetch_add(1, Ordering::Relaxed);
        // Each network has four of the addresses that RFC 2544 reserves for tests.
        let (block, first) = (number / 64 % 256, number % 64 * 4);
        let network = Network { name: format!("lg{number}"), host: format!("198.18.{block}.{}", first + 2) };
        let name = &network.name;
        let made = ip(&format!("netns add {name}"))
            && ip(&format!("link add {name} type veth peer name far netns {name}"))
            && ip(&format!("addr add 198.18.{block}.{}/30 dev {name}", first + 1))
            && ip(&format!("-n {name} addr add {}/30 dev far", network.host))
            && ip(&format!("link set {name} up"));
        network.cut(false);
        if !made {
            skipped("no network namespace and cable can be made here");
        }
        made.then_some(network)
    }

    /// Cuts the cable if `cut`, or else repairs it, at the server's end. So the program's end notices only that
    /// answers are missing.
    fn cut(&self, cut: bool) {
        ip(&format!("-n {} link set far {}", self.name, if cut { "down" } else { "up" }));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.name));
    }
}

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|done| done.status.success())
}

struct Server {
    child: Child,
    host: String,
    port: u16,
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Server {
        Server::start_in(None, name)
    }

    /// Starts a server on a free port. If another connection has taken that port, tries the next.
    fn start_in(network: Option<&Network>, name: &str) -> Server {
        (0..5).find_map(|_| Server::try_start_in(network, name)).expect("a server that starts")
    }

    /// Starts a server on a free port, or returns `None` if the server ended before it answered.
    fn try_start_in(network: Option<&Network>, name: &str) -> Option<Server> {
        let host = network.map_or("127.0.0.1", |network| &network.host).to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("far-redis-{name}"));
        fs::create_dir_all(&folder).unwrap();
        // `redis-check-rdb` is the server under another name. Debian's redis-tools has it, and starts no service.
        let mut command = Command::new("redis-check-rdb");
        if let Some(network) = network {
            let space = fs::File::open(format!("/run/netns/{}", network.name)).unwrap();
            // SAFETY: the closure makes one system call between fork and exec, on a descriptor that is open until then.
            unsafe {
                command.pre_exec(move || match libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                })
            };
        }
        let child = command
            .arg0("redis-server")
            .args(["--bind", &host, "--port", &port.to_string(), "--requirepass", PASSWORD])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-check-rdb (apt-get install redis-tools)");
        let mut server = Server { child, host, port, folder };
        let (own, mut ended) = (format!("process_id:{}\r", server.child.id()), false);
        until("the server answers", || {
            ended = server.child.try_wait().unwrap().is_some();
            ended || server.ask(&["INFO", "server"]).contains(&own)
        });
        (!ended).then_some(server)
    }

    fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command
            .env("REDISCLI_AUTH", PASSWORD)
            .args(["-h", &self.host, "-p", &self.port.to_string()])
            .args(words);
        let said = command.stderr(Stdio::null()).output().unwrap().stdout;
        String::from_utf8_lossy(&said).trim_end().to_owned()
    }

    /// Returns the number of keys that the server holds. Asks again as long as the answer is not a number.
    fn keys(&self) -> usize {
        let mut keys = None;
        until("the server counts its keys", || {
            keys = self.ask(&["DBSIZE"]).parse().ok();
            keys.is_some()
        });
        keys.unwrap()
    }

    /// Waits until the server holds pages of the program. (A single key is the trial page that is written before the
    /// program starts.)
    fn holds_pages(&self) {
        until("the server holds pages", || self.keys() > 1);
    }

    fn address(&self, login: &str) -> String {
        self.address_with(login, 5)
    }

    fn address_with(&self, login: &str, timeout: u32) -> String {
        format!("--far=redis://{login}{}:{}?timeout={timeout}", self.host, self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Value of the report's counter `mechanism` for pages at a Redis server.
const REDIS_PIPELINES: u64 = 3;

#[track_caller]
fn until(what: &str, holds: impl FnMut() -> bool) {
    wait_until(what, Duration::from_secs(60), holds);
}

fn paged(stage: &Stage) -> Option<PathBuf> {
    stage.compiled("paged.c", &["-lpthread", "-O2"])
}

/// Returns the command line of a process, which all users may read, and its environment, as one text.
fn tells(process: u32) -> String {
    let read = |file: &str| fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&[read("cmdline"), read("environ")].concat()).into_owned()
}

/// Returns the process number of the agent that was started for a process.
fn agent_of(process: u32) -> u32 {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut processes = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let its = format!("--owner\0{process}\0");
    processes.find(|&other| tells(other).contains(&its)).expect("a process with an agent")
}

#[test]
fn forked_children_transfer_pages_of_their_own() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_fork.c", &["-lpthread", "-O2"]) else { return };
    let server = Server::start("fork");
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg("sides").arg("32").as_user(user);
        let run = run.under(&["--local=16M", &server.address("")]);
        let ran = run.variable("LARGESSE_REDIS_PASSWORD", PASSWORD).finish().succeeded();
        assert!(ran.stdout.contains("parent: 0 wrong\n"), "{user:?}: {ran:#?}");
        until("the keys of both processes are deleted", || server.keys() == 0);
    }
}

#[test]
fn killed_agent_ends_the_program_with_a_message() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    let server = Server::start("agent");
    let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("1000000000");
    let run = run.under(&["--local=16M", &server.address("")]).variable("LARGESSE_REDIS_PASSWORD", PASSWORD);
    let child = run.start();
    server.holds_pages();
    let agent = agent_of(child.id());
    // SAFETY: the arguments are numbers, and the test started the process.
    unsafe { libc::kill(agent.cast_signed(), libc::SIGKILL) };
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(74), "{said}");
    assert!(said.contains(&format!("(process {agent}) has died")), "{said}");
}

#[test]
fn pages_are_on_the_server_and_deleted_at_the_end() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    let server = Server::start("pages");
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("2000").as_user(user);
        let run = run.under(&["--local=16M", &server.address("")]);
        let ran = run.variable("LARGESSE_REDIS_PASSWORD", PASSWORD).finish().succeeded();
        assert_eq!(ran.stdout, "8388608 words, 0 wrong\n", "{user:?}");
        assert!(!format!("{ran:?}").contains(PASSWORD));
        let far = &ran.report["far"];
        assert_eq!(far["mechanism"], REDIS_PIPELINES, "{far:#}");
        // Four threads fault at once, and prefetches are in flight with them.
        assert!(far["most_reads"].as_u64() >= Some(4) && far["most_writes"].as_u64() >= Some(2), "{far:#}");
        assert_eq!(far["over_limit"], 0, "{far:#}");
        until("its keys are deleted", || server.keys() == 0);
    }
    let calls = server.ask(&["INFO", "commandstats"]);
    assert!(calls.contains("cmdstat_hset") && calls.contains("cmdstat_hmget"), "{calls}");
}

#[test]
fn password_is_not_shown_and_keys_are_deleted_after_a_kill() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    let server = Server::start("secret");
    for (login, variable) in [("", PASSWORD), (":hunter2@", "")] {
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("1000000000");
        let run = run.under(&["--local=16M", &server.address(login)]);
        let mut child = run.variable("LARGESSE_REDIS_PASSWORD", variable).start();
        server.holds_pages();
        let told = tells(child.id());
        assert!(told.contains("LARGESSE_FAR=agent:"), "{told:?}\n{}", server.ask(&["KEYS", "*"]));
        let agent = agent_of(child.id());
        let command = fs::read(format!("/proc/{agent}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&command).contains(PASSWORD));
        assert!(!tells(child.id()).contains(PASSWORD), "{}", tells(child.id()));
        let status =
            Command::new(stage.command()).args(["status", &child.id().to_string()]).output().unwrap();
        assert!(!String::from_utf8_lossy(&status.stdout).contains(PASSWORD));
        child.kill().unwrap();
        child.wait().unwrap();
        until("the agent gives the pages back", || server.keys() == 0);
    }
}

#[test]
fn password_on_the_command_line_causes_a_warning_and_a_wrong_one_is_refused() {
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
    assert!(wrong.hints.contains("all users of this machine can read the password"), "{wrong:#?}");
    let none = ran("", &["--local=16M"]);
    assert_eq!(none.exit, Exit::Code(125), "{none:#?}");
    assert!(none.hints.contains("LARGESSE_REDIS_PASSWORD"), "{none:#?}");
    let useless = ran("ann:secret@", &[]);
    assert_eq!(useless.exit, Exit::Code(2), "{useless:#?}");
}

/// The network is cut for a moment, which the program survives. Then it is cut for good.
#[test]
fn program_survives_a_short_cut_and_ends_with_a_message_after_a_long_one() {
    let Some(network) = Network::new() else { return };
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for (timeout, cut) in [(20, Some(Duration::from_millis(1200))), (2, None)] {
        let server = Server::start_in(Some(&network), &format!("network-{timeout}"));
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("5");
        let run = run.under(&["--local=16M", &server.address_with("", timeout)]);
        let run = run.variable("LARGESSE_REDIS_PASSWORD", PASSWORD);
        let ran = std::thread::scope(|scope| {
            let ran = scope.spawn(|| run.finish());
            server.holds_pages();
            network.cut(true);
            if let Some(moment) = cut {
                // The length of the interruption is what is tested.
                std::thread::sleep(moment);
                network.cut(false);
            }
            ran.join().unwrap()
        });
        if cut.is_some() {
            assert_eq!(ran.succeeded().stdout, "0 wrong\n");
            continue;
        }
        assert_eq!(ran.exit, Exit::Code(74), "{ran:#?}");
        let which = format!("redis://{}:{}: ", server.host, server.port);
        assert!(ran.hints.contains("far memory is lost") && ran.hints.contains(&which), "{ran:#?}");
    }
}

#[test]
fn killed_or_stopped_server_ends_the_program_with_a_message() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    for signal in [libc::SIGKILL, libc::SIGSTOP] {
        let server = Server::start(&format!("signal-{signal}"));
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("1000000000");
        let run =
            run.under(&["--local=16M", &server.address("")]).variable("LARGESSE_REDIS_PASSWORD", PASSWORD);
        let ran = std::thread::scope(|scope| {
            let ran = scope.spawn(|| run.finish());
            server.holds_pages();
            // SAFETY: the arguments are numbers, and this test started the process.
            unsafe { libc::kill(server.child.id().cast_signed(), signal) };
            ran.join().unwrap()
        });
        assert_eq!(ran.exit, Exit::Code(74), "{ran:#?}");
        let which = format!("redis://127.0.0.1:{}: ", server.port);
        assert!(ran.hints.contains("far memory is lost") && ran.hints.contains(&which), "{ran:#?}");
    }
}
