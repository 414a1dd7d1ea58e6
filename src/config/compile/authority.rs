//! The scheme, host and port of the URL of an upstream. Used by `compile::addresses` and `compile::upstreams`.

use http::Uri;

/// Returns whether the URL requires TLS.
pub(super) fn is_secured(url: &Uri) -> bool {
    matches!(url.scheme_str(), Some("https" | "wss"))
}

/// Returns the default port of the scheme, which `Host` omits (RFC 9110 §4.2.1 and §4.2.2).
pub(super) fn usual_port(url: &Uri) -> u16 {
    if is_secured(url) { 443 } else { 80 }
}

/// Returns the port of the URL, or that of its scheme.
pub(super) fn port(url: &Uri) -> Option<u16> {
    let authority = url.authority()?;
    let after_host = &authority.as_str()[authority.host().len()..];
    match after_host.strip_prefix(':') {
        None => Some(usual_port(url)),
        Some(port) => port.parse().ok().filter(|port| *port != 0),
    }
}

/// Returns the authority in the form of the `Host` header.
pub(super) fn authority(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    match port(url) {
        None => host.to_owned(),
        Some(port) if port == usual_port(url) => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    }
}
