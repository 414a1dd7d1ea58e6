//! TLS of the listener and of upstreams: checks of certificates and keys.
//!
//! Used by `config::compile`.

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawClientTls, RawFile, RawStore, RawTls};
use dualgauge_net::tls_config::{Alpn, TlsFault, TlsPart, client, roots, server, server_name};
use dualgauge_transport::tls::{ClientTls, Pem, ServerTls, TlsIdentity};

/// Compiles `[listen.tls]`, and reports every part that is invalid.
pub(super) fn listener(raw: &RawTls, problems: &mut Vec<Problem>) -> ServerTls {
    let tls = ServerTls {
        own: identity(&raw.certificate, &raw.key),
        client_ca: raw.client_ca.as_ref().map(pem),
        offers_http2: raw.http2.as_ref().is_none_or(|http2| http2.value),
    };
    let own = ServerTls {
        client_ca: None,
        ..tls.clone()
    };
    problems.extend(server(&own).err().map(|fault| match fault.part {
        TlsPart::Key => invalid_file(&raw.key, &fault),
        TlsPart::Certificate | TlsPart::Authorities | TlsPart::Name => {
            invalid_file(&raw.certificate, &fault)
        }
    }));
    if let Some((file, ca)) = raw.client_ca.as_ref().zip(tls.client_ca.as_ref()) {
        problems.extend(roots(ca).err().map(|fault| invalid_file(file, &fault)));
    }
    tls
}

/// Compiles `[upstream.NAME.tls]`, if present, and reports every invalid part. The server name is `host` unless
/// configured.
pub(super) fn upstream<T>(
    raw: Option<&RawClientTls>,
    host: &str,
    url: &Spanned<T>,
    problems: &mut Vec<Problem>,
) -> ClientTls {
    let configured = raw.and_then(|raw| raw.server_name.as_ref());
    let named = configured.map_or(host, |name| name.value.as_str());
    let own = raw.and_then(|raw| raw.certificate.as_ref().zip(raw.key.as_ref()));
    let ca = raw.and_then(|raw| raw.ca.as_ref());
    let tls = ClientTls {
        server_name: named.trim_matches(['[', ']']).to_owned(),
        ca: ca.map(pem),
        own: own.map(|(certificate, key)| identity(certificate, key)),
    };
    if let Some((file, ca)) = ca.zip(tls.ca.as_ref()) {
        problems.extend(roots(ca).err().map(|fault| invalid_file(file, &fault)));
    }
    if server_name(&tls).is_err() {
        problems.push(match configured {
            Some(name) => name.problem(format!("`{}` {NO_NAME}", name.value)),
            None => url.problem(format!("its host, `{host}`, {NO_NAME}")),
        });
    }
    if let Some((certificate, key)) = own {
        let own_only = ClientTls {
            server_name: "localhost".to_owned(),
            ca: None,
            own: tls.own.clone(),
        };
        let found = client(&own_only, Alpn::Http).err();
        problems.extend(found.map(|fault| match fault.part {
            TlsPart::Key => invalid_file(key, &fault),
            TlsPart::Certificate | TlsPart::Authorities | TlsPart::Name => {
                invalid_file(certificate, &fault)
            }
        }));
    }
    tls
}

/// Compiles `[rollout.store.tls]` if the store uses TLS, and reports every invalid part.
pub fn store(raw: &RawStore, problems: &mut Vec<Problem>) -> Option<ClientTls> {
    let is_secured = raw.url.value.is_secured();
    let host = raw.url.value.host();
    is_secured.then(|| upstream(raw.tls.as_ref(), host, &raw.url, problems))
}

const NO_NAME: &str = "is neither a host name nor an IP address";

fn identity(certificate: &RawFile, key: &RawFile) -> TlsIdentity {
    TlsIdentity {
        certificate: pem(certificate),
        key: pem(key),
    }
}

fn pem(file: &RawFile) -> Pem {
    Pem::new(&file.content.0)
}

fn invalid_file(file: &RawFile, fault: &TlsFault) -> Problem {
    let shown = file.path.value.display();
    file.path.problem(format!("`{shown}` is invalid: {fault}"))
}
