use http::header::FORWARDED;
use http::{HeaderName, HeaderValue, Uri};

use super::*;
use crate::cors::{Origins, RequestHeaders, WebOrigin};

const APP: &str = "https://app.example";
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields.iter();
    fields
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

fn cors(origins: Origins) -> Cors {
    Cors {
        origins,
        headers: RequestHeaders::Mirrored,
        expose: Vec::new(),
        allows_credentials: false,
        max_age: None,
    }
}

fn names(names: &[&str]) -> Vec<HostName> {
    let names = names.iter();
    names.map(|name| HostName::parse(name).unwrap()).collect()
}

/// Checks a request on a network listener whose peer is not a hop.
fn asked(hosts: &[HostName], cors: Option<&Cors>, headers: &HeaderMap) -> Result<(), OriginDenied> {
    let allowed = AllowedHosts {
        hosts,
        cors,
        reach: Reach::Network,
    };
    check(allowed, &Uri::from_static("/"), headers, || false)
}

/// Checks a request on a listener without `listen.hosts` and `[cors]`.
fn plain(
    reach: Reach,
    (uri, headers): (&'static str, &HeaderMap),
    is_hop: impl Fn() -> bool,
) -> Result<(), OriginDenied> {
    let allowed = AllowedHosts {
        hosts: &[],
        cors: None,
        reach,
    };
    check(allowed, &Uri::from_static(uri), headers, is_hop)
}

#[test]
fn two_origins_are_refused() {
    let mut twice = headers(&[("origin", APP), ("host", "app.example")]);
    twice.append(ORIGIN, HeaderValue::from_static(APP));
    let any = cors(Origins::Any);
    assert_eq!(asked(&[], Some(&any), &twice), Err(OriginDenied::Origin));
}

#[test]
fn a_page_of_the_host_itself_is_allowed() {
    let rows = [
        ("http://api.example", "api.example", true),
        ("http://api.example", "API.example:80", true),
        ("https://api.example", "api.example", true),
        ("https://api.example", "api.example:443", true),
        ("https://api.example:8443", "api.example:8443", true),
        ("http://[::1]:8080", "[::1]:8080", true),
        ("http://api.example", "api.example:8080", false),
        ("http://api.example:3000", "api.example:8080", false),
        ("http://evil.example", "api.example", false),
        ("http://api.example.evil.example", "api.example", false),
        ("capacitor://api.example", "api.example", false),
        ("null", "api.example", false),
        ("http://api.example", "", false),
    ];
    for (origin, host, may) in rows {
        let found = asked(&[], None, &headers(&[("origin", origin), ("host", host)]));
        let expected = if may {
            Ok(())
        } else {
            Err(OriginDenied::Origin)
        };
        assert_eq!(found, expected, "{origin} at {host}");
    }
}

#[test]
fn a_request_without_an_origin_and_one_that_cors_allows_pass() {
    let listed = cors(Origins::Listed(vec![WebOrigin::parse(APP).unwrap()]));
    let any = cors(Origins::Any);
    let from = |cors: Option<&Cors>, origin: Option<&'static str>| {
        let mut headers = headers(&[("host", "api.example")]);
        headers.extend(origin.map(|origin| (ORIGIN, HeaderValue::from_static(origin))));
        asked(&[], cors, &headers)
    };
    assert_eq!(from(None, None), Ok(()));
    assert_eq!(from(None, Some(APP)), Err(OriginDenied::Origin));
    assert_eq!(from(Some(&listed), Some(APP)), Ok(()));
    let evil = Some("https://evil.example");
    assert_eq!(from(Some(&listed), evil), Err(OriginDenied::Origin));
    assert_eq!(from(Some(&any), evil), Ok(()));
}

#[test]
fn only_the_listed_hosts_are_allowed() {
    let hosts = names(&["api.example", "localhost:8080", "[::1]"]);
    let rows = [
        ("api.example", true),
        ("API.EXAMPLE:9000", true),
        ("localhost:8080", true),
        ("[::1]:9000", true),
        ("localhost", false),
        ("localhost:8081", false),
        ("rebound.example", false),
        ("", false),
    ];
    for (host, may) in rows {
        let found = asked(&hosts, None, &headers(&[("host", host)]));
        let expected = if may { Ok(()) } else { Err(OriginDenied::Host) };
        assert_eq!(found, expected, "{host}");
    }
    assert_eq!(
        asked(&hosts, None, &HeaderMap::new()),
        Err(OriginDenied::Host)
    );
}

#[test]
fn a_page_of_a_listed_host_is_allowed() {
    let hosts = names(&["inside.example:8080", "app.example", "shop.example:443"]);
    let rows = [
        ("https://app.example", true),
        ("http://app.example:3000", true),
        ("https://shop.example", true),
        ("http://shop.example", false),
        ("https://other.example", false),
        ("app://app.example", false),
    ];
    for (origin, may) in rows {
        let found = headers(&[("host", "inside.example:8080"), ("origin", origin)]);
        let expected = if may {
            Ok(())
        } else {
            Err(OriginDenied::Origin)
        };
        assert_eq!(asked(&hosts, None, &found), expected, "{origin}");
    }
}

#[test]
fn the_host_of_an_absolute_target_is_the_one_that_counts() {
    let hosts = names(&["api.example"]);
    let allowed = AllowedHosts {
        hosts: &hosts,
        cors: None,
        reach: Reach::Network,
    };
    let absolute = Uri::from_static("http://rebound.example/x");
    let asked = headers(&[("host", "api.example")]);
    let found = check(allowed, &absolute, &asked, || false);
    assert_eq!(found, Err(OriginDenied::Host));
}

#[test]
fn a_host_has_no_scheme_path_or_wildcard() {
    for text in ["", "http://a", "a/b", "*.a", "me@a", "a:", "a:x", "a b"] {
        assert_eq!(HostName::parse(text), None, "{text}");
    }
}

#[test]
fn a_loopback_listener_without_hosts_allows_loopback_hosts() {
    let on_loopback =
        |headers: &HeaderMap, is_hop| plain(Reach::Loopback, ("/", headers), || is_hop);
    let allowed = [
        "127.0.0.1",
        "127.0.0.1:8080",
        "127.1.2.3:1",
        "localhost",
        "localhost:8080",
        "LocalHost:19090",
        "localhost.:9090",
        "[::1]",
        "[::1]:9090",
        "[::ffff:127.0.0.1]",
    ];
    for host in allowed {
        let found = on_loopback(&headers(&[("host", host)]), false);
        assert_eq!(found, Ok(()), "{host}");
    }
    let refused = [
        "evil.example",
        "evil.example:9090",
        "localhost.evil.example",
        "10.0.0.1:9090",
        "[::2]",
        "0.0.0.0:9090",
        "127.0.0.1.evil.example",
        "evil.example@127.0.0.1",
        "localhost@evil.example",
        "1127.0.0.1",
        "8080",
        ":8080",
        "",
    ];
    for host in refused {
        let asked = headers(&[("host", host)]);
        assert_eq!(
            on_loopback(&asked, false),
            Err(OriginDenied::Rebound),
            "{host}"
        );
        assert_eq!(on_loopback(&asked, true), Ok(()), "{host}");
    }
    let nameless = on_loopback(&HeaderMap::new(), false);
    assert_eq!(nameless, Ok(()), "a browser always names a host");
    let local = headers(&[("host", "localhost")]);
    let absolute = plain(Reach::Loopback, ("http://evil.example/", &local), || false);
    assert_eq!(absolute, Err(OriginDenied::Rebound));
}

#[test]
fn the_forwarded_host_of_a_trusted_hop_is_the_requested_host() {
    let told = |name: HeaderName, value: &'static str| {
        let mut told = headers(&[("host", "backend:8080"), ("origin", APP)]);
        told.insert(name, HeaderValue::from_static(value));
        told
    };
    let from = |headers: &HeaderMap, is_hop| plain(Reach::Network, ("/", headers), || is_hop);
    let own = [
        (X_FORWARDED_HOST, "app.example"),
        (X_FORWARDED_HOST, "evil.example, app.example"),
        (FORWARDED, "for=192.0.2.1;host=app.example;proto=https"),
        (FORWARDED, "host=evil.example, host=\"app.example:443\""),
    ];
    for (name, value) in own {
        let told = told(name, value);
        assert_eq!(from(&told, true), Ok(()), "{value}");
        let untrusted = from(&told, false);
        assert_eq!(untrusted, Err(OriginDenied::Origin), "{value}");
    }
    for value in ["app.example, inside.example", "inside.example", ""] {
        let told = told(X_FORWARDED_HOST, value);
        assert_eq!(from(&told, true), Err(OriginDenied::Origin), "{value}");
    }
    let mut both = told(FORWARDED, "host=app.example");
    both.insert(X_FORWARDED_HOST, HeaderValue::from_static("other.example"));
    assert_eq!(
        from(&both, true),
        Err(OriginDenied::Origin),
        "they disagree"
    );
}
