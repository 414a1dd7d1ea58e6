//! `[listen]` and `[admin]` Used by `decode`.

use std::net::SocketAddr;
use std::thread::available_parallelism;

use http::{HeaderName, Uri};

use super::{cors, identity, tls};
use crate::config::key::{
    Key, List, NamedValues, SubTable, key, list, named_values, section, table,
};
use crate::config::kind::{
    ADDRESS, ANY_TEXT, Kind, NAME, SOME_TEXT, TOKEN_HASH, other, whole, words,
};
use crate::config::problem::Spanned;
use crate::config::raw::RawListen;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, cut, header_named, string};
use dualgauge_model::client_ip::Network;
use dualgauge_model::forwarding::{ForwardingHeader, TrustForwarded};
use dualgauge_model::hosts::HostName;
use dualgauge_model::identity_headers::{HeaderPattern, HeaderTemplate};
use dualgauge_model::mcp::{PublicUrl, PublicUrlFault};
use dualgauge_model::rollout::Authentication;
use dualgauge_transport::proxy_protocol::ProxyProtocolUse;

const PROXY_PROTOCOL_WORDS: &[(&str, ProxyProtocolUse)] = &[
    ("off", ProxyProtocolUse::Off),
    ("required", ProxyProtocolUse::Required),
];
const AUTHENTICATIONS: &[(&str, Authentication)] = &[
    ("off", Authentication::Off),
    ("required", Authentication::Required),
];
const FORWARDING_HEADERS: &[(&str, ForwardingHeader)] = &[
    ("forwarded", ForwardingHeader::Forwarded),
    ("x-forwarded-for", ForwardingHeader::For),
    ("x-forwarded-proto", ForwardingHeader::Proto),
    ("x-forwarded-host", ForwardingHeader::Host),
    ("x-real-ip", ForwardingHeader::RealIp),
];
const TRUST_FORWARDED: &[(&str, TrustForwarded)] = &[
    ("trusted", TrustForwarded::Trusted),
    ("everyone", TrustForwarded::Everyone),
];

/// A larger number is a typing error, and each worker is a thread.
const MOST_WORKERS: i64 = 1024;

/// Returns the default of `workers`.
fn cores() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let cores = i64::try_from(cores).unwrap_or(1);
    cores.min(MOST_WORKERS).to_string()
}

/// A header name, or a prefix of names.
const HEADER_PATTERN: Kind<HeaderPattern> = other(
    "HTTP header name; write a name such as `x-client-cert`, or a prefix such as `x-ssl-client-*`",
    SOME_TEXT,
    header_pattern,
);
/// The URL of the proxy.
const PUBLIC_URLS: Kind<PublicUrl> = other(
    "URL of the proxy; write one such as `https://gateway.example`",
    r#"{ "type": "string", "pattern": "^https?://" }"#,
    public_url,
);
/// The value of a header, with facts about the caller.
const HEADER_TEMPLATE: Kind<HeaderTemplate> = other("string", ANY_TEXT, header_template);

section! {
    /// `[listen]`
    pub(super) LISTEN {
        /// Address for calls
        LISTEN_ADDRESS: Key<SocketAddr> = key("address", ADDRESS).or("127.0.0.1:8080");
        /// Worker threads, each with a listener
        WORKERS: Key<usize> = key("workers", whole(1, MOST_WORKERS)).or_computed("number of cores", cores);
        /// Host names of the proxy; any if empty, or the loopback names on a loopback listener
        HOSTS: List<HostName> = list("hosts", cors::HOST);
        /// URL at which clients reach the proxy, named in the protected resource metadata of MCP servers
        PUBLIC_URL: Key<PublicUrl> = key("public_url", PUBLIC_URLS);
        /// Networks and addresses of trusted hops
        TRUSTED: List<Network> = list("trusted", identity::NETWORK);
        /// Headers that name the previous hop to upstreams
        FORWARDED: List<ForwardingHeader> = list("forwarded", words(FORWARDING_HEADERS)).or(&["forwarded"]);
        /// Peers whose forwarding headers reach upstreams
        FORWARDED_FROM: Key<TrustForwarded> = key("forwarded_from", words(TRUST_FORWARDED)).or("trusted");
        /// Request headers to remove unless a trusted hop sent them
        REMOVE_HEADERS: List<HeaderPattern> = list("remove_headers", HEADER_PATTERN);
        /// Headers set on each upstream request, replacing those of the client
        SET_HEADERS: NamedValues<HeaderTemplate> = named_values("set_headers", HEADER_TEMPLATE);
        /// PROXY headers at the start of connections of trusted hops; `off` by default
        PROXY_PROTOCOL: Key<ProxyProtocolUse> = key("proxy_protocol", words(PROXY_PROTOCOL_WORDS));
        /// Calls without the credentials of a `[[client]]` get 401, if required; `off` by default
        AUTHENTICATION: Key<Authentication> = key("authentication", words(AUTHENTICATIONS));
        /// TLS of the listener
        TLS: SubTable = table("tls", &tls::SERVER);
    }
}

pub(super) fn listen(table: &mut Table<'_>) -> Option<RawListen> {
    let address = table.get(&LISTEN_ADDRESS);
    let workers = table.get(&WORKERS);
    let hosts = table.list(&HOSTS);
    let public_url = table.get(&PUBLIC_URL);
    let trusted = table.list(&TRUSTED);
    let forwarded = table.list(&FORWARDED);
    let forwarded_from = table.get(&FORWARDED_FROM);
    let remove_headers = table.list(&REMOVE_HEADERS);
    let set_headers = set_headers(table);
    let proxy_protocol = table.get(&PROXY_PROTOCOL);
    let authentication = table.get(&AUTHENTICATION);
    let tls = table.table(&TLS, tls::server);
    Some(RawListen {
        address: address?,
        workers: workers?,
        hosts: hosts?,
        public_url,
        trusted: trusted?,
        forwarded: forwarded?,
        forwarded_from: forwarded_from?,
        remove_headers: remove_headers?,
        set_headers: set_headers?,
        proxy_protocol,
        authentication,
        tls,
    })
}

fn public_url(found: RawValue<'_>) -> Result<PublicUrl, ValueError> {
    let text = string(found)?;
    let no_url = || {
        ValueError::new(format!(
            "`{}` is not the URL of the proxy; write one such as `https://gateway.example`",
            cut(&text)
        ))
    };
    let uri: Uri = text.parse().map_err(|_| no_url())?;
    PublicUrl::from_uri(&uri).map_err(|fault| match fault {
        PublicUrlFault::NotAbsolute => no_url(),
        // The text is not shown: it may contain a password.
        PublicUrlFault::UserInfo => ValueError::new("the URL of the proxy has no user name"),
        PublicUrlFault::Query => ValueError::new("the URL of the proxy has no query"),
    })
}

fn header_pattern(found: RawValue<'_>) -> Result<HeaderPattern, ValueError> {
    let text = string(found)?;
    HeaderPattern::parse(&text)
        .map_err(|fault| ValueError::new(format!("`{}` {fault}", cut(&text))))
}

fn header_template(found: RawValue<'_>) -> Result<HeaderTemplate, ValueError> {
    let text = string(found)?;
    // The text may be a secret, and is not shown.
    HeaderTemplate::parse(&text).map_err(|fault| ValueError::new(format!("the value {fault}")))
}

fn set_headers(
    table: &mut Table<'_>,
) -> Option<Vec<(Spanned<HeaderName>, Spanned<HeaderTemplate>)>> {
    if table.shape(SET_HEADERS.name) == Shape::Absent {
        return Some(Vec::new());
    }
    let named = table.named_values(&SET_HEADERS)?;
    let count = named.len();
    let mut headers = Vec::with_capacity(count);
    for (name, template) in named {
        match header_named(&name.value) {
            Ok(header) => headers.push((name.map(|_| header), template)),
            Err(wrong) => table.add(name.problem(wrong.message)),
        }
    }
    (headers.len() == count).then_some(headers)
}

section! {
    /// `[admin]`
    pub(super) ADMIN {
        /// Address for health, metrics and the admin API
        ADMIN_ADDRESS: Key<SocketAddr> = key("address", ADDRESS).or("127.0.0.1:9090");
        /// Upstreams that `/readyz` requires
        READY_UPSTREAMS: List<String> = list("ready_upstreams", NAME);
        /// Admin users with the SHA-256 of their token
        TOKENS: NamedValues<[u8; 32]> = named_values("tokens", TOKEN_HASH);
    }
}

/// `[admin]`, with its tokens by the names of their holders.
pub(super) struct RawAdmin {
    pub(super) address: Spanned<SocketAddr>,
    pub(super) tokens: Vec<(String, [u8; 32])>,
    pub(super) ready: Vec<Spanned<String>>,
}

pub(super) fn admin(table: &mut Table<'_>) -> Option<RawAdmin> {
    let address = table.get(&ADMIN_ADDRESS);
    let ready = table.list(&READY_UPSTREAMS);
    let tokens = match table.shape(TOKENS.name) {
        Shape::Absent => Some(Vec::new()),
        Shape::Table | Shape::Value => table.named_values(&TOKENS),
    };
    Some(RawAdmin {
        address: address?,
        tokens: tokens?
            .into_iter()
            .map(|(name, hash)| (name.value, hash.value))
            .collect(),
        ready: ready?,
    })
}
