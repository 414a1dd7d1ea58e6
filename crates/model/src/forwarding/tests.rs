use proptest::prelude::*;

use super::*;
use crate::client_ip::Network;

const ALL: [ForwardingHeader; 5] = [
    ForwardingHeader::Forwarded,
    ForwardingHeader::For,
    ForwardingHeader::Proto,
    ForwardingHeader::Host,
    ForwardingHeader::RealIp,
];

fn hops(networks: &[&str]) -> TrustedProxies {
    let networks = networks.iter().map(|text| Network::parse(text).unwrap());
    TrustedProxies::new(networks.collect())
}

fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// Returns the forwarding headers that a server gets.
fn applied(
    (trust, tells): (TrustForwarded, &[ForwardingHeader]),
    peer: &str,
    rows: &[(&'static str, &str)],
) -> Vec<(String, String)> {
    let mut headers = headers(rows);
    let forwarding = Forwarding {
        trust,
        writes: tells.to_vec(),
    };
    let host = HeaderValue::from_static("a.example");
    let last = LastHop {
        peer: peer.parse().unwrap(),
        host: Some(&host),
        scheme: "https",
        cache: &HeaderCache::default(),
    };
    forwarding.apply(&mut headers, last, &hops(&["10.0.0.0/8"]));
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    let applied = headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)));
    applied.collect()
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    let rows = rows.iter();
    rows.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

const USUAL: (TrustForwarded, &[ForwardingHeader]) =
    (TrustForwarded::Trusted, &[ForwardingHeader::Forwarded]);

#[test]
fn forwarding_headers_of_untrusted_peers_are_removed() {
    let sent = [
        ("accept", "a/b"),
        ("forwarded", "for=6.6.6.6"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-user", "root"),
        ("x-forwarded", "for=6.6.6.6"),
        ("x_forwarded_for", "6.6.6.6"),
        ("x-real_ip", "6.6.6.6"),
        ("x-real-ip", "6.6.6.6"),
        ("x-forwardedfor", "kept: it is another name"),
        ("x-other", "1"),
    ];
    let expected = [
        ("accept", "a/b"),
        ("forwarded", "for=192.0.2.1;host=\"a.example\";proto=https"),
        ("x-forwardedfor", "kept: it is another name"),
        ("x-other", "1"),
    ];
    let mut got = applied(USUAL, "192.0.2.1", &sent);
    got.sort();
    assert_eq!(got, pairs(&expected));
}

#[test]
fn a_trusted_hop_is_kept_and_this_hop_is_appended() {
    let sent = [
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-for", "10.0.0.9"),
        ("x-forwarded-proto", "http"),
        ("forwarded", "for=192.0.2.7;proto=http, for=10.0.0.9"),
        ("x-real-ip", "192.0.2.7"),
    ];
    let expected = [
        ("x-forwarded-for", "192.0.2.7, 10.0.0.9, 10.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("forwarded", "for=192.0.2.7;proto=http, for=10.0.0.9"),
        ("forwarded", "for=10.0.0.1;host=\"a.example\";proto=https"),
        ("x-real-ip", "192.0.2.7"),
    ];
    assert_eq!(applied(USUAL, "10.0.0.1", &sent), pairs(&expected));
}

#[test]
fn a_list_without_forwarded_is_added_to_forwarded() {
    let sent = [("x-forwarded-for", "2001:db8::7, somebody, 10.0.0.9:4711")];
    let forwarded = "for=\"[2001:db8::7]\", for=unknown, for=10.0.0.9, for=10.0.0.1;host=\"a.example\";proto=https";
    let expected = [
        (
            "x-forwarded-for",
            "2001:db8::7, somebody, 10.0.0.9:4711, 10.0.0.1",
        ),
        ("forwarded", forwarded),
    ];
    assert_eq!(applied(USUAL, "10.0.0.1", &sent), pairs(&expected));
}

#[test]
fn forwarded_without_a_list_is_added_to_the_list() {
    let sent = [("forwarded", "for=192.0.2.7, for=_hidden;by=x")];
    let both = (
        TrustForwarded::Trusted,
        &[ForwardingHeader::Forwarded, ForwardingHeader::For][..],
    );
    let got = applied(both, "10.0.0.1", &sent);
    let list = ("x-forwarded-for", "192.0.2.7, unknown, 10.0.0.1");
    assert_eq!(got[2..], pairs(&[list]));
}

#[test]
fn a_trusted_hop_whose_fields_disagree_is_not_passed_on() {
    let sent = [
        ("forwarded", "for=6.6.6.6"),
        ("x-forwarded-for", "192.0.2.7"),
        ("x_forwarded_for", "192.0.2.7"),
        ("x_real-ip", "192.0.2.7"),
        ("x-forwarded-proto", "http"),
    ];
    let expected = [
        ("x-forwarded-proto", "http"),
        ("forwarded", "for=10.0.0.1;host=\"a.example\";proto=https"),
    ];
    let mut got = applied(USUAL, "10.0.0.1", &sent);
    got.sort_by_key(|(name, _)| name == "forwarded");
    assert_eq!(got, pairs(&expected));
}

#[test]
fn other_spellings_from_a_hop_are_removed() {
    let sent = [
        ("x-forwarded-for", "192.0.2.7"),
        ("x_forwarded_for", "6.6.6.6"),
        ("x-real-ip", "192.0.2.7"),
        ("x-forwarded-proto", "http"),
        ("x_forwarded_proto", "https"),
        ("x-forwarded_user", "root"),
    ];
    let expected = [
        ("x-forwarded-proto", "http"),
        ("forwarded", "for=10.0.0.1;host=\"a.example\";proto=https"),
    ];
    let mut got = applied(USUAL, "10.0.0.1", &sent);
    got.sort_by_key(|(name, _)| name == "forwarded");
    assert_eq!(got, pairs(&expected));
    let expected = [
        ("x-forwarded-for", "192.0.2.7, 10.0.0.1"),
        (
            "forwarded",
            "for=192.0.2.7, for=10.0.0.1;host=\"a.example\";proto=https",
        ),
    ];
    let sent = [("x-forwarded-for", "192.0.2.7"), ("x_real_ip", "6.6.6.6")];
    assert_eq!(applied(USUAL, "10.0.0.1", &sent), pairs(&expected));
    let everyone = (TrustForwarded::Everyone, &[ForwardingHeader::Forwarded][..]);
    let got = applied(everyone, "10.0.0.1", &sent);
    assert!(got.contains(&("x_real_ip".to_owned(), "6.6.6.6".to_owned())));
}

#[test]
fn only_configured_headers_are_written() {
    let all = (TrustForwarded::Trusted, &ALL[..]);
    let expected = [
        ("forwarded", "for=192.0.2.1;host=\"a.example\";proto=https"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "a.example"),
        ("x-real-ip", "192.0.2.1"),
    ];
    let lies = [("x-forwarded-for", "6.6.6.6"), ("x-real-ip", "6.6.6.6")];
    let mut got = applied(all, "192.0.2.1", &lies);
    got.sort();
    let mut expected = pairs(&expected);
    expected.sort();
    assert_eq!(got, expected);
    assert_eq!(
        applied((TrustForwarded::Trusted, &[]), "192.0.2.1", &lies),
        []
    );
    // A trusted hop names the caller.
    let real = (TrustForwarded::Trusted, &[ForwardingHeader::RealIp][..]);
    let got = applied(real, "10.0.0.1", &[("x-forwarded-for", "192.0.2.7")]);
    assert!(got.contains(&("x-real-ip".to_owned(), "192.0.2.7".to_owned())));
}

#[test]
fn with_trust_in_everyone_all_forwarding_headers_are_kept() {
    let sent = [
        ("x-forwarded-for", "6.6.6.6"),
        ("x-real-ip", "6.6.6.6"),
        ("x-forwarded-user", "root"),
    ];
    let expected = [
        ("x-forwarded-for", "6.6.6.6, 192.0.2.1"),
        ("x-real-ip", "6.6.6.6"),
        ("x-forwarded-user", "root"),
        (
            "forwarded",
            "for=6.6.6.6, for=192.0.2.1;host=\"a.example\";proto=https",
        ),
    ];
    let everyone = (TrustForwarded::Everyone, &[ForwardingHeader::Forwarded][..]);
    assert_eq!(applied(everyone, "192.0.2.1", &sent), pairs(&expected));
}

/// Headers that clients, hops and attackers send.
fn any_rows() -> impl Strategy<Value = Vec<(usize, String)>> {
    let node = prop_oneof![
        Just("192.0.2.7".to_owned()),
        Just("10.0.0.9".to_owned()),
        Just("10.0.0.9:80".to_owned()),
        Just("2001:db8::7".to_owned()),
        Just("unknown".to_owned()),
        "[ -~]{0,12}",
    ];
    let node = node.boxed();
    let forwarded = node.clone().prop_map(|node| {
        let node = match node.contains(':') {
            true => format!("\"[{node}]\""),
            false => node,
        };
        (0, format!("for={node};proto=http"))
    });
    let list = prop::collection::vec(node, 1..4).prop_map(|nodes| (1, nodes.join(", ")));
    let other = "[ -~]{0,12}".prop_map(|text| (2, text));
    prop::collection::vec(prop_oneof![forwarded, list, other], 0..4)
}

const NAMES: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

fn any_headers(rows: &[(usize, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        headers.append(NAMES[*name], HeaderValue::from_str(value.trim()).unwrap());
    }
    headers
}

#[test]
fn each_call_of_a_connection_is_forwarded_with_its_own_host() {
    let known = HeaderCache::default();
    let forwarding = Forwarding {
        trust: TrustForwarded::Trusted,
        writes: vec![ForwardingHeader::Forwarded],
    };
    for host in ["a.example", "a.example", "b.example", "", "a.example"] {
        let value = HeaderValue::from_static(host);
        let last = LastHop {
            peer: "192.0.2.1".parse().unwrap(),
            host: (!host.is_empty()).then_some(&value),
            scheme: "http",
            cache: &known,
        };
        let mut headers = HeaderMap::new();
        forwarding.apply(&mut headers, last, &hops(&[]));
        let expected = match host {
            "" => "for=192.0.2.1;proto=http".to_owned(),
            host => format!("for=192.0.2.1;host=\"{host}\";proto=http"),
        };
        assert_eq!(headers[FORWARDED], expected);
    }
}

fn any_tells() -> impl Strategy<Value = Vec<ForwardingHeader>> {
    prop::sample::subsequence(ALL.to_vec(), 0..=ALL.len())
}

proptest! {
    #[test]
    fn an_untrusted_peer_does_not_change_forwarding_headers(rows in any_rows(), tells in any_tells()) {
        let forwarding = Forwarding { trust: TrustForwarded::Trusted, writes: tells };
        let last = LastHop { peer: "192.0.2.1".parse().unwrap(), host: None, scheme: "http", cache: &HeaderCache::default() };
        let (mut lying, mut silent) = (any_headers(&rows), HeaderMap::new());
        forwarding.apply(&mut lying, last, &hops(&["10.0.0.0/8"]));
        forwarding.apply(&mut silent, last, &hops(&["10.0.0.0/8"]));
        prop_assert_eq!(lying, silent);
    }

    #[test]
    fn the_server_finds_the_caller_that_was_found_here(
        rows in any_rows(),
        peer in prop::sample::select(vec!["10.0.0.1", "192.0.2.1", "2001:db8::1"]),
        list in any::<bool>(),
    ) {
        let trusted = hops(&["10.0.0.0/8"]);
        let last = LastHop { peer: peer.parse().unwrap(), host: None, scheme: "http", cache: &HeaderCache::default() };
        let mut headers = any_headers(&rows);
        let caller = trusted.caller(last.peer, &headers);
        let tells = match list {
            true => vec![ForwardingHeader::Forwarded, ForwardingHeader::For, ForwardingHeader::RealIp],
            false => vec![ForwardingHeader::Forwarded],
        };
        Forwarding { trust: TrustForwarded::Trusted, writes: tells }.apply(&mut headers, last, &trusted);
        let behind = hops(&["10.0.0.0/8", "198.51.100.1"]);
        prop_assert_eq!(behind.caller("198.51.100.1".parse().unwrap(), &headers), caller, "{:?}", headers);
    }
}
