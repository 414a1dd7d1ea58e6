//! Calls before the routes are there.

use std::fs;
use std::sync::{Arc, OnceLock};

use super::{LOOPBACK, called_tool, reply, rest, tools};
use crate::scene::{body_of, call, json as json_answer};
use crate::support::{Proxy, Upstream};

#[test]
fn a_call_before_the_routes_are_there_may_be_repeated() {
    let server = Upstream::serving(|_| json_answer(r#"{"jsonrpc":"2.0","id":1,"result":7}"#));
    let proxy = Proxy::start(&format!(
        "unrouted = \"unavailable\"\n[upstream.one]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\n[rpc]\npaths = [\"/rpc\"]\n",
        server.address()
    ));
    for (method, path) in [("GET", "/openapi.json"), ("POST", "/add")] {
        let refused = proxy.rest(method, path, &[], "");
        assert!(
            body_of(&refused, 503).contains("routes_pending"),
            "{refused:?}"
        );
        assert_eq!(refused.head.one("retry-after"), Some("1"));
    }
    proxy.log_line(&["reason=routes_pending", "blame=proxy"]);
    assert_eq!(proxy.rpc(call("any", "{}")).json()["result"], 7);
}

#[test]
fn the_paths_of_tools_are_pending_until_they_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("saved/dualgauge.toml");
    let before = Arc::new(OnceLock::new());
    let (file, seen) = (main.clone(), before.clone());
    let server = Upstream::serving(move |request| {
        if request.text().contains("tools/list") {
            seen.get_or_init(|| fs::read_to_string(&file).unwrap());
        }
        reply(request, &tools(), &called_tool)
    });
    let saved = main.parent().unwrap().to_str().unwrap();
    let proxy = rest(&server, &[&LOOPBACK[..], &["--save", saved]].concat());
    let line = "\nunrouted = \"unavailable\"\n";
    assert!(before.get().unwrap().contains(line), "{before:?}");
    let after = fs::read_to_string(&main).unwrap();
    assert_eq!(after, before.get().unwrap().replacen(&line[1..], "", 1));
    for file in ["dualgauge", "routes"] {
        let saved = main.parent().unwrap();
        let text = fs::read_to_string(saved.join(file).with_extension("toml")).unwrap();
        assert!(
            text.starts_with(&format!("#:schema ./{file}.schema.json\n")),
            "{text}"
        );
        assert!(saved.join(file).with_extension("schema.json").exists());
    }
    assert_eq!(proxy.rest("GET", "/nosuch", &[], "").status(), 404);
}
