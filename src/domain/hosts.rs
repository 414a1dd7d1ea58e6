//! Checks of `HostField` and `Origin` for everything that the proxy does not pass through.
//!
//! A browser lets any page send requests to any address. A page of another site can post to a server that the browser
//! reaches (the request has its `Origin`), and a page whose own name resolves to that server reads the answers as well
//! (DNS rebinding; the request has its `HostField`). A server often checks both by itself, and cannot where the proxy speaks
//! for the client. Laws: an untrusted peer cannot choose by which host its `Origin` is judged; a request without
//! `Origin` on a listener that others reach, without `listen.hosts`, passes.

use core::net::{IpAddr, Ipv6Addr};

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

use super::client_ip::forwarded_host;
use super::cors::{Cors, default_port, origin, split};

/// From where connections can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// From this machine only.
    Loopback,
    /// From other machines, too.
    Network,
}

impl Reach {
    /// The reach of a listener at an address.
    #[must_use]
    pub fn from_address(address: IpAddr) -> Reach {
        match is_loopback(address) {
            true => Reach::Loopback,
            false => Reach::Network,
        }
    }
}

/// The connection by which a request comes.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionEntry {
    /// The reach of its listener.
    pub reach: Reach,
    /// Its other end, where that is known.
    pub peer: Option<IpAddr>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginDenied {
    /// Its `Origin` is not allowed.
    Origin,
    /// Its `HostField` is not one of `listen.hosts`.
    Host,
    /// Its `HostField` is not loopback, on a loopback listener without `listen.hosts`.
    Rebound,
}

/// A host by which the proxy is reached; without a port, with any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(Authority);

impl HostName {
    /// The host that a text spells: `api.example`, `localhost:8080`, `[::1]`.
    #[must_use]
    pub fn parse(text: &str) -> Option<HostName> {
        let (_, authority) = split(&format!("http://{text}"))?;
        Some(HostName(authority))
    }

    /// Whether a host has this name, and a port that this name allows.
    fn is(&self, host: &Authority, port: Option<u16>) -> bool {
        let (own, other) = (self.0.host(), host.host());
        own.eq_ignore_ascii_case(other) && self.0.port_u16().is_none_or(|own| port == Some(own))
    }
}

/// Whose requests are allowed.
#[derive(Debug, Clone, Copy)]
pub struct AllowedHosts<'a> {
    /// `listen.hosts`
    pub hosts: &'a [HostName],
    /// `[cors]`
    pub cors: Option<&'a Cors>,
    /// From where the listener is reached.
    pub reach: Reach,
}

/// Checks the `HostField` and the `Origin` of a request. `is_hop` tells whether its peer is a trusted hop.
///
/// # Errors
/// What of it is not allowed.
pub fn check(
    allowed: AllowedHosts<'_>,
    (uri, headers): (&Uri, &HeaderMap),
    is_hop: impl Fn() -> bool,
) -> Result<(), OriginDenied> {
    let AllowedHosts { hosts, cors, reach } = allowed;
    match hosts {
        [] if reach == Reach::Loopback && !names_loopback(uri, headers) && !is_hop() => {
            return Err(OriginDenied::Rebound);
        }
        [] => {}
        hosts => {
            let host = host(uri, headers);
            let is_ours = |host: &Authority| hosts.iter().any(|own| own.is(host, host.port_u16()));
            if !host.as_ref().is_some_and(is_ours) {
                return Err(OriginDenied::Host);
            }
        }
    }
    if !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let is_admitted = |origin: &HeaderValue| {
        cors.is_some_and(|cors| cors.admits(origin))
            || PageHost::from_origin(origin).is_some_and(|page| {
                host(uri, headers).is_some_and(|host| page.is_of(&host))
                    || hosts.iter().any(|host| page.is_of_name(host))
                    || (is_hop() && forwarded_host(headers).is_some_and(|host| page.is_of(&host)))
            })
    };
    match origin(headers).is_some_and(is_admitted) {
        true => Ok(()),
        false => Err(OriginDenied::Origin),
    }
}

/// The host that a request names; an absolute target beats the header (RFC 9112 §3.2.2).
fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let header = || Authority::try_from(headers.get(HOST)?.as_bytes()).ok();
    uri.authority().cloned().or_else(header)
}

/// Whether a request names a loopback host, or none: a browser always names one.
fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    if let Some(authority) = uri.authority() {
        return is_loopback_name(authority);
    }
    let Some(host) = headers.get(HOST).map(HeaderValue::as_bytes) else {
        return true;
    };
    // Most clients write one of these.
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let name = match host.len() - digits.count() {
        at if at > 0 && host[at - 1] == b':' => &host[..at - 1],
        _ => host,
    };
    matches!(name, b"127.0.0.1" | b"localhost" | b"[::1]")
        || Authority::try_from(host).is_ok_and(|host| is_loopback_name(&host))
}

/// Whether an authority is `localhost` or a loopback address.
#[must_use]
pub fn is_loopback_name(authority: &Authority) -> bool {
    let name = authority.host();
    if authority.as_str().contains('@') {
        return false;
    }
    let bare = name.strip_suffix('.').unwrap_or(name);
    if bare.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let address = match name.strip_prefix('[').and_then(|n| n.strip_suffix(']')) {
        Some(bracketed) => bracketed.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse().ok(),
    };
    address.is_some_and(is_loopback)
}

/// Whether an address can be reached from this machine only.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The host of the page that an `Origin` of the web names.
struct PageHost {
    host: Authority,
    /// That of the scheme where the origin names none.
    default_port: u16,
}

impl PageHost {
    fn from_origin(origin: &HeaderValue) -> Option<PageHost> {
        let (scheme, host) = split(origin.to_str().ok()?)?;
        Some(PageHost {
            host,
            default_port: default_port(&scheme)?,
        })
    }

    /// Whether the page is of a host. The scheme by which the host is reached is not known behind a gateway.
    fn is_of(&self, host: &Authority) -> bool {
        let port = host.port_u16().unwrap_or(self.default_port);
        self.host.host().eq_ignore_ascii_case(host.host()) && self.port() == port
    }

    fn is_of_name(&self, name: &HostName) -> bool {
        name.is(&self.host, Some(self.port()))
    }

    fn port(&self) -> u16 {
        self.host.port_u16().unwrap_or(self.default_port)
    }
}

#[cfg(test)]
mod tests;
