//! Servers with a certificate of an authority that the system does not know, and processes that trust it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;

/// The prefix of what the child received, in the output of a test.
pub(crate) const HEARD: &str = "heard: ";

/// The settings of a server with a certificate for `name`, and a folder with the certificate of its authority.
pub(crate) fn certified(name: &str) -> (ServerConfig, TempDir) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    (config, folder)
}

/// Runs the ignored test `name` in a process of its own that trusts the authority in `folder`, and returns the lines that
/// begin with [`HEARD`].
pub(crate) async fn child(name: &str, variables: &[(&str, String)], folder: Option<&Path>) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--ignored", "--nocapture"]);
    child.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
    child.envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = folder {
        child.env("SSL_CERT_FILE", folder.join("ca.pem"));
    }
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed} {}", String::from_utf8_lossy(&output.stderr));
    printed.lines().filter_map(|line| Some(line.split_once(HEARD)?.1.to_owned())).collect()
}
