//! API keys: stored as SHA-256 hashes, compared in constant time.
//!
//! A key is 256 random bits, so that its hash tells nothing that helps to guess it: a slow password hash would
//! only make requests slow.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use constant_time_eq::constant_time_eq_32;
use sha2::{Digest, Sha256};

use crate::{Config, ServeError};

/// What a key allows. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// To ask: check, query, compare, fingerprint, documents by id, statistics, metrics.
    Read,
    /// To add and remove documents.
    Write,
    /// To create and delete collections, and to take snapshots.
    Admin,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        })
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(name: &str) -> Result<Scope, String> {
        match name {
            "read" => Ok(Scope::Read),
            "write" => Ok(Scope::Write),
            "admin" => Ok(Scope::Admin),
            _ => Err("expected read, write or admin".to_owned()),
        }
    }
}

/// A key as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) scope: Scope,
    /// For logs.
    pub(crate) name: String,
    digest: [u8; 32],
}

/// The keys of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds keys of lines `SCOPE sha256:HEX [NAME]`; empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// [`ServeError::Setting`] with the number of the line.
    pub(crate) fn add(&mut self, lines: &str, place: &str) -> Result<(), ServeError> {
        for (number, line) in (1..).zip(lines.split(['\n', ';'])) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = Key::parse(line).ok_or_else(|| ServeError::Setting {
                place: format!("{place}, line {number}"),
                problem: "expected `SCOPE sha256:HEX [NAME]` with a scope of read, write or admin and 64 hex digits, as `nearsift serve --new-key SCOPE` prints it".to_owned(),
            })?;
            self.0.push(key);
        }
        Ok(())
    }

    /// Those of the settings and of their file.
    ///
    /// # Errors
    /// A file that cannot be read or has none, or a line that is no key.
    pub(crate) fn of(config: &Config) -> Result<Keys, ServeError> {
        let mut keys = Keys::default();
        keys.add(&config.keys, "keys")?;
        let Some(file) = &config.keys_file else { return Ok(keys) };
        let lines = std::fs::read_to_string(file).map_err(|error| ServeError::File {
            path: file.clone(),
            problem: format!("cannot read the keys: {error}"),
        })?;
        keys.add(&lines, &file.display().to_string())?;
        if keys.is_empty() {
            let problem = "no key in it: make one with `nearsift serve --new-key admin`, or leave keys-file out";
            return Err(ServeError::File { path: file.clone(), problem: problem.to_owned() });
        }
        Ok(keys)
    }

    /// The key that was presented. All are looked at, whichever it is.
    pub(crate) fn find(&self, presented: &str) -> Option<&Key> {
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        self.0.iter().fold(None, |found, key| {
            if constant_time_eq_32(&key.digest, &digest) { Some(key) } else { found }
        })
    }
}

impl Key {
    fn parse(line: &str) -> Option<Key> {
        let mut words = line.split_whitespace();
        let scope = words.next()?.parse().ok()?;
        let hex = words.next()?.strip_prefix("sha256:")?;
        let name: Vec<&str> = words.collect();
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut digest = [0; 32];
        for (byte, digits) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        let name = match name.join(" ") {
            none if none.is_empty() => hex[..8].to_ascii_lowercase(),
            name => name,
        };
        Some(Key { scope, name, digest })
    }
}

/// A key that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// What clients send. It is nowhere else.
    pub key: String,
    /// What the service is given.
    pub line: String,
}

impl NewKey {
    /// A key of 256 random bits.
    ///
    /// # Errors
    /// [`ServeError::System`] when the system gives no random bytes.
    pub fn new(scope: Scope) -> Result<NewKey, ServeError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| ServeError::System {
            doing: "get random bytes",
            source: std::io::Error::other(error.to_string()),
        })?;
        let key = format!("nsk_{}", URL_SAFE_NO_PAD.encode(secret));
        let digest = Sha256::digest(key.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(NewKey { line: format!("{scope} sha256:{hex}"), key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_is_found_by_its_line() {
        let (read, admin) = (NewKey::new(Scope::Read).unwrap(), NewKey::new(Scope::Admin).unwrap());
        let mut keys = Keys::default();
        keys.add(&format!("# two\n\n{} crawler one\r\n{}\n", read.line, admin.line), "keys")
            .unwrap();
        assert_eq!(keys.len(), 2);
        let found = keys.find(&read.key).unwrap();
        assert_eq!((found.scope, found.name.as_str()), (Scope::Read, "crawler one"));
        assert_eq!(keys.find(&admin.key).unwrap().scope, Scope::Admin);
        assert_eq!(keys.find(""), None);
        assert_eq!(keys.find(&read.key[1..]), None);
    }

    #[test]
    fn wrong_lines_are_told() {
        let zeros = "0".repeat(64);
        for bad in
            ["read", "root sha256:00", "read 00", &format!("reed sha256:{zeros}"), "read sha256:zz"]
        {
            let error = Keys::default().add(&format!("\n{bad}"), "keys.txt").unwrap_err();
            assert!(error.to_string().starts_with("keys.txt, line 2: expected"), "{error}");
        }
    }
}
