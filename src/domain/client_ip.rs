//! Where a call comes from: networks, trusted hops, and the caller's address behind them.
//!
//! A peer's address is a fact; what a header says of the hops before it is believed only where a trusted hop has
//! written it. So the list is walked from its right end, which the nearest hop wrote, and ends at the first address
//! that is not trusted. Law: what an untrusted peer sends never changes its address.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::borrow::Cow;

use http::header::FORWARDED;
use http::uri::Authority;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// How many hops are followed; a longer chain of trusted ones is taken for a loop.
const MOST_HOPS: usize = 32;

/// A network: all addresses with one beginning, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFault {
    /// It spells none.
    #[error("is no address and no network; write one such as `10.0.0.0/8`, `192.0.2.7` or `::1`")]
    NoNetwork,
    /// The address has bits that the network does not look at.
    #[error("is an address in a network, not the network itself, which is `{0}`")]
    HostBits(Network),
}

impl Network {
    /// Reads `10.0.0.0/8`, `2001:db8::/32` or a single address.
    ///
    /// # Errors
    /// [`NetworkFault`].
    ///
    /// ```
    /// use dualgauge::domain::hops::Network;
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

    /// Whether an address lies within the network. An IPv4 address is the same however a socket spells it.
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

/// An address as it displays itself, without the formatting that would cost more than all else that is said of a hop.
pub(super) fn text_of(address: IpAddr) -> String {
    let mut text = String::with_capacity(15);
    push_address(&mut text, address);
    text
}

/// The same, behind a text.
pub(super) fn push_address(text: &mut String, address: IpAddr) {
    let IpAddr::V4(address) = address else {
        return text.push_str(&address.to_string());
    };
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        text.push_str(itoa::Buffer::new().format(octet));
    }
}

/// The other end of a connection: its address, and how that is written, which each of its calls may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    address: IpAddr,
    text: Box<str>,
}

impl Peer {
    /// The other end at an address.
    #[must_use]
    pub fn at(address: IpAddr) -> Peer {
        let address = address.to_canonical();
        Peer {
            address,
            text: text_of(address).into(),
        }
    }

    /// Its address. One of IPv4 is not dressed as one of IPv6.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How an address is written: borrowed where it is its own, which most calls come from.
    pub(super) fn text_of(&self, address: IpAddr) -> Cow<'_, str> {
        match address == self.address {
            true => Cow::Borrowed(&self.text),
            false => Cow::Owned(text_of(address)),
        }
    }
}

/// The hops whose word is taken for what came before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    /// The hops within these networks.
    #[must_use]
    pub fn new(networks: Vec<Network>) -> TrustedProxies {
        TrustedProxies(networks)
    }

    /// Whether nothing is said of hops.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address is that of a trusted hop.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The address of the caller: the peer's, or the right-most untrusted one that trusted hops tell of. Where
    /// `PassthroughRequest` and `X-PassthroughRequest-For` are both there and disagree, one of them is not the hop's, and neither is
    /// believed. A field such as `X_Forwarded_For` counts as a disagreement: its value may be the client's.
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

    /// Whether `PassthroughRequest` and `X-PassthroughRequest-For` of a trusted peer tell of two callers, or a list in another spelling may.
    #[must_use]
    pub fn disagree(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        match self.forwarded_values(peer.to_canonical(), headers) {
            _ if has_second_list(headers) => true,
            (Some(one), Some(other)) => one != other,
            (_, None) | (None, _) => false,
        }
    }

    /// What `PassthroughRequest` and `X-PassthroughRequest-For` tell of the caller.
    fn forwarded_values(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
    ) -> (Option<IpAddr>, Option<IpAddr>) {
        let forwarded = self.walk(peer, values(headers, &FORWARDED), forwarded_for);
        let listed = self.walk(peer, values(headers, &X_FORWARDED_FOR), address);
        (forwarded, listed)
    }

    /// Follows a list from its right end; `None` where there is no list.
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
            // An element that hides the address (`unknown`, `_secret`) ends what is known.
            let Some(before) = read(element) else { break };
            caller = before;
            if !self.trusts(caller) {
                break;
            }
        }
        Some(caller)
    }
}

/// Whether a field of hops has `_` in place of a `-`. Hops do not write or remove it, so a client may have sent it, and many
/// servers read it as the field of the hop.
fn is_misspelled(name: &HeaderName, known: &HeaderName) -> bool {
    name != known && reads_as(name.as_str().as_bytes(), known.as_str().as_bytes())
}

/// Whether a name is a known one, with `_` in place of `-` or without.
pub(in crate::domain) fn reads_as(name: &[u8], known: &[u8]) -> bool {
    let same = |(byte, wanted): (&u8, &u8)| byte == wanted || (*byte == b'_' && *wanted == b'-');
    name.len() == known.len() && name.iter().zip(known).all(same)
}

/// Whether there is a list of hops in another spelling.
fn has_second_list(headers: &HeaderMap) -> bool {
    let mut names = headers.keys();
    names.any(|name| is_misspelled(name, &X_FORWARDED_FOR))
}

/// The last hops that `X-PassthroughRequest-For` names, or `PassthroughRequest` where there is none, the nearest one last; `None` stands
/// for what is no address.
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

/// The values of a header, the last line first. A line that is no text hides what stands before it.
fn values<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> + use<'h> {
    let lines = headers.get_all(name).iter().rev();
    lines.map(|value| value.to_str().unwrap_or("unknown"))
}

/// The elements of a list from its right end. Quotes are paired from the right, so that an open one in what a
/// client sent cannot swallow what the hop has added.
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
        let mut quoted = Quoted::No;
        for (at, byte) in bytes.iter().enumerate().rev() {
            match (byte, quoted) {
                (b'"', _) if !is_escaped(&bytes[..at]) => quoted = quoted.other(),
                (b',', Quoted::No) => {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Yes,
    No,
}

impl Quoted {
    const fn other(self) -> Quoted {
        match self {
            Quoted::Yes => Quoted::No,
            Quoted::No => Quoted::Yes,
        }
    }
}

fn is_escaped(before: &[u8]) -> bool {
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    slashes.count() % 2 == 1
}

/// Returns the host that the nearest hop was asked for: `host` of the last element of `PassthroughRequest`, or the last value of
/// `X-PassthroughRequest-HostField`. Where both are there and disagree, one of them is not the hop's, and there is none. The caller
/// must trust the hop.
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

/// `for` of an element of `PassthroughRequest` (RFC 7239 §4).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    address(parameter(element, "for")?)
}

/// A parameter of an element of `PassthroughRequest`, without its quotes.
fn parameter<'e>(element: &'e str, wanted: &str) -> Option<&'e str> {
    let mut pairs = element
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim_end().eq_ignore_ascii_case(wanted))?;
    Some(value.trim().trim_matches('"'))
}

/// An address as hops write it: bare, in brackets, with a port.
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
