//! TLS on the listener: the certificate of a client is an identity, and the calls are the same as without.

use std::io::{Read, Write};
use std::net::TcpStream;

use rcgen::{DistinguishedName, DnType};
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::scene::json;
use crate::support::certificates::{
    Authority, Certified, authority, certified, certified_with, secured,
};
use crate::support::{Proxy, Upstream, becomes, rest_only};

struct Scene {
    ours: Authority,
    rest: Upstream,
    proxy: Proxy,
}

const CONFIG: &str = r#"
[listen.tls]
certificate = "own.pem"
key = "own.key"
client_ca = "ca.pem"
[listen.set_headers]
x-subject = "{subject}"
[limits]
header_timeout = "1s"
[[client]]
name = "declared"
match = { header = { x-client-id = "*" } }
[[client]]
name = "phones"
match = { subject = { cn = "ios-*", san = { dns = "*.Phones.example" } } }
[[client]]
name = "partners"
match = { subject = "CN=ios-*,O=Example" }
"#;

impl Scene {
    fn start() -> Scene {
        let rest = Upstream::answering(json(r#""rest""#));
        let ours = authority();
        let own = certified(&ours, "proxy", "proxy.example");
        let config = format!("{}{CONFIG}", rest_only(&rest));
        let files = [
            ("own.pem", own.pem.as_str()),
            ("own.key", &own.key_pem()),
            ("ca.pem", &ours.pem()),
        ];
        let proxy = Proxy::start_with(&config, &files);
        Scene { ours, rest, proxy }
    }

    fn connect(&self, with: Option<&Certified>) -> StreamOwned<ClientConnection, TcpStream> {
        secured(&self.proxy, &self.ours, with)
    }

    /// Two calls on one connection, and all that came back.
    fn call(&self, with: Option<&Certified>) -> std::io::Result<String> {
        self.call_to("/b", with)
    }

    /// The same, the second one to this path.
    fn call_to(&self, path: &str, with: Option<&Certified>) -> std::io::Result<String> {
        let mut stream = self.connect(with);
        let head = "Host: proxy.example\r\nX-Client-Id: someone\r\nX-Subject: CN=root\r\n";
        let calls = format!(
            "GET /a HTTP/1.1\r\n{head}\r\nGET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n"
        );
        stream.write_all(calls.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8(answer).unwrap())
    }
}

#[test]
fn a_verified_certificate_names_its_client() {
    let scene = Scene::start();
    let phone = certified(&scene.ours, "ios-1", "a.phones.example");
    let answer = scene.call(Some(&phone)).unwrap();
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    let line = scene.proxy.log_line(&["path=/b "]);
    assert!(line.contains("client=phones proof=authenticated"), "{line}");
    let request = scene.rest.requests().remove(0);
    let mut fields = request.head.fields.iter();
    let forwarded = fields.find(|(name, _)| name.eq_ignore_ascii_case("forwarded"));
    let expected = "for=127.0.0.1;host=\"proxy.example\";proto=https";
    assert_eq!(forwarded.unwrap().1, expected);
    assert_eq!(request.head.all("x-subject"), ["CN=ios-1"]);
}

#[test]
fn without_a_certificate_or_with_another_the_caller_is_whom_he_declares() {
    let scene = Scene::start();
    let another = certified(&scene.ours, "ios-1", "a.other.example");
    for (with, subject) in [(None, None), (Some(&another), Some("CN=ios-1"))] {
        let answer = scene.call(with).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        let request = scene.rest.requests().pop().unwrap();
        assert_eq!(request.head.one("x-subject"), subject);
    }
    let line = scene.proxy.log_line(&["path=/b "]);
    assert!(line.contains("client=declared proof=declared"), "{line}");
}

#[test]
fn no_value_of_a_certificate_reads_as_another_field() {
    let scene = Scene::start();
    let partner = |parts: &[(DnType, &str)]| {
        certified_with(&scene.ours, "", "a.other.example", |params| {
            params.distinguished_name = DistinguishedName::new();
            for (kind, value) in parts {
                let name = &mut params.distinguished_name;
                name.push(kind.clone(), *value);
            }
        })
    };
    let (organization, name) = (DnType::OrganizationName, DnType::CommonName);
    let phone = (name, "ios-1");
    let own = partner(&[(organization.clone(), "Example"), phone.clone()]);
    let evil = (organization.clone(), "Evil\\,O=Example");
    let value = partner(&[evil, phone.clone()]);
    let evil = (DnType::OrganizationalUnitName, "Evil");
    let unit = partner(&[(organization, "Example"), evil, phone]);
    let rows = [
        ("/own", own, "client=partners proof=authenticated"),
        ("/value", value, "client=declared proof=declared"),
        ("/unit", unit, "client=declared proof=declared"),
    ];
    for (path, with, expected) in rows {
        scene.call_to(path, Some(&with)).unwrap();
        let line = scene.proxy.log_line(&[&format!("path={path} ")]);
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn a_strangers_certificate_and_plain_text_are_no_connections() {
    let scene = Scene::start();
    let stranger = certified(&authority(), "ios-1", "a.phones.example");
    let refused = scene.call(Some(&stranger));
    assert!(refused.is_err(), "{refused:?}");
    let mut plain = scene.proxy.connect();
    plain.send("GET / HTTP/1.1\r\nHost: proxy.example\r\n\r\n");
    plain.read_rest();
    // A client that says nothing is not waited for.
    let mut silent = scene.proxy.connect();
    silent.read_rest();
    let failed = || {
        scene
            .proxy
            .metrics()
            .value("dualgauge_failed_handshakes_total")
    };
    becomes(failed, &3.0);
}

#[test]
fn the_wire_is_inspected_behind_tls() {
    let scene = Scene::start();
    let mut stream = scene.connect(None);
    let shape = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    stream.write_all(shape.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}
