//! Servers behind TLS, which say what they speak.

use super::echo;
use crate::scene::{body_of, json, problem};
use crate::support::certificates::{Door, authority, certified};
use crate::support::{Multiplex, Proxy, Upstream, becomes};

const NAME: &str = "localhost";

#[test]
fn a_server_without_http_2_is_told_from_one_that_has_it() {
    let ours = authority();
    let own = certified(&ours, "server", NAME);
    let (new, old) = (Multiplex::serving(echo), Upstream::answering(json("1")));
    let start = |door: &Door, http2: &str| {
        let config = format!(
            "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"https://{NAME}:{}\"\n\
             http2 = {http2}\ntls = {{ ca = \"ca.pem\" }}\n",
            door.port()
        );
        Proxy::start_with(&config, &[("ca.pem", &ours.pem())])
    };
    let of_new = || Door::speaking(&["h2", "http/1.1"], new.address(), (&own, None));
    let of_old = || Door::speaking(&["http/1.1"], old.address(), (&own, None));
    for http2 in ["\"auto\"", "true"] {
        let door = of_new();
        let proxy = start(&door, http2);
        for _ in 0..3 {
            assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
        }
        assert_eq!(door.protocols(), ["h2"], "{http2}");
        assert_eq!(new.calls()[0].0.uri.scheme_str(), Some("https"));
    }
    let door = of_old();
    let proxy = start(&door, "\"auto\"");
    for _ in 0..3 {
        assert_eq!(body_of(&proxy.rest("GET", "/b", &[], ""), 200), "1");
    }
    assert_eq!(door.protocols(), ["http/1.1"]);
    let silent = Door::speaking(&[], old.address(), (&own, None));
    for (door, why) in [
        (of_old(), "NoApplicationProtocol"),
        (silent, "does not offer HTTP/2"),
    ] {
        let proxy = start(&door, "true");
        let answer = proxy.rest("GET", "/b", &[], "");
        let found = (answer.status(), problem(&answer).0);
        assert_eq!(found, (502, "upstream_unreachable".to_owned()));
        proxy.log_line(&["path=/b ", "blame=upstream", why]);
    }
}

#[test]
fn certificates_of_both_ends_hold_and_new_ones_make_a_new_connection() {
    let (ours, clients) = (authority(), authority());
    let own = certified(&ours, "server", NAME);
    let server = Multiplex::serving(echo);
    let door = Door::speaking(&["h2"], server.address(), (&own, Some(&clients)));
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurl = \"https://{NAME}:{}\"\nhttp2 = \"auto\"\n\
         keep_alive = \"1h\"\n[upstream.old.tls]\nca = \"ca.pem\"\ncertificate = \"own.pem\"\nkey = \"own.key\"\n",
        door.port()
    );
    let shown = ["first", "second"].map(|name| certified(&clients, name, "proxy.example"));
    let [first, second] = shown.each_ref().map(|own| (own.pem.clone(), own.key_pem()));
    let files = [
        ("ca.pem", &*ours.pem()),
        ("own.pem", &*first.0),
        ("own.key", &*first.1),
    ];
    let proxy = Proxy::start_with(&config, &files);
    for _ in 0..2 {
        assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    }
    assert_eq!((door.handshakes(), server.ended()), (1, 0));
    std::fs::write(proxy.folder().join("own.key"), second.1).unwrap();
    std::fs::write(proxy.folder().join("own.pem"), second.0).unwrap();
    proxy.signal("HUP");
    // What nobody uses any more is closed at once.
    becomes(|| server.ended(), &1);
    assert_eq!(body_of(&proxy.rest("POST", "/b", &[], "x"), 200), "x");
    assert_eq!(door.handshakes(), 2);
}
