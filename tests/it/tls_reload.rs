//! Certificates that are replaced while the proxy runs.

use std::fs;

use crate::scene::{body_of, json};
use crate::support::certificates::{Authority, Certified, Door, authority, certified, shown_to};
use crate::support::{Proxy, Upstream, eventually, rest_only};

const LISTEN: &str =
    "[listen.tls]\ncertificate = \"own.pem\"\nkey = \"own.key\"\nclient_ca = \"ca.pem\"\n";

fn replace(proxy: &Proxy, with: &Certified) {
    fs::write(proxy.folder().join("own.pem"), &with.pem).unwrap();
    fs::write(proxy.folder().join("own.key"), with.key_pem()).unwrap();
}

fn begin(rest: &Upstream, ours: &Authority, own: &Certified) -> Proxy {
    let files = [
        ("own.pem", own.pem.clone()),
        ("own.key", own.key_pem()),
        ("ca.pem", ours.pem()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    Proxy::start_with(&format!("{}{LISTEN}", rest_only(rest)), &files)
}

#[test]
fn new_connections_are_shown_the_new_certificate() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let first = certified(&ours, "first", "proxy.example");
    let second = certified(&ours, "second", "proxy.example");
    let proxy = begin(&rest, &ours, &first);
    let seen = || shown_to(&proxy, &ours, None).unwrap();
    assert_eq!(seen(), first.certificate);
    replace(&proxy, &second);
    eventually("the new files are in force", || {
        (seen() == second.certificate).then_some(())
    });
    proxy.log_line(&["the new files of `listen.tls`"]);

    // Half of a change is a key of another certificate: what was there stays, and the log says so.
    let third = certified(&ours, "third", "proxy.example");
    fs::write(proxy.folder().join("own.key"), third.key_pem()).unwrap();
    proxy.log_line(&[
        "listen.tls.certificate: ",
        "own.pem` is invalid: ",
        "KeyMismatch",
    ]);
    assert_eq!(seen(), second.certificate);
    fs::write(proxy.folder().join("own.pem"), &third.pem).unwrap();
    eventually("the new files are in force", || {
        (seen() == third.certificate).then_some(())
    });
}

#[test]
fn a_signal_has_the_files_read_again_and_other_clients_are_believed() {
    let (ours, others) = (authority(), authority());
    let rest = Upstream::answering(json("1"));
    let own = certified(&ours, "proxy", "proxy.example");
    let proxy = begin(&rest, &ours, &own);
    let client = certified(&others, "client", "client.example");
    assert!(shown_to(&proxy, &ours, Some(&client)).is_err());
    fs::write(proxy.folder().join("ca.pem"), others.pem()).unwrap();
    proxy.signal("HUP");
    proxy.log_line(&["the new files of `listen.tls`"]);
    eventually("the new files are in force", || {
        shown_to(&proxy, &ours, Some(&client)).ok()
    });
    let former = certified(&ours, "client", "client.example");
    assert!(shown_to(&proxy, &ours, Some(&former)).is_err());
}

#[test]
fn whether_there_is_tls_is_for_the_next_start() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let own = certified(&ours, "proxy", "proxy.example");
    let proxy = begin(&rest, &ours, &own);
    fs::write(proxy.folder().join("dualgauge.toml"), rest_only(&rest)).unwrap();
    proxy.log_line(&["`listen.tls` changed; it takes effect at the next start"]);
    assert_eq!(shown_to(&proxy, &ours, None).unwrap(), own.certificate);
}

#[test]
fn an_upstream_is_believed_by_the_new_authorities() {
    let (ours, rest) = (authority(), Upstream::answering(json("1")));
    let door = Door::before(&rest, &certified(&ours, "server", "localhost"), None);
    let config = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"https://localhost:{}\"\ntls.ca = \"ca.pem\"\n",
        door.port()
    );
    let proxy = Proxy::start_with(&config, &[("ca.pem", &authority().pem())]);
    assert_eq!(proxy.rest("GET", "/", &[], "").status(), 502);
    fs::write(proxy.folder().join("ca.pem"), ours.pem()).unwrap();
    let answer = || proxy.rest("GET", "/", &[], "");
    let answer = eventually("the new files are in force", || {
        Some(answer()).filter(|answer| answer.status() == 200)
    });
    assert_eq!(body_of(&answer, 200), "1");
    // A file without a certificate is refused, and calls go on.
    fs::write(proxy.folder().join("ca.pem"), "nothing").unwrap();
    proxy.log_line(&["upstream.old.tls.ca: ", "it contains no PEM certificate"]);
    assert_eq!(proxy.rest("GET", "/", &[], "").status(), 200);
}
