use core::net::IpAddr;
use std::cell::Cell;
use std::rc::Rc;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::client_ip::{Network, Peer, TrustedProxies};
use crate::token::{ClaimPath, Claims, Tokens};

fn client(name: &str, matcher: Matcher, key: Option<KeySource>) -> Client {
    Client {
        name: name.to_owned(),
        matcher,
        key,
    }
}

fn header(value: &str) -> Matcher {
    let name = HeaderName::from_static("x-client-id");
    Matcher::Headers(vec![(name, Glob::new(value))])
}

fn network(text: &str) -> Network {
    Network::parse(text).unwrap()
}

/// One client of each source, in the reverse of the order in which sources are asked, and twins behind two of them.
fn clients() -> Clients {
    let all = vec![
        client("by-agent", Matcher::UserAgent(Glob::new("cli/*")), None),
        client(
            "by-address",
            Matcher::Addresses(vec![network("192.0.2.0/24")]),
            Some(KeySource::Address),
        ),
        client(
            "by-header",
            header("ios-*"),
            Some(KeySource::Header(HeaderName::from_static("x-device-id"))),
        ),
        client(
            "by-header-too",
            header("*"),
            Some(KeySource::Cookie("sid".to_owned())),
        ),
        client(
            "by-claim",
            Matcher::Claims(vec![(ClaimPath::new("sub"), Glob::new("svc-*"))]),
            Some(KeySource::Claim(ClaimPath::new("sub"))),
        ),
        client(
            "by-key",
            Matcher::ApiKey(vec![[7; 32]]),
            Some(KeySource::ApiKey),
        ),
        client(
            "by-subject",
            Matcher::Subject(vec![
                SubjectPattern::CommonName(Glob::new("ios-*")),
                SubjectPattern::Dns(DnsPattern::new("*.example")),
            ]),
            None,
        ),
    ];
    let tokens = Tokens {
        keys: Vec::new(),
        issuer: None,
        audience: Vec::new(),
        leeway_seconds: 0,
    };
    Clients::new(all, HeaderName::from_static("x-api-key")).reading(Some(tokens))
}

/// What one caller shows.
#[derive(Debug, Clone, Default)]
struct Shown {
    headers: Vec<(&'static str, String)>,
    peer: Option<IpAddr>,
    subject: Option<Subject>,
}

impl Shown {
    fn with(mut self, name: &'static str, value: &str) -> Shown {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn from(mut self, peer: &str) -> Shown {
        self.peer = Some(peer.parse().unwrap());
        self
    }

    fn certified(mut self) -> Shown {
        let name = NameAttribute {
            kind: "2.5.4.3".to_owned(),
            value: Some("ios-1".to_owned()),
        };
        let alternatives = vec![AlternativeName::Dns("a.example".to_owned())];
        self.subject = Some(Subject::new(vec![vec![name]], alternatives));
        self
    }

    /// Name, key and proof; what `digest` and `claims` cost is counted.
    fn named(&self, clients: &Clients) -> (String, Option<String>, Proof) {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let read = Cell::new(0);
        let claims = |_: &Tokens, token: &str| {
            read.set(read.get() + 1);
            let sub = token.strip_prefix("good.")?;
            let claims = json!({ "sub": sub });
            Some(Rc::new(Claims::new(claims.as_object().unwrap().clone())))
        };
        let peer = self.peer.map(Peer::at);
        let identity = clients.identify(ClientEvidence {
            mcp_client: None,
            headers: &headers,
            peer: peer.as_ref(),
            subject: self.subject.as_ref(),
            digest: |key| if key == b"secret" { [7; 32] } else { [0; 32] },
            claims: &claims,
        });
        assert!(read.get() <= 1, "a token is looked at once");
        let identity = identity.into_owned();
        let caller = identity.caller(clients);
        if let Some(key) = caller.key {
            assert!(!format!("{identity:?} {caller:?}").contains(&format!("{key:?}")));
        }
        (
            caller.name.to_owned(),
            caller.key.map(str::to_owned),
            caller.proof,
        )
    }
}

/// Everything at once, less what is taken away line by line: each source gives way to the one before it.
#[test]
fn proof_takes_precedence_over_declaration() {
    let none = Shown::default;
    let agent = || none().with("user-agent", "cli/1.2");
    let address = || agent().from("192.0.2.7");
    let declared = || {
        address()
            .with("x-client-id", "ios-9")
            .with("x-device-id", "d1")
    };
    let claim = || declared().with("authorization", "Bearer good.svc-1");
    let key = || claim().with("x-api-key", "secret");
    let all = || key().certified();
    let rows = [
        (all(), "by-subject", None, Proof::Authenticated),
        (key(), "by-key", Some("secret"), Proof::Authenticated),
        (claim(), "by-claim", Some("svc-1"), Proof::Authenticated),
        (declared(), "by-header", Some("d1"), Proof::Declared),
        (address(), "by-address", Some("192.0.2.7"), Proof::Declared),
        (agent(), "by-agent", None, Proof::Declared),
        (none(), OTHER, None, Proof::None),
    ];
    are_named(&rows);
}

type Row<'r> = (Shown, &'r str, Option<&'r str>, Proof);

fn are_named(rows: &[Row<'_>]) {
    let clients = clients();
    for (shown, name, key, proof) in rows {
        let expected = ((*name).to_owned(), key.map(str::to_owned), *proof);
        assert_eq!(shown.named(&clients), expected, "{shown:?}");
    }
}

#[test]
fn what_proves_nothing_is_not_there() {
    let none = Shown::default;
    let declared = || {
        none()
            .with("x-client-id", "ios-9")
            .with("x-device-id", "d1")
    };
    let rows = [
        (
            declared().with("x-api-key", "guess"),
            "by-header",
            Some("d1"),
            Proof::Declared,
        ),
        (
            declared().with("authorization", "Bearer forged.svc-1"),
            "by-header",
            Some("d1"),
            Proof::Declared,
        ),
        (
            declared().with("authorization", "Bearer good.person"),
            "by-header",
            Some("d1"),
            Proof::Declared,
        ),
        // Clients of one source are asked in their order.
        (
            none().with("x-client-id", "web"),
            "by-header-too",
            None,
            Proof::Declared,
        ),
        (
            none()
                .with("x-client-id", "web")
                .with("cookie", "a=b; sid=\"s1\"; sid=s2"),
            "by-header-too",
            Some("s1"),
            Proof::Declared,
        ),
        (
            none().from("::ffff:192.0.2.9"),
            "by-address",
            Some("192.0.2.9"),
            Proof::Declared,
        ),
    ];
    are_named(&rows);
}

#[test]
fn where_hops_are_named_what_others_declare_is_ignored() {
    let clients = clients().trusting(TrustedProxies::new(vec![network("10.0.0.0/8")]));
    let declared = Shown::default()
        .with("x-client-id", "ios-9")
        .with("user-agent", "cli/1")
        .with("x-forwarded-for", "192.0.2.7");
    let name = |shown: Shown| shown.named(&clients).0;
    assert_eq!(name(declared.clone().from("10.0.0.1")), "by-header");
    assert_eq!(name(declared.clone().from("6.6.6.6")), OTHER);
    assert_eq!(name(declared.clone().from("192.0.2.8")), "by-address");
    let forwarded = Shown::default().with("x-forwarded-for", "192.0.2.7");
    assert_eq!(name(forwarded.clone().from("10.0.0.1")), "by-address");
    assert_eq!(name(forwarded.from("6.6.6.6")), OTHER);
    // What is proved needs no hop.
    assert_eq!(
        name(declared.from("6.6.6.6").with("x-api-key", "secret")),
        "by-key"
    );
}

fn any_shown() -> impl Strategy<Value = Shown> {
    let value = "ios-[a-z]{0,3}|secret|guess|by-key|cli/1|[ -~]{0,8}";
    let name = prop::sample::select(vec![
        "x-client-id",
        "x-device-id",
        "user-agent",
        "cookie",
        "x-forwarded-for",
        "forwarded",
    ]);
    let headers = prop::collection::vec((name, value.prop_map(|text: String| text)), 0..5);
    (headers, any::<Option<u32>>()).prop_map(|(headers, peer)| Shown {
        headers,
        peer: peer.map(|peer| core::net::Ipv4Addr::from(peer).into()),
        subject: None,
    })
}

proptest! {
    #[test]
    fn no_declaration_makes_an_authenticated_client(shown in any_shown()) {
        let (_, _, proof) = shown.named(&clients());
        prop_assert_ne!(proof, Proof::Authenticated);
    }

    #[test]
    fn no_declaration_takes_an_authenticated_client_away(shown in any_shown(), certified in any::<bool>()) {
        let (shown, name) = if certified {
            (shown.certified(), "by-subject")
        } else {
            (shown.with("x-api-key", "secret"), "by-key")
        };
        let (found, _, proof) = shown.named(&clients());
        prop_assert_eq!((found.as_str(), proof), (name, Proof::Authenticated));
    }

    /// Whatever others send before and after: the stage of a caller is that of its own evidence.
    #[test]
    fn a_decision_does_not_depend_on_other_calls(own in any_shown(), others in prop::collection::vec(any_shown(), 0..4)) {
        let clients = clients();
        let alone = own.named(&clients);
        for other in &others {
            other.named(&clients);
            prop_assert_eq!(&own.named(&clients), &alone);
        }
    }
}
