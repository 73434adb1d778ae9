//! Logins: passwords, certificates, and the messages when the server refuses one.

mod common;

use common::*;
use largesse_redis::Target;
use largesse_store::PageStore;
use std::path::{Path, PathBuf};
use std::process::Command;

const PASSWORD: &str = "hunter2-%-secret";
/// The password as it is written in an address, with `%25` for `%`.
const WRITTEN: &str = "hunter2-%25-secret";

#[test]
fn wrong_or_missing_password_is_refused_without_showing_it() {
    let server = Server::start(&["--requirepass", PASSWORD.replace('%', "").as_str()]);
    let right = PASSWORD.replace('%', "");
    let at = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port);
    let (provider, store) = new_store(&at(&format!(":{right}@")));
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    reads_back(&*store, 0, PAGE, 1);
    assert!(!format!("{provider:?} {store:?}").contains("hunter2"));
    for (address, words) in [
        (at(&format!(":{WRITTEN}@")), "wrong user or password"),
        (at(&format!("ann:{right}@")), "wrong user or password"),
        (at(""), "LARGESSE_REDIS_PASSWORD"),
    ] {
        let refused = open(&address).unwrap_err();
        let said = format!("{refused} {refused:?}");
        assert!(said.contains(words) && !said.contains("hunter2"), "{said}");
    }
    let mut target = Target::parse(&at("")).unwrap();
    target.log_in(None, Some(right));
    largesse_redis::open(target).unwrap();
}

#[test]
fn user_needs_the_permissions_to_store_pages() {
    let server = Server::start(&[]);
    server.ask(&["ACL", "SETUSER", "ann", "on", ">hunter2", "~largesse:*", "+@all", "-hset"]);
    let why = open(&format!("redis://ann:hunter2@127.0.0.1:{}", server.port)).unwrap_err().to_string();
    assert!(why.contains("NOPERM") && why.contains("hset") && !why.contains("hunter2"), "{why}");
    let rights =
        ["ACL", "SETUSER", "bob", "on", ">hunter2", "~largesse:*", "+@hash", "+@connection", "+@transaction"];
    server.ask(&[&rights[..], &["+expire", "+unlink", "+info", "+wait", "-client|kill"]].concat());
    let (_provider, store) = new_store(&format!("redis://bob:hunter2@127.0.0.1:{}", server.port));
    store.write(0, &pages(0, PAGE, 1)).unwrap();
}

#[test]
fn password_may_come_from_a_file() {
    let server = Server::start(&["--requirepass", "hunter2"]);
    let folder = Folder::new("passfile");
    let file = folder.0.join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    open(&format!("{}?passfile={}", server.address(), file.display())).unwrap();
}

#[test]
fn server_that_is_not_redis_is_refused() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // This server repeats the request, as some proxies do.
    let web = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 512];
        let read = stream.read(&mut request).unwrap();
        let echo = String::from_utf8_lossy(&request[..read]).replace("\r\n", " ");
        write!(stream, "-ERR unknown command, with args beginning with: {echo}\r\n").unwrap();
    });
    let refused = open(&format!("redis://:hunter2@127.0.0.1:{port}?timeout=1")).unwrap_err();
    web.join().unwrap();
    let said = format!("{refused} {refused:?}");
    assert!(!said.contains("hunter2") && said.contains(&port.to_string()), "{said}");
}

#[test]
fn tls_needs_the_authority_and_the_clients_certificate() {
    let folder = Folder::new("tls");
    let file = |name: &str| folder.0.join(name).display().to_string();
    folder.certificates();
    let port = free_port();
    let (ca, cert, key) = (file("ca.crt"), file("server.crt"), file("server.key"));
    let written = port.to_string();
    let options =
        ["--tls-port", &written, "--tls-ca-cert-file", &ca, "--tls-cert-file", &cert, "--tls-key-file", &key];
    let _server = Server::start_at(port, &options);
    until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let at = |parameters: &str| format!("rediss://127.0.0.1:{port}?timeout=10{parameters}");

    let (_provider, store) = new_store(&at(&format!("&ca={ca}&cert={cert}&key={key}")));
    store.write(0, &pages(0, 1 << 20, 1)).unwrap();
    reads_back(&*store, 0, 1 << 20, 1);
    for (address, words) in [
        (at(&format!("&cert={cert}&key={key}")), "ca=FILE"),
        (at(&format!("&ca={ca}")), "cert=FILE"),
        (format!("redis://127.0.0.1:{port}?timeout=10"), "does it expect redis:// or rediss:// (TLS)?"),
        (format!("rediss://localhost:{port}?timeout=10&ca={ca}&cert={cert}&key={key}"), "not valid for name"),
    ] {
        let why = open(&address).unwrap_err().to_string();
        assert!(why.contains(words), "{address}: {why}");
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Creates a certificate authority, and a certificate that it signed for 127.0.0.1.
    fn certificates(&self) {
        let openssl = |arguments: &str| {
            let run = Command::new("openssl").args(arguments.split(' ')).current_dir(&self.0).output();
            let run = run.expect("openssl (apt-get install openssl)");
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        };
        std::fs::write(self.0.join("names"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
            .unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.crt"));
        openssl(&format!("req {key} -subj /CN=server -keyout server.key -out server.csr"));
        openssl(
            "x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names -out server.crt",
        );
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
