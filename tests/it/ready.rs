//! `admin.ready_upstreams`: the process is ready while those that are named are there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Message, Proxy, Upstream, eventually, program, run_to_end};

const WELL: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const ILL: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

/// A proxy before an address, which is ready with it.
fn before(urls: &[&Upstream]) -> Proxy {
    let urls: Vec<_> = urls
        .iter()
        .map(|one| format!("\"http://{}\"", one.address()))
        .collect();
    Proxy::start(&format!(
        "[listen]\nworkers = 2\n[admin]\nready_upstreams = [\"old\"]\n[upstream.old]\nside = \"rest\"\n\
         urls = [{}]\nhealth = {{ path = \"/healthz\", every = \"1s\", down_after = 1, up_after = 1 }}\n",
        urls.join(", ")
    ))
}

fn ready(proxy: &Proxy) -> Message {
    proxy.ask("GET", "/readyz", "")
}

fn becomes_ready(proxy: &Proxy) {
    eventually("ready", || (ready(proxy).status() == 200).then_some(()));
}

const NOBODY: &str = "no address of the upstream `old` passes its health checks";

#[test]
fn a_process_is_ready_when_a_named_upstream_has_passed_a_check_and_lives_before() {
    let away = Upstream::nowhere();
    let proxy = before(&[&away]);
    let told = ready(&proxy);
    assert_eq!(told.status(), 503);
    assert!(told.text().contains(NOBODY), "{}", told.text());
    assert_eq!(proxy.ask("GET", "/healthz", "").status(), 200);
    // Calls are taken nevertheless: who sends them decides.
    assert_eq!(proxy.rest("GET", "/a", &[], "").status(), 502);
    let _here = away.appears_serving(|_: &Message| WELL.into());
    becomes_ready(&proxy);
}

#[test]
fn one_address_of_several_is_enough() {
    let well = Arc::new(AtomicBool::new(true));
    let is_well = well.clone();
    let here = Upstream::serving(move |_| match is_well.load(Ordering::SeqCst) {
        true => WELL.into(),
        false => ILL.into(),
    });
    let away = Upstream::nowhere();
    let proxy = before(&[&away, &here]);
    becomes_ready(&proxy);
    well.store(false, Ordering::SeqCst);
    eventually("unready", || {
        let told = ready(&proxy);
        (told.status() == 503 && told.text().contains(NOBODY)).then_some(())
    });
}

#[test]
fn a_flip_and_a_reload_leave_what_is_known_of_upstreams() {
    let here = Upstream::answering(WELL);
    let proxy = before(&[&here]);
    becomes_ready(&proxy);
    let file = proxy.folder().join("dualgauge.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[limits]\nbatch = 7\n")).unwrap();
    assert_eq!(proxy.ask("POST", "/api/v1/reload", "{}").status(), 200);
    assert_eq!(ready(&proxy).status(), 200);
}

#[test]
fn an_upstream_of_which_nothing_is_known_cannot_be_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let text = "[admin]\nready_upstreams = ['old', 'ald', 'old']\n\
        [upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n";
    std::fs::write(&file, text).unwrap();
    let ended = run_to_end(program(&["check", "--config", file.to_str().unwrap()]));
    let said = ended.errors + &ended.output;
    assert_eq!(ended.code, Some(1), "{said}");
    for wanted in [
        "admin.ready_upstreams[0]",
        "the upstream `old` has no health state",
        "add `health` to `[upstream.old]`",
        "there is no upstream `ald`",
        "did you mean `old`?",
        "`old` is listed twice",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}
