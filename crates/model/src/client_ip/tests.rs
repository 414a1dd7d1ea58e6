use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn hops(networks: &[&str]) -> TrustedProxies {
    TrustedProxies::new(
        networks
            .iter()
            .map(|network| Network::parse(network).unwrap())
            .collect(),
    )
}

fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn a_network_is_written_without_host_bits() {
    for (text, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ("::1", "::1", "::2"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
        ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
        ("0.0.0.0/0", "1.2.3.4", "::1"),
    ] {
        let network = Network::parse(text).unwrap();
        assert!(network.contains(inside.parse().unwrap()), "{text} {inside}");
        assert!(
            !network.contains(outside.parse().unwrap()),
            "{text} {outside}"
        );
    }
    assert_eq!(Network::parse("10/8"), Err(NetworkFault::NoNetwork));
    assert_eq!(Network::parse("localhost"), Err(NetworkFault::NoNetwork));
    assert_eq!(
        Network::parse("10.1.2.3/8").unwrap_err().to_string(),
        "has host bits set; the network is `10.0.0.0/8`"
    );
}

/// The peer, what it sends, and the caller.
type Row<'r> = (&'r str, &'r [(&'static str, &'r str)], &'r str);

#[test]
fn the_caller_is_the_right_most_address_that_is_not_trusted() {
    let hops = hops(&["10.0.0.0/8", "2001:db8::/32"]);
    let xff = "x-forwarded-for";
    let rows: [Row<'_>; 17] = [
        ("10.0.0.1", &[], "10.0.0.1"),
        ("10.0.0.1", &[(xff, "192.0.2.1")], "192.0.2.1"),
        (
            "10.0.0.1",
            &[(xff, "6.6.6.6, 192.0.2.1, 10.9.9.9")],
            "192.0.2.1",
        ),
        (
            "10.0.0.1",
            &[(xff, "6.6.6.6"), (xff, "192.0.2.1")],
            "192.0.2.1",
        ),
        ("10.0.0.1", &[(xff, "10.0.0.3,10.0.0.2")], "10.0.0.3"),
        (
            "10.0.0.1",
            &[(xff, "6.6.6.6, unknown, 10.0.0.2")],
            "10.0.0.2",
        ),
        ("10.0.0.1", &[(xff, "192.0.2.1:4711")], "192.0.2.1"),
        ("10.0.0.1", &[(xff, "[2001:db9::1]:80")], "2001:db9::1"),
        ("::ffff:10.0.0.1", &[(xff, "192.0.2.1")], "192.0.2.1"),
        (
            "2001:db8::1",
            &[("forwarded", "for=\"[2001:db9::1]\"")],
            "2001:db9::1",
        ),
        (
            "10.0.0.1",
            &[(
                "forwarded",
                "for=6.6.6.6, proto=http; For=\"192.0.2.1:80\";host=\"a,b\"",
            )],
            "192.0.2.1",
        ),
        (
            "10.0.0.1",
            &[("forwarded", "for=\"x, for=192.0.2.1")],
            "192.0.2.1",
        ),
        ("10.0.0.1", &[("forwarded", "for=_hidden")], "10.0.0.1"),
        (
            "10.0.0.1",
            &[("forwarded", "for=192.0.2.1"), (xff, "192.0.2.1")],
            "192.0.2.1",
        ),
        (
            "10.0.0.1",
            &[("forwarded", "for=6.6.6.6"), (xff, "192.0.2.1")],
            "10.0.0.1",
        ),
        ("6.6.6.6", &[(xff, "10.0.0.1")], "6.6.6.6"),
        ("6.6.6.6", &[("forwarded", "for=192.0.2.1")], "6.6.6.6"),
    ];
    for (peer, rows, caller) in rows {
        let found = hops.caller(peer.parse().unwrap(), &headers(rows));
        assert_eq!(found.to_string(), caller, "{peer} {rows:?}");
    }
}

#[test]
fn a_list_in_another_spelling_is_a_disagreement() {
    let hops = hops(&["10.0.0.0/8"]);
    let peer: IpAddr = "10.0.0.1".parse().unwrap();
    for other in ["x_forwarded_for", "x-forwarded_for", "x_forwarded-for"] {
        for value in ["6.6.6.6", "192.0.2.1"] {
            for own in [
                ("x-forwarded-for", "192.0.2.1"),
                ("forwarded", "for=192.0.2.1"),
                ("accept", "*/*"),
            ] {
                let headers = headers(&[own, (other, value)]);
                assert!(hops.disagree(peer, &headers), "{headers:?}");
                assert_eq!(hops.caller(peer, &headers), peer, "{headers:?}");
            }
        }
    }
    let another = headers(&[("x-forwarded-for", "192.0.2.1"), ("x_forwarded_fo", "a")]);
    assert!(!hops.disagree(peer, &another));
}

#[test]
fn a_chain_of_trusted_hops_is_followed_to_a_limit() {
    let hops = hops(&["10.0.0.0/8"]);
    let long = format!("192.0.2.1, {}", vec!["10.0.0.2"; 1000].join(", "));
    let headers = headers(&[("x-forwarded-for", &long)]);
    let caller = hops.caller("10.0.0.1".parse().unwrap(), &headers);
    assert_eq!(caller.to_string(), "10.0.0.2");
}

proptest! {
    #[test]
    fn an_untrusted_peer_never_changes_its_address(peer in any::<u32>(), forwarded in "[ -~]{0,40}", listed in "([0-9.]{7}[, ]{1,2}){0,4}") {
        let peer: IpAddr = core::net::Ipv4Addr::from(peer).into();
        let headers = headers(&[("forwarded", &forwarded), ("x-forwarded-for", &listed)]);
        prop_assert_eq!(TrustedProxies::default().caller(peer, &headers), peer);
        let hops = hops(&["10.0.0.0/8"]);
        prop_assert!(hops.trusts(peer) || hops.caller(peer, &headers) == peer);
    }

    #[test]
    fn elements_before_that_of_the_hop_change_nothing(before in "[ -~]{0,40}", real in any::<u32>()) {
        let hops = hops(&["10.0.0.0/8"]);
        let real: IpAddr = core::net::Ipv4Addr::from(real | 0x8000_0000).into();
        let peer: IpAddr = "10.0.0.1".parse().unwrap();
        for name in ["forwarded", "x-forwarded-for"] {
            let own = if name == "forwarded" { format!("for={real}") } else { real.to_string() };
            let value = format!("{before}, {own}");
            prop_assert_eq!(hops.caller(peer, &headers(&[(name, &value)])), real);
        }
    }
}
