//! A service of the program, for steps that make requests to it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::tools::{program, quiet};

/// What the service speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Http,
    Https,
}

/// A service with an empty folder and a key for all, so that requests without one are refused.
pub struct Service {
    child: Child,
    /// Where it is, without a slash at the end.
    pub url: String,
    /// A key of scope `admin`.
    pub key: String,
}

impl Service {
    /// Starts one, with its data and its log in a folder that is there.
    ///
    /// # Errors
    /// It cannot be built, or ends before it listens: what it said.
    pub fn start(folder: &Path, speaks: Speaks) -> Result<Service, String> {
        let program = program("nearsift")?;
        let (data, log) = (folder.join("data"), folder.join("log"));
        if data.exists() {
            std::fs::remove_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
        }
        let mut make = Command::new(&program);
        make.args(["serve", "--new-key", "admin"]);
        let made = quiet(make)?;
        let mut lines = made.lines().filter(|line| !line.starts_with('#'));
        let (Some(key), Some(line)) = (lines.next(), lines.next()) else {
            return Err(format!("no key in:\n{made}"));
        };
        let shown = |e: std::io::Error| format!("{}: {e}", log.display());
        let mut command = Command::new(&program);
        command.arg("serve").arg(&data);
        command.args(["--listen", "127.0.0.1:0", "--keys", line, "--log", "json"]);
        if speaks == Speaks::Https {
            let private = write_certificate(folder)?;
            command.arg("--tls-cert").arg(certificate(folder)).arg("--tls-key").arg(private);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).map_err(shown)?)
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        loop {
            let said = std::fs::read_to_string(&log).map_err(shown)?;
            let url = said.split_once("\"url\":\"").and_then(|(_, rest)| rest.split_once('"'));
            if let Some((url, _)) = url {
                return Ok(Service { child, url: url.to_owned(), key: key.to_owned() });
            }
            if child.try_wait().map_err(shown)?.is_some() {
                return Err(format!("the service ended: {said}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops it, which must go well.
    pub fn end(mut self) -> Result<(), String> {
        let mut kill = Command::new("kill");
        kill.arg(self.child.id().to_string());
        quiet(kill)?;
        let status = self.child.wait().map_err(|e| format!("the service: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("the service ended with {status}")) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _has_ended = self.child.wait();
    }
}

/// The certificate of a service that speaks HTTPS, which its clients are to trust.
pub fn certificate(folder: &Path) -> PathBuf {
    folder.join("certificate.pem")
}

/// Writes a new certificate for 127.0.0.1, and its private key, whose path is returned.
fn write_certificate(folder: &Path) -> Result<PathBuf, String> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])
        .map_err(|e| format!("no certificate: {e}"))?;
    let private = folder.join("private.pem");
    for (path, text) in [
        (certificate(folder), made.cert.pem()),
        (private.clone(), made.signing_key.serialize_pem()),
    ] {
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(private)
}
