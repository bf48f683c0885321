//! HTTPS: the certificate and its key.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::ServeError;

/// What speaks TLS 1.2 and 1.3, with HTTP/2 where the client knows it.
///
/// # Errors
/// A file that cannot be read, or is no certificate or key.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ServeError> {
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| about(key, format!("does not fit the certificate: {error}")))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
