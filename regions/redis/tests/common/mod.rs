//! Redis servers on the loopback interface, each in a folder of its own, which are stopped when the test ends.
#![allow(dead_code, reason = "each test uses a part of this module")]

use largesse_redis::{RedisError, RedisProvider, Target};
use largesse_store::{
    Direction, PageStore, ProvidedStore, QueueBytes, StoreError, StoreProvider, Transfer, TransferQueue,
};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const PAGE: usize = 4096;
pub(crate) const HOME: usize = 2 << 20;
/// Number by which the port of a server's cluster bus is higher than the server's port, by default.
const BUS: u16 = 10_000;

static SERVERS: AtomicU32 = AtomicU32::new(0);

/// A `redis-server` that saves nothing to disk.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    folder: PathBuf,
    /// The password in the form of an address (`:PASSWORD@`), for requests of the test itself.
    login: String,
}

impl Server {
    /// Starts a server on a free port. Tries another port if a different program has taken the first one.
    pub(crate) fn start(options: &[&str]) -> Server {
        (0..5).find_map(|_| Server::try_start_at(free_port(), options)).expect("a server that starts")
    }

    pub(crate) fn start_at(port: u16, options: &[&str]) -> Server {
        Server::try_start_at(port, options).expect("the server starts")
    }

    /// Starts a server on `port`. Returns `None` if it ended before it answered.
    fn try_start_at(port: u16, options: &[&str]) -> Option<Server> {
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tls = options.contains(&"--tls-port");
        let plain = if tls { "0".to_owned() } else { port.to_string() };
        // `redis-check-rdb` is the server under another name. Debian's redis-tools has it, and starts no service.
        let child = Command::new("redis-check-rdb")
            .arg0("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &plain])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&folder)
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-check-rdb (apt-get install redis-tools)");
        let mut server = Server { child, port, folder, login: String::new() };
        if let Some(place) = options.iter().position(|&option| option == "--requirepass") {
            server.login = format!(":{}@", options[place + 1]);
        }
        let mut ended = false;
        if !tls {
            until("the server answers", || {
                ended = server.child.try_wait().unwrap().is_some();
                ended || server.answers()
            });
        }
        (!ended).then_some(server)
    }

    /// Returns whether this server's process, and not another one, answers on the port.
    fn answers(&self) -> bool {
        let said = self.try_ask(&["INFO", "server"]).and_then(|said| Ok(redis::from_redis_value(said)?));
        said.is_ok_and(|said: String| said.contains(&format!("process_id:{}\r", self.child.id())))
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn try_ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = redis::Client::open(format!("redis://{}127.0.0.1:{}", self.login, self.port))?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        redis::cmd(words[0]).arg(&words[1..]).query(&mut connection)
    }

    pub(crate) fn ask(&self, words: &[&str]) -> redis::Value {
        self.try_ask(words).unwrap()
    }

    pub(crate) fn number(&self, words: &[&str]) -> i64 {
        redis::from_redis_value(self.ask(words)).unwrap()
    }

    pub(crate) fn text(&self, words: &[&str]) -> String {
        redis::from_redis_value(self.ask(words)).unwrap()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        redis::from_redis_value(self.ask(&["KEYS", "*"])).unwrap()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A proxy in front of a server, whose connections can be cut. Its threads end with the process.
pub(crate) struct Proxy {
    port: u16,
    left: Arc<AtomicU64>,
    /// All bytes that clients have sent to the server.
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Proxy { port, left: Arc::new(u64::MAX.into()), sent: Arc::default() };
        let (left, sent) = (Arc::clone(&proxy.left), Arc::clone(&proxy.sent));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let ends = [(&client, &server, Some(&sent)), (&server, &client, None)];
                for (from, to, sent) in ends {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (left, sent) = (Arc::clone(&left), sent.map(Arc::clone));
                    std::thread::spawn(move || forward(&from, &to, &left, sent.as_deref()));
                }
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Cuts the connection that transfers the last of the next `bytes` bytes, counted in both directions together.
    pub(crate) fn cut_after(&self, bytes: u64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// Returns the number of times that clients have sent this command.
    pub(crate) fn requests(&self, command: &str) -> usize {
        let sent = self.sent.lock().unwrap();
        sent.windows(command.len()).filter(|bytes| *bytes == command.as_bytes()).count()
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.left.load(Ordering::SeqCst) > u64::MAX / 2
    }
}

/// Forwards data in one direction until a connection ends. The thread that forwards the last byte before the limit
/// `left` cuts the connection and removes the limit.
fn forward(mut from: &TcpStream, mut to: &TcpStream, left: &AtomicU64, sent: Option<&Mutex<Vec<u8>>>) {
    let mut bytes = [0; 65536];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        let before = left.fetch_sub(len as u64, Ordering::SeqCst);
        let cut = before <= len as u64;
        let part = if cut { usize::try_from(before).unwrap() } else { len };
        if cut {
            left.store(u64::MAX, Ordering::SeqCst);
        }
        if let Some(sent) = sent {
            sent.lock().unwrap().extend_from_slice(&bytes[..part]);
        }
        if to.write_all(&bytes[..part]).is_err() || cut {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Returns a port such that this port and that of its cluster bus are free. It is below the ports that Linux gives to
/// outgoing connections, so that none of these takes it before the server does.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let taken = u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = 11_000 + u16::try_from((std::process::id() * 37 + taken) % 10_000).unwrap();
        if free(port) && free(port + BUS) {
            return port;
        }
    }
}

#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn open(address: &str) -> Result<RedisProvider, RedisError> {
    largesse_redis::open(Target::parse(address)?)
}

/// Returns a new store. In the tests named `queued_…`, its reads and writes are made as many transfers of a queue.
pub(crate) fn new_store(address: &str) -> (RedisProvider, Box<dyn ProvidedStore>) {
    let provider = open(address).unwrap();
    let store = provider.create().unwrap();
    if env!("CARGO_CRATE_NAME").starts_with("queued") {
        return (provider, Box::new(QueuedStore { store, idle: Mutex::default() }));
    }
    (provider, store)
}

/// A store whose reads and writes are made as up to eight transfers of a queue.
#[derive(Debug)]
struct QueuedStore {
    store: Box<dyn ProvidedStore>,
    /// Queues that no thread uses now.
    idle: Mutex<Vec<Box<dyn TransferQueue>>>,
}

/// Number of bytes of memory of a queue.
const MEMORY: usize = 4 << 20;

impl QueuedStore {
    fn transfer(&self, direction: Direction, at: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        let idle = self.idle.lock().unwrap().pop();
        let mut queue = idle.unwrap_or_else(|| {
            self.store.open_queue_over(QueueBytes::new(MEMORY).unwrap(), 8).expect("a store with queues")
        });
        let len = bytes.len();
        // SAFETY: nothing is in flight.
        unsafe { queue.memory(0..len) }.copy_from_slice(bytes);
        let part = (len / PAGE).div_ceil(8).max(1) * PAGE;
        for (id, first) in (0..len).step_by(part).enumerate() {
            let memory = first..len.min(first + part);
            queue.start(Transfer { id, direction, at: at + first as u64, memory });
        }
        let mut result = Ok(());
        while queue.in_flight() > 0 {
            queue.reap(Duration::from_secs(1), &mut |ended| result = result.clone().and(ended.result));
        }
        // SAFETY: as above.
        bytes.copy_from_slice(unsafe { queue.memory(0..len) });
        self.idle.lock().unwrap().push(queue);
        result
    }
}

impl ProvidedStore for QueuedStore {}

impl PageStore for QueuedStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.store.reserve(at, len)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.transfer(Direction::Read, at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.transfer(Direction::Write, at, &mut from.to_vec())
    }
    fn discard(&self, at: u64, len: u64) {
        self.store.discard(at, len);
    }
}

/// Returns contents that depend on their offset and on a version, so that misplaced and old pages are detected.
pub(crate) fn pages(at: u64, len: usize, version: u8) -> Vec<u8> {
    let word =
        |number: u64| (number * 8 + at).rotate_left(u32::from(version)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..len as u64 / 8).flat_map(|number| word(number).to_le_bytes()).collect()
}

#[track_caller]
pub(crate) fn reads_back(store: &dyn PageStore, at: u64, len: usize, version: u8) {
    let mut bytes = vec![0; len];
    store.read(at, &mut bytes).unwrap();
    assert!(bytes == pages(at, len, version), "other bytes at {at}");
}

/// Returns the message of a result that must be [`StoreError::Lost`].
#[track_caller]
pub(crate) fn lost(outcome: Result<(), StoreError>) -> String {
    match outcome {
        Err(StoreError::Lost(why)) => why,
        other => panic!("not lost: {other:?}"),
    }
}
