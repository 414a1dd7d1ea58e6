//! `tls` of the listener, of upstreams, of the store and of the source of flags.
//!
//! Used by `decode::listen`, `decode::source`, `decode::store` and `decode::upstream`.

use std::path::PathBuf;

use crate::config::key::{Key, Rule, key, section};
use crate::config::kind::{FILE, TEXT, boolean};
use crate::config::raw::{RawClientTls, RawFile, RawTls};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::ValueError;

section! {
    /// `[listen.tls]`
    pub(super) SERVER {
        /// PEM file with the certificate chain
        CERTIFICATE: Key<PathBuf> = key("certificate", FILE).required();
        /// PEM file with the private key
        PRIVATE_KEY: Key<PathBuf> = key("key", FILE).required();
        /// PEM file with the CAs of client certificates, which are optional
        CLIENT_CA: Key<PathBuf> = key("client_ca", FILE);
        /// Offers HTTP/2 beside HTTP/1.1; `true` by default
        HTTP2: Key<bool> = key("http2", boolean(&[false, true]));
    }
}

section! {
    /// `tls` of a server that the proxy calls.
    pub(super) CLIENT {
        /// PEM file with CAs that replace the public ones
        CA: Key<PathBuf> = key("ca", FILE);
        /// PEM file with the client certificate
        OWN_CERTIFICATE: Key<PathBuf> = key("certificate", FILE);
        /// PEM file with the key of the client certificate
        OWN_KEY: Key<PathBuf> = key("key", FILE);
        /// Required name in the certificate of the server; its host by default
        SERVER_NAME: Key<String> = key("server_name", TEXT);
    }
    rules [
        Rule::Needs("certificate", &["key"]),
        Rule::Needs("key", &["certificate"]),
    ]
}

/// Decodes `[listen.tls]`.
pub(super) fn server(table: &mut Table<'_>) -> Option<RawTls> {
    let certificate = table.get(&CERTIFICATE);
    let key = table.get(&PRIVATE_KEY);
    let client_ca = table.get(&CLIENT_CA);
    let http2 = table.get(&HTTP2);
    Some(RawTls {
        certificate: RawFile::at(certificate?),
        key: RawFile::at(key?),
        client_ca: client_ca.map(RawFile::at),
        http2,
    })
}

/// Decodes `tls` of an upstream, of the store or of the source of flags.
pub(super) fn client(table: &mut Table<'_>) -> Option<RawClientTls> {
    let place = table.here();
    let ca = table.get(&CA);
    let certificate = table.get(&OWN_CERTIFICATE);
    let key = table.get(&OWN_KEY);
    let server_name = table.get(&SERVER_NAME);
    for word in ["verify", "insecure"] {
        if table.shape(word) != Shape::Absent {
            let message = "server certificates are always verified";
            let hint = "name the CA that signed it, or the certificate itself, in `ca`";
            table.report(word, ValueError::new(message).hint(hint));
        }
    }
    for (one, other) in [("certificate", "key"), ("key", "certificate")] {
        if table.shape(one) != Shape::Absent && table.shape(other) == Shape::Absent {
            let message = format!("`{one}` needs `{other}`");
            table.report(one, ValueError::new(message));
        }
    }
    Some(RawClientTls {
        place,
        ca: ca.map(RawFile::at),
        certificate: certificate.map(RawFile::at),
        key: key.map(RawFile::at),
        server_name,
    })
}
