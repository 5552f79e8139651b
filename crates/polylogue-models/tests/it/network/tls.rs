//! An encrypted way to a server, with a certificate that an authority of the test's own has signed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Decrypts what comes in and passes it on.
pub(crate) struct Tls {
    pub(crate) address: SocketAddr,
    folder: TempDir,
}

impl Tls {
    /// In front of the server at `to`, with a certificate for `name`.
    pub(crate) async fn start(to: SocketAddr, name: &str) -> Self {
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();

        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let chain = vec![certificate.der().clone()];
        let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(acceptor.clone(), stream, to));
            }
        });
        Self { address, folder }
    }

    /// The certificate of the authority, as a file.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join(Path::new("ca.pem"))
    }
}

async fn pass_on(acceptor: TlsAcceptor, stream: TcpStream, to: SocketAddr) {
    // A client that does not trust the certificate hangs up.
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let mut server = TcpStream::connect(to).await.unwrap();
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}
