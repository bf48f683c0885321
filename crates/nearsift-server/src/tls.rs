//! HTTPS: the certificate and its key, which are read again while the service runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::ServeError;
use crate::reload::Current;

/// The certificate that connections are shown, and the files that it is read from.
#[derive(Debug)]
pub(crate) struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    current: Current<CertifiedKey>,
}

impl Certificate {
    /// # Errors
    /// A file that cannot be read, or is no certificate or key.
    pub(crate) fn open(chain: &Path, key: &Path) -> Result<Certificate, ServeError> {
        let current = Current::new(read(chain, key)?);
        Ok(Certificate { chain: chain.to_owned(), key: key.to_owned(), current })
    }

    /// Reads the files again. Connections that begin from now on are shown what they have; those that are open stay as they are.
    ///
    /// # Errors
    /// As [`Certificate::open`]: then the certificate is the one before.
    pub(crate) fn reload(&self) -> Result<(), ServeError> {
        self.current.set(read(&self.chain, &self.key)?);
        Ok(())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.get())
    }
}

/// What speaks TLS 1.2 and 1.3, with HTTP/2 where the client knows it.
///
/// # Errors
/// Without a version of TLS that both sides know.
pub(crate) fn acceptor(certificate: Arc<Certificate>) -> Result<TlsAcceptor, ServeError> {
    let chain = certificate.chain.clone();
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ServeError::File { path: chain, problem: error.to_string() })?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, ServeError> {
    let about = |path: &Path, problem: String| ServeError::File { path: path.to_owned(), problem };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| about(certificate, format!("not a certificate chain in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(about(
            certificate,
            "no certificate in it: expected PEM blocks CERTIFICATE".to_owned(),
        ));
    }
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| about(key, format!("not a private key in PEM: {error}")))?;
    CertifiedKey::from_der(chain, secret, &default_provider())
        .map_err(|error| about(key, format!("does not fit the certificate: {error}")))
}
