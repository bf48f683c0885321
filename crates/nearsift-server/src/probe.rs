//! Asks a service whether it is ready: for containers and supervisors that have no client of their own.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error,
    SignatureScheme, StreamOwned,
};

use crate::{Config, ServeError};

/// How long each step of the question may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// An answer is short.
const MAX_ANSWER_BYTES: u64 = 1 << 16;

/// Whether the service with these settings says at `/readyz` that it is ready: `Err` has what it says instead, or why it does not answer.
///
/// Over HTTPS the service must show the certificate of the settings, whatever names it is for.
///
/// # Errors
/// A certificate that cannot be read.
pub fn ready(config: &Config) -> Result<Result<(), String>, ServeError> {
    let address = reachable(config.listen);
    let certificate = config.tls_cert.as_deref().map(first_certificate).transpose()?;
    let answer = match ask(address, certificate) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(format!("{address}: no answer: {error}"))),
    };
    let status = answer.split(' ').nth(1).unwrap_or_default();
    if status == "200" {
        return Ok(Ok(()));
    }
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body.trim());
    Ok(Err(format!("{address}: not ready: status {status}: {body}")))
}

/// Where this machine reaches a service that listens there.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn first_certificate(path: &Path) -> Result<CertificateDer<'static>, ServeError> {
    let problem = |error| ServeError::File {
        path: path.to_owned(),
        problem: format!("not a certificate chain in PEM: {error}"),
    };
    CertificateDer::from_pem_file(path).map_err(problem)
}

fn ask(
    address: SocketAddr,
    certificate: Option<CertificateDer<'static>>,
) -> Result<String, std::io::Error> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(certificate) = certificate else { return exchange(&mut stream, address) };
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { certificate, provider }))
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let client = ClientConnection::new(Arc::new(config), name).map_err(std::io::Error::other)?;
    exchange(&mut StreamOwned::new(client, stream), address)
}

fn exchange(stream: &mut (impl Read + Write), host: SocketAddr) -> Result<String, std::io::Error> {
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Trusts one certificate, and no other: its owner is on this machine.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _rest_of_chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *shown == self.certificate {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, shown, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, shown, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_that_is_reached() {
        let check = |listen: &str, expect: &str| {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expect);
        };
        check("0.0.0.0:7717", "127.0.0.1:7717");
        check("[::]:7717", "[::1]:7717");
        check("127.0.0.1:80", "127.0.0.1:80");
        check("192.0.2.1:80", "192.0.2.1:80");
    }
}
