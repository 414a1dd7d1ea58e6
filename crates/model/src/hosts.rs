//! Checks of `Host` and `Origin` for all calls that are not passed through.
//!
//! A browser lets any page send requests to any address. A page of another site can post to a server that the browser
//! reaches (the request has its `Origin`). A page whose own name resolves to that server can also read the responses
//! (DNS rebinding; the request has its `Host`). Servers often check both, but cannot when the proxy sends the request
//! for the client. Laws: an untrusted peer cannot choose the host that its `Origin` is compared with; a request without
//! `Origin` passes on a network listener without `listen.hosts`.
//!
//! Used by `cli`, `config`, `model`, `gateway` and `server`.

use core::net::{IpAddr, Ipv6Addr};

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

use super::client_ip::forwarded_host;
use super::cors::{Cors, default_port, origin, split};

/// The reach of a listener: the sources of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This machine only.
    Loopback,
    /// Other machines, too.
    Network,
}

impl Reach {
    /// Returns the reach of a listener at an address.
    #[must_use]
    pub fn from_address(address: IpAddr) -> Reach {
        match is_loopback(address) {
            true => Reach::Loopback,
            false => Reach::Network,
        }
    }
}

/// The connection that a request arrived on.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionEntry {
    /// The reach of its listener.
    pub reach: Reach,
    /// The address of its peer, if known.
    pub peer: Option<IpAddr>,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginDenied {
    /// Its `Origin` is not allowed.
    Origin,
    /// Its `Host` is not one of `listen.hosts`.
    Host,
    /// Its `Host` is not loopback, on a loopback listener without `listen.hosts`.
    Rebound,
}

/// A host name of the proxy; without a port, it matches any port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(Authority);

impl HostName {
    /// Parses a host: `api.example`, `localhost:8080`, `[::1]`.
    #[must_use]
    pub fn parse(text: &str) -> Option<HostName> {
        let (_, authority) = split(&format!("http://{text}"))?;
        Some(HostName(authority))
    }

    /// Returns whether a host has this name and an allowed port.
    fn is(&self, host: &Authority, port: Option<u16>) -> bool {
        let (own, other) = (self.0.host(), host.host());
        own.eq_ignore_ascii_case(other) && self.0.port_u16().is_none_or(|own| port == Some(own))
    }
}

/// The rules that requests are checked against.
#[derive(Debug, Clone, Copy)]
pub struct AllowedHosts<'a> {
    /// `listen.hosts`
    pub hosts: &'a [HostName],
    /// `[cors]`
    pub cors: Option<&'a Cors>,
    /// The reach of the listener.
    pub reach: Reach,
}

/// Checks the `Host` and the `Origin` of a request. `is_hop` tells whether its peer is a trusted proxy.
///
/// # Errors
/// [`OriginDenied`] for the first header that is not allowed.
pub fn check(
    allowed: AllowedHosts<'_>,
    uri: &Uri,
    headers: &HeaderMap,
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

/// Returns the host of a request; an absolute target takes precedence over the header (RFC 9112 §3.2.2).
fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let header = || Authority::try_from(headers.get(HOST)?.as_bytes()).ok();
    uri.authority().cloned().or_else(header)
}

/// Returns whether a request names a loopback host, or none: a browser always names one.
fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    if let Some(authority) = uri.authority() {
        return is_loopback_name(authority);
    }
    let Some(host) = headers.get(HOST).map(HeaderValue::as_bytes) else {
        return true;
    };
    // Fast path for the common spellings.
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let name = match host.len() - digits.count() {
        at if at > 0 && host[at - 1] == b':' => &host[..at - 1],
        _ => host,
    };
    matches!(name, b"127.0.0.1" | b"localhost" | b"[::1]")
        || Authority::try_from(host).is_ok_and(|host| is_loopback_name(&host))
}

/// Returns whether an authority is `localhost` or a loopback address.
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

/// Returns whether an address is reachable from this machine only.
#[must_use]
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The host of the page that a web `Origin` names.
struct PageHost {
    host: Authority,
    /// The default port of the scheme, used if the origin names none.
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

    /// Returns whether the page belongs to a host. The scheme of the host is unknown behind a gateway.
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
