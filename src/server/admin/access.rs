//! Host and Origin checks, which keep web pages from reaching the API through a DNS name of their own.
//!
//! Used by `admin::problem` and `admin::response`.

use std::net::SocketAddr;

use http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Uri, Version};

use dualgauge_model::hosts::{is_loopback, is_loopback_name};

/// The relation between the page that sends a request and its target (Fetch Metadata).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A failed Host or Origin check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AccessDenied {
    #[error("send exactly one Host header that names this server")]
    NoHost,
    #[error("the request target and the Host header name different hosts")]
    OtherTarget,
    #[error("the Host is not a loopback name or address, but this listener is bound to loopback")]
    ForeignHost,
    #[error("the Origin is not this listener: cross-origin requests are rejected")]
    ForeignOrigin,
    #[error(
        "the page that sends this request is not of this listener: `Sec-Fetch-Site` must be `same-origin` or `none`"
    )]
    ForeignSite,
}

/// Returns whether a request is the plain check of a load balancer: HTTP/1.0 without `Host`, for health or readiness.
///
/// HTTP/1.0 does not require `Host`. A browser always sends it, so no page of another site can make such a request.
pub(super) fn is_plain_probe(head: &Parts) -> bool {
    head.version == Version::HTTP_10
        && matches!(head.uri.path(), "/healthz" | "/readyz")
        && head.uri.authority().is_none()
        && !head.headers.contains_key(HOST)
        && !head.headers.contains_key(ORIGIN)
}

/// Checks a request to the listener at `listener`.
pub(super) fn admit(
    listener: SocketAddr,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), AccessDenied> {
    let host = only(headers, &HOST)
        .ok_or(AccessDenied::NoHost)?
        .and_then(authority)
        .ok_or(AccessDenied::NoHost)?;
    if uri.authority().is_some_and(|target| *target != host) {
        return Err(AccessDenied::OtherTarget);
    }
    if is_loopback(listener.ip()) && !is_loopback_name(&host) {
        return Err(AccessDenied::ForeignHost);
    }
    match only(headers, &ORIGIN) {
        Some(None) => Ok(()),
        Some(Some(origin)) if matches_host(origin, &host) => Ok(()),
        Some(Some(_)) | None => Err(AccessDenied::ForeignOrigin),
    }
}

/// Checks that a page which sends a request is of this listener. Other programs than browsers send no such header.
pub(super) fn check_fetch_site(headers: &HeaderMap) -> Result<(), AccessDenied> {
    match only(headers, &SEC_FETCH_SITE) {
        Some(None) => Ok(()),
        Some(Some(site)) if site == "same-origin" || site == "none" => Ok(()),
        Some(Some(_)) | None => Err(AccessDenied::ForeignSite),
    }
}

/// Returns the only value of a header, `Some(None)` if it is absent, and `None` if it is repeated.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h HeaderValue>> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    values.next().is_none().then_some(value)
}

fn authority(value: &HeaderValue) -> Option<Authority> {
    let authority = Authority::try_from(value.as_bytes()).ok()?;
    (!authority.as_str().contains('@')).then_some(authority)
}

/// Returns true if an origin is the host itself, given the default port of the origin's scheme.
fn matches_host(origin: &HeaderValue, host: &Authority) -> bool {
    let Some((scheme, rest)) = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"))
    else {
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Ok(origin) = rest.parse::<Authority>() else {
        return false;
    };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    !rest.contains('@')
        && origin.host().eq_ignore_ascii_case(host.host())
        && port(&origin) == port(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:9090";
    const ELSEWHERE: &str = "0.0.0.0:9090";

    fn asked(listener: &str, headers: &[(HeaderName, &str)]) -> Result<(), AccessDenied> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        admit(listener.parse().unwrap(), &Uri::from_static("/"), &map)
    }

    #[test]
    fn a_loopback_listener_answers_to_loopback_names_only() {
        let known = [
            "127.0.0.1:9090",
            "127.0.0.1",
            "127.1.2.3:1",
            "localhost",
            "LocalHost:19090",
            "localhost.:9090",
            "[::1]:9090",
            "[::ffff:127.0.0.1]",
        ];
        for host in known {
            assert_eq!(asked(LOOPBACK, &[(HOST, host)]), Ok(()), "{host}");
        }
        let foreign = [
            "evil.example:9090",
            "localhost.evil.example",
            "10.0.0.1:9090",
            "[::2]",
            "0.0.0.0:9090",
            "127.0.0.1.evil.example",
        ];
        for host in foreign {
            let denied = asked(LOOPBACK, &[(HOST, host)]);
            assert_eq!(denied, Err(AccessDenied::ForeignHost), "{host}");
        }
    }

    #[test]
    fn a_page_that_writes_is_of_this_listener() {
        let from = |sites: &[&str]| {
            let mut headers = HeaderMap::new();
            for site in sites {
                headers.append(SEC_FETCH_SITE, site.parse().unwrap());
            }
            check_fetch_site(&headers)
        };
        for sites in [&[][..], &["same-origin"], &["none"]] {
            assert_eq!(from(sites), Ok(()), "{sites:?}");
        }
        for sites in [
            &["cross-site"][..],
            &["same-site"],
            &[""],
            &["same-origin", "same-origin"],
        ] {
            assert_eq!(from(sites), Err(AccessDenied::ForeignSite), "{sites:?}");
        }
    }

    #[test]
    fn exactly_one_host_is_needed() {
        let faults: [&[(HeaderName, &str)]; 5] = [
            &[],
            &[(HOST, "")],
            &[(HOST, "localhost"), (HOST, "localhost")],
            &[(HOST, "user@localhost")],
            &[(HOST, "local host")],
        ];
        for headers in faults {
            for listener in [LOOPBACK, ELSEWHERE] {
                assert_eq!(
                    asked(listener, headers),
                    Err(AccessDenied::NoHost),
                    "{headers:?}"
                );
            }
        }
    }

    #[test]
    fn a_plain_probe_is_http_1_0_without_a_host() {
        let probe = |version, target: &str, headers: &[(HeaderName, &str)]| {
            let mut request = http::Request::builder().version(version).uri(target);
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            is_plain_probe(&request.body(()).unwrap().into_parts().0)
        };
        for target in ["/healthz", "/readyz", "/readyz?from=haproxy"] {
            assert!(probe(Version::HTTP_10, target, &[]), "{target}");
            assert!(!probe(Version::HTTP_11, target, &[]), "{target}");
        }
        for target in [
            "/metrics",
            "/api/v1/flags",
            "/",
            "http://evil.example/readyz",
        ] {
            assert!(!probe(Version::HTTP_10, target, &[]), "{target}");
        }
        let (host, origin) = ((HOST, "evil.example"), (ORIGIN, "http://evil.example"));
        for headers in [[host], [origin]] {
            assert!(!probe(Version::HTTP_10, "/readyz", &headers), "{headers:?}");
        }
    }

    #[test]
    fn a_target_with_a_host_of_its_own_agrees_with_the_header() {
        let listener = LOOPBACK.parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost:9090"));
        let target = |text: &str| admit(listener, &text.parse().unwrap(), &headers);
        assert_eq!(target("http://LOCALHOST:9090/healthz"), Ok(()));
        let other = target("http://evil.example/healthz");
        assert_eq!(other, Err(AccessDenied::OtherTarget));
    }

    #[test]
    fn an_origin_is_the_host_itself() {
        for listener in [LOOPBACK, ELSEWHERE] {
            let from = |host, origin| asked(listener, &[(HOST, host), (ORIGIN, origin)]);
            let same = [
                ("localhost:9090", "http://localhost:9090"),
                ("localhost:9090", "http://LOCALHOST:9090"),
                ("localhost", "http://localhost"),
                ("localhost", "https://localhost:443"),
                ("[::1]:9090", "http://[::1]:9090"),
            ];
            for (host, origin) in same {
                assert_eq!(from(host, origin), Ok(()), "{origin}");
            }
            let others = [
                ("localhost:9090", "http://localhost:3000"),
                ("localhost:9090", "http://127.0.0.1:9090"),
                ("localhost:9090", "http://evil.example"),
                ("localhost:9090", "http://x@localhost:9090"),
                ("localhost:9090", "null"),
                ("localhost:9090", ""),
                ("localhost:9090", "file://localhost:9090"),
                ("localhost:9090", "http://localhost:9090/path"),
            ];
            for (host, origin) in others {
                assert_eq!(
                    from(host, origin),
                    Err(AccessDenied::ForeignOrigin),
                    "{origin}"
                );
            }
        }
    }

    #[test]
    fn elsewhere_any_host_is_this_one() {
        assert_eq!(asked(ELSEWHERE, &[(HOST, "gauge.internal")]), Ok(()));
        assert_eq!(asked("192.0.2.1:9090", &[(HOST, "10.1.2.3:9090")]), Ok(()));
    }

    #[test]
    fn a_mapped_loopback_address_is_loopback() {
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.9.9.9"] {
            assert!(is_loopback(address.parse().unwrap()), "{address}");
        }
        for address in ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1"] {
            assert!(!is_loopback(address.parse().unwrap()), "{address}");
        }
    }
}
