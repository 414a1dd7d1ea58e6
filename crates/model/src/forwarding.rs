//! Forwarding headers for upstreams: `Forwarded` (RFC 7239), `X-Forwarded-*` and `X-Real-IP`.
//!
//! Any client can send these fields, and upstreams that read them believe them. Values from a peer therefore pass only
//! if the peer is a trusted hop, and this hop is appended. Laws: an untrusted peer controls none of the values that an
//! upstream gets; an upstream that trusts this proxy and the same hops finds the client address that this proxy found.
//!
//! Used by `config`, `headers`, `plan` and `gateway`.

use core::cell::RefCell;
use core::net::IpAddr;

use bytes::Bytes;
use http::header::FORWARDED;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::client_ip::{
    TrustedProxies, X_FORWARDED_FOR, X_FORWARDED_HOST, named, push_address, reads_as, text_of,
};

const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// A forwarding header that the proxy can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardingHeader {
    /// `Forwarded`: the peer, and the host and scheme of its request.
    Forwarded,
    /// `X-Forwarded-For`: the peer.
    For,
    /// `X-Forwarded-Proto`: the scheme.
    Proto,
    /// `X-Forwarded-Host`: the host.
    Host,
    /// `X-Real-IP`: the caller.
    RealIp,
}

/// The peers whose forwarding headers pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustForwarded {
    /// Trusted proxies only.
    #[default]
    Trusted,
    /// All peers: upstreams check for themselves.
    Everyone,
}

/// The configuration of forwarding headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarding {
    /// The peers whose headers pass.
    pub trust: TrustForwarded,
    /// The headers that the proxy writes when the request has none.
    pub writes: Vec<ForwardingHeader>,
}

/// The hop between the client side and this proxy.
#[derive(Debug, Clone, Copy)]
pub struct LastHop<'a> {
    /// The peer of the connection.
    pub peer: IpAddr,
    /// The host that the peer requested.
    pub host: Option<&'a HeaderValue>,
    /// The scheme of its request.
    pub scheme: &'static str,
    /// The value that was written last for this connection.
    pub cache: &'a HeaderCache,
}

/// The last `Forwarded` value of a connection, with its host: most calls of a connection name the same host.
#[derive(Debug, Default)]
pub struct HeaderCache(RefCell<Option<(HeaderValue, HeaderValue)>>);

impl LastHop<'_> {
    /// Returns this hop's element of `Forwarded`, for a request without earlier hops.
    fn element(&self) -> Option<HeaderValue> {
        let mut cached = self.cache.0.borrow_mut();
        if let (Some((host, element)), Some(requested)) = (&*cached, self.host)
            && host == requested
        {
            return Some(element.clone());
        }
        let element = value(elements(&[], *self))?;
        // A copy: the header value itself shares the buffer of the whole request head.
        let host = self
            .host
            .map(|host| HeaderValue::from_bytes(host.as_bytes()));
        *cached = host
            .and_then(Result::ok)
            .map(|host| (host, element.clone()));
        Some(element)
    }
}

impl Forwarding {
    /// Returns whether the forwarding headers of a peer pass.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr, hops: &TrustedProxies) -> bool {
        match self.trust {
            TrustForwarded::Trusted => hops.trusts(peer),
            TrustForwarded::Everyone => true,
        }
    }

    /// Removes untrusted forwarding headers from a request, and adds the last hop.
    pub fn apply(&self, headers: &mut HeaderMap, last: LastHop<'_>, hops: &TrustedProxies) {
        if !self.trusts(last.peer, hops) {
            remove(headers, is_hop_field);
        } else if self.trust == TrustForwarded::Trusted {
            if hops.disagree(last.peer, headers) {
                // One of the two was not written by the hop, and it is unknown which.
                remove(headers, is_address_field);
            }
            // Proxies write these fields with `-` and let spellings with `_` pass.
            remove(headers, |name| {
                name.as_str().contains('_') && is_hop_field(name)
            });
        }
        let caller = match self.writes.contains(&ForwardingHeader::RealIp)
            && !headers.contains_key(X_REAL_IP)
        {
            true => Some(hops.caller(last.peer, headers)),
            false => None,
        };
        let (mut forwarded, mut list) = (false, false);
        // Scanning all fields is cheaper than looking up each name.
        for name in headers.keys() {
            forwarded |= name == FORWARDED;
            list |= name == X_FORWARDED_FOR;
        }
        // An upstream that knows only one of the two must not take this hop for the first (RFC 7239 §7.4).
        let before = match forwarded == list {
            true => Vec::new(),
            false => named(headers),
        };
        if forwarded || self.writes.contains(&ForwardingHeader::Forwarded) {
            let element = match before.is_empty() || forwarded {
                true => last.element(),
                false => value(elements(&before, last)),
            };
            if let Some(element) = element {
                headers.append(FORWARDED, element);
            }
        }
        if list || self.writes.contains(&ForwardingHeader::For) {
            let before = if list { &[] } else { &before[..] };
            add_to_list(headers, before, last.peer);
        }
        if self.writes.contains(&ForwardingHeader::Proto)
            && !headers.contains_key(X_FORWARDED_PROTO)
        {
            let scheme = HeaderValue::from_static(last.scheme);
            headers.insert(X_FORWARDED_PROTO, scheme);
        }
        if let Some(host) = last.host
            && self.writes.contains(&ForwardingHeader::Host)
            && !headers.contains_key(X_FORWARDED_HOST)
        {
            headers.insert(X_FORWARDED_HOST, host.clone());
        }
        if let Some(caller) = caller.and_then(|caller| value(text_of(caller))) {
            headers.append(X_REAL_IP, caller);
        }
    }
}

/// Returns whether a field describes earlier hops. Many servers treat `_` and `-` as the same.
#[must_use]
pub fn is_hop_field(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    // The first letter rules out most names.
    if !matches!(name, [b'f' | b'x', ..]) {
        return false;
    }
    let known = [&b"forwarded"[..], b"x-real-ip", b"x-forwarded"];
    known.iter().any(|known| reads_as(name, known)) || has_prefix(name, b"x-forwarded-")
}

/// Returns whether a field contains addresses of hops.
fn is_address_field(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let known = [&b"forwarded"[..], b"x-forwarded-for", b"x-real-ip"];
    known.iter().any(|known| reads_as(name, known))
}

fn has_prefix(name: &[u8], known: &[u8]) -> bool {
    name.get(..known.len())
        .is_some_and(|name| reads_as(name, known))
}

fn remove(headers: &mut HeaderMap, which: impl Fn(&HeaderName) -> bool) {
    while let Some(name) = headers.keys().find(|name| which(name)).cloned() {
        headers.remove(name);
    }
}

/// Returns the `Forwarded` elements of the last hop, and of earlier hops that only `X-Forwarded-For` has.
fn elements(before: &[Option<IpAddr>], last: LastHop<'_>) -> String {
    let mut elements = String::with_capacity(96);
    for node in before {
        match node {
            Some(address) => add_node(&mut elements, *address),
            None => elements.push_str("for=unknown"),
        }
        elements.push_str(", ");
    }
    add_node(&mut elements, last.peer);
    let host = last.host.and_then(|host| host.to_str().ok());
    if let Some(host) = host.filter(|host| !host.contains(['"', '\\'])) {
        elements.push_str(";host=\"");
        elements.push_str(host);
        elements.push('"');
    }
    elements.push_str(";proto=");
    elements.push_str(last.scheme);
    elements
}

/// Appends an address in the form of RFC 7239 §6: IPv6 in brackets and quotes.
fn add_node(elements: &mut String, address: IpAddr) {
    let address = address.to_canonical();
    let (before, behind) = match address {
        IpAddr::V4(_) => ("for=", ""),
        IpAddr::V6(_) => ("for=\"[", "]\""),
    };
    elements.push_str(before);
    push_address(elements, address);
    elements.push_str(behind);
}

/// Appends to the existing list: many servers read one line only.
fn add_to_list(headers: &mut HeaderMap, before: &[Option<IpAddr>], peer: IpAddr) {
    let mut list = Vec::with_capacity(64);
    for line in headers.get_all(X_FORWARDED_FOR) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    for node in before {
        match node {
            Some(address) => list.extend_from_slice(text_of(*address).as_bytes()),
            None => list.extend_from_slice(b"unknown"),
        }
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(text_of(peer.to_canonical()).as_bytes());
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(list)) {
        headers.insert(X_FORWARDED_FOR, value);
    }
}

fn value(text: String) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from(text)).ok()
}

#[cfg(test)]
mod tests;
