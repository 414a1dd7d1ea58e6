//! Certificates that tests make for themselves, and servers behind TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
};

use super::{Proxy, Upstream, WITHIN};

/// Who signs certificates.
pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

static AUTHORITIES: AtomicUsize = AtomicUsize::new(0);

/// A new authority.
pub(crate) fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Two of one name would be taken for each other, and only their signatures told apart.
    let number = AUTHORITIES.fetch_add(1, Ordering::SeqCst);
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, format!("authority {number}"));
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key.
pub(crate) struct Certified {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    pub(crate) key: KeyPair,
}

impl Certified {
    /// The key, as a file has it.
    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// The key, as rustls takes it.
    pub(crate) fn private(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).unwrap()
    }
}

/// A certificate of an authority for a name.
pub(crate) fn certified(by: &Authority, common_name: &str, alternative: &str) -> Certified {
    certified_with(by, common_name, alternative, |_| {})
}

/// The same with more to say.
pub(crate) fn certified_with(
    by: &Authority,
    common_name: &str,
    alternative: &str,
    more: impl FnOnce(&mut CertificateParams),
) -> Certified {
    let mut params = CertificateParams::new(vec![alternative.to_owned()]).unwrap();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    more(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    Certified {
        certificate: certificate.der().clone(),
        pem: certificate.pem(),
        key,
    }
}

/// The only authority that is believed.
pub(crate) fn believing(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    roots
}

/// A door of TLS before a server that speaks plainly.
pub(crate) struct Door {
    address: SocketAddr,
    seen: Arc<Seen>,
}

/// What came to the door.
#[derive(Default)]
struct Seen {
    handshakes: AtomicUsize,
    names: Mutex<Vec<String>>,
    protocols: Mutex<Vec<String>>,
}

impl Door {
    /// Whoever comes is shown this certificate, and shows one of `clients` where there is such an authority.
    pub(crate) fn before(server: &Upstream, own: &Certified, clients: Option<&Authority>) -> Door {
        Door::speaking(&["http/1.1"], server.address(), (own, clients))
    }

    /// The same, with an offer of protocols.
    pub(crate) fn speaking(
        protocols: &[&str],
        server: SocketAddr,
        (own, clients): (&Certified, Option<&Authority>),
    ) -> Door {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let roots = Arc::new(believing(authority));
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder
            .with_single_cert(vec![own.certificate.clone()], own.private())
            .unwrap();
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        Door::open(server, config)
    }

    fn open(server: SocketAddr, config: ServerConfig) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Seen>::default();
        let noted = seen.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let acceptor = TlsAcceptor::from(Arc::new(config));
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let mut open = JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (acceptor, seen) = (acceptor.clone(), noted.clone());
                    open.spawn(async move {
                        let Ok(mut client) = acceptor.accept(stream).await else {
                            return;
                        };
                        seen.note(&client);
                        let mut server = tokio::net::TcpStream::connect(server).await.unwrap();
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            });
        });
        Door { address, seen }
    }

    /// The port where it stands, on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many have come in.
    pub(crate) fn handshakes(&self) -> usize {
        self.seen.handshakes.load(Ordering::SeqCst)
    }

    /// The names that it was asked by.
    pub(crate) fn names(&self) -> Vec<String> {
        self.seen.names.lock().unwrap().clone()
    }

    /// The protocols that were agreed on.
    pub(crate) fn protocols(&self) -> Vec<String> {
        self.seen.protocols.lock().unwrap().clone()
    }
}

impl Seen {
    fn note(&self, client: &tokio_rustls::server::TlsStream<tokio::net::TcpStream>) {
        self.handshakes.fetch_add(1, Ordering::SeqCst);
        let connection = client.get_ref().1;
        let name = connection.server_name().unwrap_or_default().to_owned();
        self.names.lock().unwrap().push(name);
        let protocol = connection.alpn_protocol().unwrap_or_default();
        let protocol = String::from_utf8_lossy(protocol).into_owned();
        self.protocols.lock().unwrap().push(protocol);
    }
}

/// A client's connection to the proxy, which shows a certificate or none; its handshake comes with the first bytes.
pub(crate) fn secured(
    proxy: &Proxy,
    believes: &Authority,
    shows: Option<&Certified>,
) -> StreamOwned<ClientConnection, TcpStream> {
    secured_with(proxy, believes, shows, &[])
}

/// The same, with an offer of protocols.
pub(crate) fn secured_with(
    proxy: &Proxy,
    believes: &Authority,
    shows: Option<&Certified>,
    protocols: &[&str],
) -> StreamOwned<ClientConnection, TcpStream> {
    at(proxy.address(), client_config(believes, shows, protocols))
}

/// A client's connection to an address, which may be one process's after another.
pub(crate) fn secured_at(
    address: SocketAddr,
    believes: &Authority,
) -> StreamOwned<ClientConnection, TcpStream> {
    at(address, client_config(believes, None, &[]))
}

fn at(address: SocketAddr, config: Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("proxy.example").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(WITHIN)).unwrap();
    StreamOwned::new(connection, socket)
}

/// The certificate that the proxy shows to a client whom it believes; a call is made, since a client is refused
/// behind its handshake.
pub(crate) fn shown_to(
    proxy: &Proxy,
    believes: &Authority,
    shows: Option<&Certified>,
) -> io::Result<CertificateDer<'static>> {
    let mut stream = secured(proxy, believes, shows);
    let call = "GET / HTTP/1.1\r\nHost: proxy.example\r\nConnection: close\r\n\r\n";
    stream.write_all(call.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    let chain = stream.conn.peer_certificates().unwrap();
    Ok(chain[0].clone().into_owned())
}

/// What a client offers and believes.
pub(crate) fn client_config(
    believes: &Authority,
    shows: Option<&Certified>,
    protocols: &[&str],
) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(believing(believes));
    let mut config = match shows {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = vec![own.certificate.clone()];
            let config = builder.with_client_auth_cert(chain, own.private());
            config.unwrap()
        }
    };
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}
