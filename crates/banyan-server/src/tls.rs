//! The certificate that the server shows, and noticing that its files have changed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::app::Shared;
use crate::settings::Tls;

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read, or has not what is looked for.
    #[error("{path}: {error}")]
    Pem {
        /// The file.
        path: String,
        /// What is wrong.
        error: pem::Error,
    },
    /// The file has no certificate.
    #[error("{0} has no certificate in it")]
    Empty(String),
    /// The certificate and the private key do not work together.
    #[error("the certificate {certificate} and the key {key} do not work together: {error}")]
    Pair {
        /// The file with the certificate.
        certificate: String,
        /// The file with the private key.
        key: String,
        /// What is wrong.
        error: rustls::Error,
    },
}

/// The certificate in use.
pub(crate) struct Certificates {
    files: Tls,
    acceptor: RwLock<TlsAcceptor>,
    tried: Mutex<Option<Stamp>>,
}

/// What tells one version of the files from another.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    pub(crate) fn load(files: &Tls) -> Result<Self, TlsError> {
        let tried = stamp(files);
        let acceptor = RwLock::new(read(files)?);
        Ok(Self { files: files.clone(), acceptor, tried: Mutex::new(Some(tried)) })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the files when they have changed. Files that cannot be used leave everything as it is.
    fn refresh(&self) -> Result<bool, TlsError> {
        let now = stamp(&self.files);
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if tried.replace(now) == Some(now) {
            return Ok(false);
        }
        let acceptor = read(&self.files)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(true)
    }

    /// Looks after the files until the server stops.
    pub(crate) async fn follow(self: Arc<Self>, app: Shared) {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                _ = tick.tick() => match self.refresh() {
                    Ok(true) => tracing::info!("the certificate was read again"),
                    Ok(false) => {}
                    Err(error) => tracing::warn!(%error, "the new certificate cannot be used; the last one stays"),
                },
                () = app.stopped() => return,
            }
        }
    }
}

fn stamp(files: &Tls) -> Stamp {
    let of = |path: &Path| std::fs::metadata(path).ok().and_then(|file| Some((file.modified().ok()?, file.len())));
    [of(&files.certificate), of(&files.key)]
}

fn read(files: &Tls) -> Result<TlsAcceptor, TlsError> {
    let pem = |path: &Path, error| TlsError::Pem { path: path.display().to_string(), error };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| pem(&files.certificate, error))?;
    if chain.is_empty() {
        return Err(TlsError::Empty(files.certificate.display().to_string()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| pem(&files.key, error))?;
    let pair = |error| TlsError::Pair {
        certificate: files.certificate.display().to_string(),
        key: files.key.display().to_string(),
        error,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
