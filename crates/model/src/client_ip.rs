//! The client address of a call: networks, trusted proxies, and the address that they report.
//!
//! The peer address is a fact; a header that reports earlier hops counts only when a trusted hop wrote it. The list is
//! read from its right end, which the nearest hop wrote, and reading stops at the first address that is not trusted.
//! Law: data from an untrusted peer never changes its address.
//!
//! Used by `config`, `model`, `gateway` and `server`.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::borrow::Cow;

use http::header::FORWARDED;
use http::uri::Authority;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Maximum number of hops followed; a longer chain of trusted hops is treated as a loop.
const MOST_HOPS: usize = 32;

/// A network: all addresses with one prefix, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

/// The reason why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFault {
    /// The text is not a network.
    #[error("is not an address or network; write one such as `10.0.0.0/8`, `192.0.2.7` or `::1`")]
    NoNetwork,
    /// The address has bits set outside of the network's prefix.
    #[error("has host bits set; the network is `{0}`")]
    HostBits(Network),
}

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or a single address.
    ///
    /// # Errors
    /// [`NetworkFault`].
    ///
    /// ```
    /// use dualgauge_model::client_ip::Network;
    /// assert!(Network::parse("10.0.0.0/8").unwrap().contains("10.1.2.3".parse().unwrap()));
    /// assert!(Network::parse("10.0.0.1/8").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Network, NetworkFault> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Network(address.to_canonical().into()));
        }
        let network: IpNet = text.parse().map_err(|_| NetworkFault::NoNetwork)?;
        if network == network.trunc() {
            Ok(Network(network))
        } else {
            Err(NetworkFault::HostBits(Network(network.trunc())))
        }
    }

    /// Returns whether the network contains an address. An IPv4-mapped IPv6 address counts as the IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the text of an address; skips the formatting machinery, which would dominate the cost of a hop.
pub(super) fn text_of(address: IpAddr) -> String {
    let mut text = String::with_capacity(15);
    push_address(&mut text, address);
    text
}

/// Appends the text of an address.
pub(super) fn push_address(text: &mut String, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        return text.push_str(&address.to_string());
    };
    for (index, octet) in address.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        text.push_str(itoa::Buffer::new().format(octet));
    }
}

/// The peer of a connection: its address, and the text of it, which each call may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    address: IpAddr,
    text: Box<str>,
}

impl Peer {
    /// Returns the peer at an address.
    #[must_use]
    pub fn at(address: IpAddr) -> Peer {
        let address = address.to_canonical();
        Peer {
            address,
            text: text_of(address).into(),
        }
    }

    /// Returns the address; an IPv4-mapped IPv6 address is returned as IPv4.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the text of an address, borrowed if it is the peer's own (the common case).
    pub(super) fn text_of(&self, address: IpAddr) -> Cow<'_, str> {
        match address == self.address {
            true => Cow::Borrowed(&self.text),
            false => Cow::Owned(text_of(address)),
        }
    }
}

/// The proxies that are trusted to report the hops before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    /// Returns the trusted proxies of these networks.
    #[must_use]
    pub fn new(networks: Vec<Network>) -> TrustedProxies {
        TrustedProxies(networks)
    }

    /// Returns true when no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an address is that of a trusted proxy.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the client address: the peer's, or the right-most untrusted one that trusted hops report. If `Forwarded`
    /// and `X-Forwarded-For` are both present and disagree, a client may have forged one of them, so both are ignored.
    /// A field such as `X_Forwarded_For` counts as a disagreement: its value may be the client's.
    #[must_use]
    pub fn caller(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return peer;
        }
        match self.forwarded_values(peer, headers) {
            _ if has_second_list(headers) => peer,
            (Some(one), Some(other)) if one != other => peer,
            (Some(caller), _) | (None, Some(caller)) => caller,
            (None, None) => peer,
        }
    }

    /// Returns whether `Forwarded` and `X-Forwarded-For` of a trusted peer report two clients, or may do so in another
    /// spelling.
    #[must_use]
    pub fn disagree(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        match self.forwarded_values(peer.to_canonical(), headers) {
            _ if has_second_list(headers) => true,
            (Some(one), Some(other)) => one != other,
            (_, None) | (None, _) => false,
        }
    }

    /// Returns the client addresses according to `Forwarded` and `X-Forwarded-For`.
    fn forwarded_values(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
    ) -> (Option<IpAddr>, Option<IpAddr>) {
        let forwarded = self.walk(peer, values(headers, &FORWARDED), forwarded_for);
        let listed = self.walk(peer, values(headers, &X_FORWARDED_FOR), address);
        (forwarded, listed)
    }

    /// Follows a list from its right end; returns `None` without a list.
    fn walk<'h>(
        &self,
        peer: IpAddr,
        values: impl Iterator<Item = &'h str>,
        read: fn(&str) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        let mut elements = values
            .flat_map(RightToLeft::from_value)
            .take(MOST_HOPS)
            .peekable();
        elements.peek()?;
        let mut caller = peer;
        for element in elements {
            // An element that hides the address (`unknown`, `_secret`) ends the known chain.
            let Some(before) = read(element) else { break };
            caller = before;
            if !self.trusts(caller) {
                break;
            }
        }
        Some(caller)
    }
}

/// Returns whether a forwarding field has `_` in place of a `-`. Hops neither write nor remove it, so a client may have
/// sent it, and many servers read it as the hop's field.
fn is_misspelled(name: &HeaderName, known: &HeaderName) -> bool {
    name != known && reads_as(name.as_str().as_bytes(), known.as_str().as_bytes())
}

/// Returns whether a name equals a known one when `_` counts as `-`.
pub(crate) fn reads_as(name: &[u8], known: &[u8]) -> bool {
    let same = |(byte, wanted): (&u8, &u8)| byte == wanted || (*byte == b'_' && *wanted == b'-');
    name.len() == known.len() && name.iter().zip(known).all(same)
}

/// Returns whether a list of hops is present in another spelling.
fn has_second_list(headers: &HeaderMap) -> bool {
    let mut names = headers.keys();
    names.any(|name| is_misspelled(name, &X_FORWARDED_FOR))
}

/// Returns the last hops in `X-Forwarded-For`, or in `Forwarded` without that, the nearest one last; `None` stands for
/// an element that is not an address.
pub(super) fn named(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let (name, read): (_, fn(&str) -> Option<IpAddr>) = match headers.contains_key(X_FORWARDED_FOR)
    {
        true => (X_FORWARDED_FOR, address),
        false => (FORWARDED, forwarded_for),
    };
    let lines = values(headers, &name);
    let elements = lines.flat_map(RightToLeft::from_value);
    let mut nodes: Vec<_> = elements.take(MOST_HOPS).map(read).collect();
    nodes.reverse();
    nodes
}

/// Returns the values of a header, the last line first. A line that is not text hides the lines before it.
fn values<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> + use<'h> {
    let lines = headers.get_all(name).iter().rev();
    lines.map(|value| value.to_str().unwrap_or("unknown"))
}

/// An iterator over a list from its right end. Quotes are paired from the right, so that an unbalanced quote from a
/// client cannot swallow the hop's element.
struct RightToLeft<'v>(Option<&'v str>);

impl<'v> RightToLeft<'v> {
    fn from_value(value: &'v str) -> RightToLeft<'v> {
        RightToLeft(Some(value))
    }
}

impl<'v> Iterator for RightToLeft<'v> {
    type Item = &'v str;

    fn next(&mut self) -> Option<&'v str> {
        let rest = self.0?;
        let bytes = rest.as_bytes();
        let mut is_quoted = false;
        for (at, byte) in bytes.iter().enumerate().rev() {
            match byte {
                b'"' if !is_escaped(&bytes[..at]) => is_quoted = !is_quoted,
                b',' if !is_quoted => {
                    self.0 = Some(&rest[..at]);
                    return Some(rest[at + 1..].trim());
                }
                _ => {}
            }
        }
        self.0 = None;
        Some(rest.trim())
    }
}

fn is_escaped(before: &[u8]) -> bool {
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    slashes.count() % 2 == 1
}

/// Returns the host that the nearest hop received: `host` of the last element of `Forwarded`, or the last value of
/// `X-Forwarded-Host`. Returns `None` if both are present and disagree, since one of them is not the hop's. The caller
/// of this function must trust the hop.
#[must_use]
pub fn forwarded_host(headers: &HeaderMap) -> Option<Authority> {
    let last = |name| {
        values(headers, name)
            .flat_map(RightToLeft::from_value)
            .next()
    };
    let forwarded = last(&FORWARDED).and_then(|element| parameter(element, "host"));
    let hosts = [forwarded, last(&X_FORWARDED_HOST)];
    let [one, other] = hosts.map(|host| host?.parse::<Authority>().ok());
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (one, other) => one.or(other),
    }
}

/// Returns `for` of an element of `Forwarded` (RFC 7239 §4).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    address(parameter(element, "for")?)
}

/// Returns a parameter of an element of `Forwarded`, without quotes.
fn parameter<'e>(element: &'e str, wanted: &str) -> Option<&'e str> {
    let mut pairs = element
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim_end().eq_ignore_ascii_case(wanted))?;
    Some(value.trim().trim_matches('"'))
}

/// Parses an address as proxies write it: bare, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let parsed = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let parsed = parsed.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    parsed.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests;
