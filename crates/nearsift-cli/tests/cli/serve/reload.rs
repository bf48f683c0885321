//! SIGHUP: keys and the certificate are read again by a service that runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::Running;
use crate::support::Folder;

/// Writes a certificate for localhost and its key, and gives the certificate.
fn certificate(folder: &Folder) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    folder.file("cert.pem", made.cert.pem());
    folder.file("key.pem", made.signing_key.serialize_pem());
    made.cert.der().clone()
}

/// A new key of a scope, and its line for the file.
fn key(folder: &Folder, scope: &str) -> (String, String) {
    let printed = folder.run(["serve", "--new-key", scope]).expect(0).stdout;
    let mut lines = printed.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
    (lines.next().expect("a key"), lines.next().expect("a line"))
}

/// A connection over TLS that stays open.
struct Connection(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Connection {
    fn new(address: SocketAddr, trusted: &CertificateDer<'static>) -> Connection {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let client = ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        Connection(BufReader::new(StreamOwned::new(client, stream)))
    }

    /// The status and the body; an error where the certificate is not the trusted one.
    fn get(&mut self, path: &str, key: &str) -> std::io::Result<(u16, String)> {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
        );
        self.0.get_mut().write_all(head.as_bytes())?;
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().expect("a status");
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body).expect("UTF-8")))
    }
}

/// Waits until something holds, which it must within a minute.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn keys_and_the_certificate_are_read_again_on_sighup() {
    let folder = Folder::new();
    let first = certificate(&folder);
    let (old_key, old_line) = key(&folder, "read");
    let (new_key, new_line) = key(&folder, "read");
    folder.file("keys.txt", &old_line);
    let files = ["--keys-file", "keys.txt", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let service = Running::start(&folder, &files);
    let address = service.url.trim_start_matches("https://").parse().expect("an address");
    let get = |trusted, path: &str, key: &str| Connection::new(address, trusted).get(path, key);
    let status = |trusted, key: &str| get(trusted, "/v1/stats", key).map(|(status, _)| status);
    let mut open = Connection::new(address, &first);
    assert_eq!(open.get("/v1/stats", &old_key).expect("an answer").0, 200);
    assert_eq!(status(&first, &new_key).expect("an answer"), 401);

    // The probe trusts the certificate of the settings, and no other.
    let listen = address.to_string();
    let probe = |certificate: &str| {
        let files = ["--tls-cert", certificate, "--tls-key", "key.pem"];
        folder.run([&["serve", "--ready", "--listen", &listen], &files[..]].concat())
    };
    probe("cert.pem").expect(0);
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    folder.file("other.pem", other.cert.pem());
    let refused = probe("other.pem").expect(1);
    assert!(refused.stderr.contains(": no answer: "), "{}", refused.stderr);

    // New files: new connections are shown the new certificate, and open ones live on.
    let second = certificate(&folder);
    folder.file("keys.txt", &new_line);
    assert_eq!(status(&first, &old_key).expect("nothing is read before"), 200);
    service.signal("-HUP");
    until("the new certificate is shown", || status(&second, &new_key).is_ok());
    assert!(status(&first, &new_key).is_err(), "the old one is not");
    assert_eq!(status(&second, &new_key).expect("an answer"), 200);
    assert_eq!(status(&second, &old_key).expect("an answer"), 401);
    assert_eq!(open.get("/v1/stats", &new_key).expect("an answer").0, 200);
    assert_eq!(open.get("/v1/stats", &old_key).expect("an answer").0, 401);

    // Files that cannot be used change nothing.
    let metrics = || get(&second, "/metrics", &new_key).expect("an answer").1;
    folder.file("cert.pem", "no certificate");
    folder.file("keys.txt", "read no-key");
    service.signal("-HUP");
    let failed = [
        "nearsift_reloads_total{what=\"keys\",result=\"failure\"} 1\n",
        "nearsift_reloads_total{what=\"certificate\",result=\"failure\"} 1\n",
        "nearsift_last_reload_successful{what=\"keys\"} 0\n",
        "nearsift_last_reload_successful{what=\"certificate\"} 0\n",
    ];
    until("failures are counted", || failed.iter().all(|line| metrics().contains(line)));
    let told = metrics();
    for line in [
        "nearsift_reloads_total{what=\"keys\",result=\"success\"} 1\n",
        "nearsift_reloads_total{what=\"certificate\",result=\"success\"} 1\n",
    ] {
        assert!(told.contains(line), "{told}");
    }
    assert_eq!(status(&second, &new_key).expect("an answer"), 200);

    // The key of another certificate, and an empty file of keys, which would open the service to all.
    let third = certificate(&folder);
    let fitting = std::fs::read(folder.path("key.pem")).expect("a key");
    certificate(&folder);
    folder.file("key.pem", &fitting);
    folder.file("keys.txt", "# none\n");
    service.signal("-HUP");
    let twice = "nearsift_reloads_total{what=\"certificate\",result=\"failure\"} 2\n";
    until("both do not fit", || metrics().contains(twice));
    assert_eq!(status(&second, "nsk_nothing").expect("an answer"), 401);
    assert!(get(&third, "/healthz", "").is_err());

    // Put right, they count.
    let last = certificate(&folder);
    folder.file("keys.txt", format!("{old_line}\n{new_line}\n"));
    service.signal("-HUP");
    until("the last certificate is shown", || status(&last, &old_key).is_ok_and(|s| s == 200));
    let told = get(&last, "/metrics", &new_key).expect("an answer").1;
    assert!(told.contains("nearsift_last_reload_successful{what=\"keys\"} 1\n"), "{told}");

    drop(open);
    service.signal("-TERM");
    let (status, log) = service.end();
    assert_eq!(status, Some(0), "{log}");
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("\"ERROR\"")).collect();
    assert_eq!(errors.len(), 4, "{log}");
    for (error, what) in errors.iter().zip(["keys.txt, line 1", "cert.pem", "keys.txt", "key.pem"])
    {
        assert!(error.contains(what) && error.contains("still counts"), "{error}");
    }
    assert!(!log.contains(&new_key[4..]), "{log}");
}
