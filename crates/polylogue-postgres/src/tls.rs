//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use polylogue_core::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::wrong;

/// A connector that verifies certificates by those in the file `roots`; without one, by the system's.
pub(crate) fn connector(roots: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let failed = |error: rustls::Error| wrong(&format!("its certificates cannot be verified: {error}"), HINT);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let config = match roots {
        Some(path) => builder.with_root_certificates(roots_in(path)?),
        None => builder.with_platform_verifier().map_err(failed)?,
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

const HINT: &str = "name a file of certificates in PEM with `sslrootcert=FILE` in the address";

fn roots_in(path: &Path) -> Result<RootCertStore, StoreError> {
    let unreadable =
        |why: &str| wrong(&format!("its certificates in {} cannot be read: {why}", path.display()), HINT);
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| unreadable(&error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(&error.to_string()))?;
    }
    if roots.is_empty() { Err(unreadable("it has none")) } else { Ok(roots) }
}
