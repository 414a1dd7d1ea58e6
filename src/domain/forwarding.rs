//! What a server is told of the hops before this one: `PassthroughRequest` (RFC 7239), `X-PassthroughRequest-*` and `X-Real-IP`.
//!
//! Anybody can write these fields, and a server that reads them believes them. So what a peer says of others goes on
//! only where that peer is a trusted hop, and this hop is written behind it. Laws: an untrusted peer writes none of
//! the values that a server gets; a server that trusts this proxy and the same hops finds the caller that was found here.

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

/// A field that this hop can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardingHeader {
    /// `PassthroughRequest`: the peer, and the host and the scheme that it asked for.
    Forwarded,
    /// `X-PassthroughRequest-For`: the peer.
    For,
    /// `X-PassthroughRequest-Proto`: the scheme.
    Proto,
    /// `X-PassthroughRequest-HostField`: the host.
    Host,
    /// `X-Real-IP`: the caller.
    RealIp,
}

/// Whose word on the hops before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustForwarded {
    /// That of trusted hops.
    #[default]
    Trusted,
    /// That of everyone: servers look after themselves.
    Everyone,
}

/// What servers are told of hops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarding {
    /// Whose word goes on.
    pub believed: TrustForwarded,
    /// What is written where no hop before has.
    pub tells: Vec<ForwardingHeader>,
}

/// The hop between the caller's side and this proxy.
#[derive(Debug, Clone, Copy)]
pub struct LastHop<'a> {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// The host that it asked for.
    pub host: Option<&'a HeaderValue>,
    /// The scheme of its request.
    pub scheme: &'static str,
    /// What was told of it last.
    pub cache: &'a HeaderCache,
}

/// What a server was told last of a connection, and of which host: most calls of a connection ask for the same one.
#[derive(Debug, Default)]
pub struct HeaderCache(RefCell<Option<(HeaderValue, HeaderValue)>>);

impl LastHop<'_> {
    /// Its element of `PassthroughRequest`, where nobody is before it.
    fn element(&self) -> Option<HeaderValue> {
        let mut told = self.cache.0.borrow_mut();
        if let (Some((host, element)), Some(asked)) = (&*told, self.host)
            && host == asked
        {
            return Some(element.clone());
        }
        let element = value(elements(&[], *self))?;
        // A copy: the host itself is a part of all that was read with it.
        let host = self
            .host
            .map(|host| HeaderValue::from_bytes(host.as_bytes()));
        *told = host
            .and_then(Result::ok)
            .map(|host| (host, element.clone()));
        Some(element)
    }
}

impl Forwarding {
    /// Whether what a peer says of the hops before it goes on.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr, hops: &TrustedProxies) -> bool {
        match self.believed {
            TrustForwarded::Trusted => hops.trusts(peer),
            TrustForwarded::Everyone => true,
        }
    }

    /// Removes what is not believed from the headers of a request, and adds the last hop.
    pub fn tell(&self, headers: &mut HeaderMap, last: LastHop<'_>, hops: &TrustedProxies) {
        if !self.trusts(last.peer, hops) {
            remove(headers, writes_hops);
        } else if self.believed == TrustForwarded::Trusted {
            if hops.disagree(last.peer, headers) {
                // One of the two is not the hop's, and nobody knows which.
                remove(headers, writes_addresses);
            }
            // A hop writes its fields with `-`, and lets these pass.
            remove(headers, |name| {
                name.as_str().contains('_') && writes_hops(name)
            });
        }
        let caller = match self.tells.contains(&ForwardingHeader::RealIp)
            && !headers.contains_key(X_REAL_IP)
        {
            true => Some(hops.caller(last.peer, headers)),
            false => None,
        };
        let (mut forwarded, mut list) = (false, false);
        // A look at each field costs less than a search for each name.
        for name in headers.keys() {
            forwarded |= name == FORWARDED;
            list |= name == X_FORWARDED_FOR;
        }
        // A server that knows one of the two only must not take this hop for the first (RFC 7239 §7.4).
        let before = match forwarded == list {
            true => Vec::new(),
            false => named(headers),
        };
        if forwarded || self.tells.contains(&ForwardingHeader::Forwarded) {
            let element = match before.is_empty() || forwarded {
                true => last.element(),
                false => value(elements(&before, last)),
            };
            if let Some(element) = element {
                headers.append(FORWARDED, element);
            }
        }
        if list || self.tells.contains(&ForwardingHeader::For) {
            let before = if list { &[] } else { &before[..] };
            add_to_list(headers, before, last.peer);
        }
        if self.tells.contains(&ForwardingHeader::Proto) && !headers.contains_key(X_FORWARDED_PROTO)
        {
            let scheme = HeaderValue::from_static(last.scheme);
            headers.insert(X_FORWARDED_PROTO, scheme);
        }
        if let Some(host) = last.host
            && self.tells.contains(&ForwardingHeader::Host)
            && !headers.contains_key(X_FORWARDED_HOST)
        {
            headers.insert(X_FORWARDED_HOST, host.clone());
        }
        if let Some(caller) = caller.and_then(|caller| value(text_of(caller))) {
            headers.append(X_REAL_IP, caller);
        }
    }
}

/// Whether a field says something of the hops before. Many servers read `_` and `-` as the same.
#[must_use]
pub fn writes_hops(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    // Most names are told from these by their first letter.
    if !matches!(name, [b'f' | b'x', ..]) {
        return false;
    }
    let known = [&b"forwarded"[..], b"x-real-ip", b"x-forwarded"];
    known.iter().any(|known| reads_as(name, known)) || starts(name, b"x-forwarded-")
}

/// Whether a field names addresses of hops.
fn writes_addresses(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let known = [&b"forwarded"[..], b"x-forwarded-for", b"x-real-ip"];
    known.iter().any(|known| reads_as(name, known))
}

fn starts(name: &[u8], known: &[u8]) -> bool {
    name.get(..known.len())
        .is_some_and(|name| reads_as(name, known))
}

fn remove(headers: &mut HeaderMap, which: impl Fn(&HeaderName) -> bool) {
    while let Some(name) = headers.keys().find(|name| which(name)).cloned() {
        headers.remove(name);
    }
}

/// The elements of `PassthroughRequest` of the last hop, and of those before it that only the list names.
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

/// An address as RFC 7239 §6 writes it: an IPv6 address in brackets and quotes.
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

/// Many servers read one line only, so the list stays one.
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
