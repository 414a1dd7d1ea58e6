//! Clients of every source, and the files for their verification.

use rcgen::{KeyPair, generate_simple_self_signed};

use super::{OLD, problems_of, read};
use crate::config::tests::Fixture;
use dualgauge_model::client_ip::Network;
use dualgauge_model::forwarding::{Forwarding, ForwardingHeader, TrustForwarded};
use dualgauge_model::rollout::{
    DnsPattern, EmailPattern, Glob, KeySource, Matcher, MatcherSource, NamePattern, Proof,
    SubjectPattern, UriPattern,
};
use dualgauge_model::token::ClaimPath;

const SECRET: &str = "0123456789abcdef0123456789abcdef\n";

const EVERY_SOURCE: &str = r#"
[listen]
trusted = ["10.0.0.0/8", "::1"]
[listen.tls]
certificate = "own.pem"
key = "own.key"
client_ca = "own.pem"
[rollout.bearer]
issuer = "https://issuer.example"
audience = ["api"]
keys = [
  { secret_file = "hmac.key", algorithm = "HS256" },
  { public_key_file = "public.pem", algorithm = "ES256" },
  { file = "jwks.json" },
]
[[client]]
name = "phones"
match = { subject = { cn = "ios-*", san = { dns = "*.example", email = "*@example", uri = "spiffe://example/*", ip = "192.0.2.0/24" } } }
key = "address"
[[client]]
name = "dn"
match = { subject = "CN=x,*" }
key = { cookie = "sid" }
[[client]]
name = "services"
match = { claim = { sub = "svc-*", "realm.role" = "admin" } }
key = { claim = "sub" }
[[client]]
name = "inside"
match = { address = "192.0.2.7" }
[[client]]
name = "cli"
match = { user_agent = "cli/*" }
"#;

fn fixture(main: &str) -> Fixture {
    let made = generate_simple_self_signed(vec!["proxy.example".to_owned()]).unwrap();
    let public = KeyPair::generate().unwrap().public_key_pem();
    let set = r#"{"keys":[{"kty":"oct","alg":"HS256","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}"#;
    Fixture::new(&format!("{main}{OLD}"))
        .file("own.pem", made.cert.pem())
        .file("own.key", made.signing_key.serialize_pem())
        .file("hmac.key", SECRET)
        .file("public.pem", public)
        .file("jwks.json", set)
}

#[test]
fn every_source_becomes_part_of_the_plan() {
    let fixture = fixture(EVERY_SOURCE);
    let configuration = read(&fixture).unwrap_or_else(|problems| panic!("{problems}"));
    let clients = &configuration.plan.rollout.clients;
    let sources: Vec<MatcherSource> = clients
        .all()
        .iter()
        .map(|client| client.matcher.source())
        .collect();
    let expected = [
        MatcherSource::Subject,
        MatcherSource::Subject,
        MatcherSource::Claim,
        MatcherSource::Address,
        MatcherSource::UserAgent,
    ];
    assert_eq!(sources, expected);
    let [phones, dn, services, inside, _] = clients.all() else {
        panic!("five clients");
    };
    let expected = [
        SubjectPattern::Dns(DnsPattern::new("*.example")),
        SubjectPattern::Email(EmailPattern::new("*@example")),
        SubjectPattern::Uri(UriPattern::new("spiffe://example/*")),
        SubjectPattern::Address(Network::parse("192.0.2.0/24").unwrap()),
        SubjectPattern::CommonName(Glob::new("ios-*")),
    ];
    assert!(matches!(&phones.matcher, Matcher::Subject(patterns) if *patterns == expected));
    let expected = [SubjectPattern::Name(NamePattern::parse("CN=x,*").unwrap())];
    assert!(matches!(&dn.matcher, Matcher::Subject(patterns) if *patterns == expected));
    assert_eq!(phones.key, Some(KeySource::Address));
    assert_eq!(dn.key, Some(KeySource::Cookie("sid".to_owned())));
    assert_eq!(services.key, Some(KeySource::Claim(ClaimPath::new("sub"))));
    assert_eq!(inside.matcher.source().proof(), Proof::Declared);
    let tokens = clients.tokens().unwrap();
    assert_eq!((tokens.keys.len(), tokens.leeway_seconds), (3, 60));
    // A change of any of these is looked at as one of the configuration.
    assert_eq!(
        configuration.raw.files.len(),
        6,
        "{:?}",
        configuration.raw.files
    );
    let shown = format!("{:?} {:?}", configuration.raw, configuration.plan);
    assert!(
        !shown.contains(SECRET.trim()) && !shown.contains("PRIVATE"),
        "{shown}"
    );
}

#[test]
fn every_fault_of_a_client_has_its_line_and_key() {
    let main = r#"
[listen]
trusted = ["10.0.0.1/8", "proxy"]
[[client]]
name = "a"
match = { claim = { sub = "*" } }
key = { claim = "sub", cookie = "sid" }
[[client]]
name = "b"
match = { address = [] , header = { x = "*" } }
key = "adress"
[[client]]
name = "c"
match = { subject = {} }
key = { cookie = "a b" }
[[client]]
name = "d"
match = {}
[[client]]
name = "e"
match = { claim = {} }
[[client]]
name = "f"
match = { address = "300.0.0.1" }
[[client]]
name = "g"
match = { subject = "ios-*" }
[[client]]
name = "h"
match = { subject = { san = "*.example", dn = "CN=a;O=b" } }
[[client]]
name = "i"
match = { subject = { san = {} } }
[[client]]
name = "j"
match = { subject = { san = { ip = "phones", name = "a" } } }
[rollout.bearer]
keys = [ { file = "jwks.json", algorithm = "RS256" }, { secret_file = "x", algorithm = "RS256" }, {} ]
"#;
    let found = problems_of(&fixture(main)).replace("dualgauge.toml:", "");
    insta::assert_snapshot!(found);
}

#[test]
fn what_proves_nothing_is_said_with_its_key() {
    let main = r#"
[listen.tls]
certificate = "own.key"
key = "own.pem"
[rollout.bearer]
keys = [
  { secret_file = "short.key", algorithm = "HS512" },
  { public_key_file = "public.pem", algorithm = "RS256" },
  { file = "own.pem" },
]
[[client]]
name = "a"
match = { subject = "*" }
"#;
    let found =
        problems_of(&fixture(main).file("short.key", SECRET)).replace("dualgauge.toml:", "");
    insta::assert_snapshot!(found);
    let main = "[[client]]\nname = 'a'\nmatch = { claim = { sub = '*' } }\nkey = { claim = 'sub' }\n[rollout.bearer]\nkeys = []\n";
    let empty = problems_of(&fixture(main)).replace("dualgauge.toml:", "");
    insta::assert_snapshot!(empty);
    let without = main.split("[rollout").next().unwrap();
    let without = problems_of(&fixture(without)).replace("dualgauge.toml:", "");
    insta::assert_snapshot!(without);
    let missing = "[rollout.bearer]\nkeys = [{ file = 'gone.json' }]\n";
    let missing = problems_of(&fixture(missing)).replace("dualgauge.toml:", "");
    assert!(
        missing.starts_with("2: rollout.bearer.keys[0].file: `gone.json` cannot be read: "),
        "{missing}"
    );
}

#[test]
fn headers_of_requests_and_of_hops_are_not_removed_or_written() {
    let unread = "[listen]\nremove_headers = [\"x-ssl-*\", \"a b\", \"*\"]\n[listen.set_headers]\n\
        x-a = \"{cn}\"\n\"x b\" = \"s3cr3t{\"\n\"x c\" = \"a\"\n";
    let refused = "[listen]\nremove_headers = [\"x-ssl-*\", \"content-*\", \"Host\"]\n[listen.set_headers]\n\
        host = \"a\"\nx-forwarded-for = \"{address}\"\nvia = \"a\"\nx-c = \"{client}\"\n";
    let found = [unread, refused].map(|main| problems_of(&fixture(main)));
    insta::assert_snapshot!(found.join("\n").replace("dualgauge.toml:", ""));
    let main = "[listen]\nremove_headers = [\"x-ssl-*\"]\n[listen.set_headers]\nx-c = \"s3cr3t\"\n";
    let configuration = read(&fixture(main)).unwrap_or_else(|problems| panic!("{problems}"));
    let plan = &configuration.plan;
    let headers = &plan.identity_headers;
    assert_eq!((headers.removed.len(), headers.written.len()), (1, 1));
    let shown = format!("{:?} {plan:?}", configuration.raw);
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn what_servers_are_told_of_hops_is_chosen_by_the_names_of_the_fields() {
    let forwarding = |listen: &str| {
        let configuration = read(&fixture(&format!("[listen]\n{listen}\n")));
        let configuration = configuration.unwrap_or_else(|problems| panic!("{problems}"));
        configuration.plan.forwarding.clone()
    };
    let usual = Forwarding {
        trust: TrustForwarded::Trusted,
        writes: vec![ForwardingHeader::Forwarded],
    };
    assert_eq!(forwarding(""), usual);
    let chosen = "forwarded = [\"x-forwarded-for\", \"x-real-ip\"]\nforwarded_from = \"everyone\"";
    let expected = Forwarding {
        trust: TrustForwarded::Everyone,
        writes: vec![ForwardingHeader::For, ForwardingHeader::RealIp],
    };
    assert_eq!(forwarding(chosen), expected);
    assert_eq!(forwarding("forwarded = []").writes, []);
    let wrong = "[listen]\nforwarded = [\"x-forwarded-port\", \"forwarded\"]\nforwarded_from = \"all\"\nforwarded_for = 1\n";
    let found = problems_of(&fixture(wrong));
    insta::assert_snapshot!(found.replace("dualgauge.toml:", ""));
}
