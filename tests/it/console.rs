//! The console at `/`, and the parts of the admin API that it reads.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Message, Proxy, Upstream, Wire, becomes, eventually, sha256};
use crate::two_servers::{self, MOVER, Servers, answers};

fn started() -> (Servers, Proxy) {
    let servers = Servers::start();
    let proxy = Proxy::start_with_flags(&servers.config(), MOVER);
    (servers, proxy)
}

/// Reads a JSON answer, which must have status 200.
fn get(proxy: &Proxy, path: &str) -> Value {
    let answer = proxy.ask("GET", &format!("/api/v1/{path}"), "");
    assert_eq!(answer.status(), 200, "{path}: {answer:?}");
    answer.json()
}

/// The paths that a page, a script or a style names.
fn named(path: &str, text: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').unwrap().0;
    let mut found = Vec::new();
    for quoted in text.split('"').skip(1) {
        if let Some(rest) = quoted.strip_prefix("./") {
            found.push(format!("{folder}/{rest}"));
        } else if let Some(rest) = quoted.strip_prefix("../") {
            let above = folder.rsplit_once('/').unwrap().0;
            found.push(format!("{above}/{rest}"));
        } else if quoted.starts_with("/console/") || quoted.starts_with("/api/v1/docs/") {
            found.push(quoted.to_owned());
        }
    }
    found
}

/// Checks the headers of a page or of a file of it.
fn check_policy(answer: &Message, path: &str) {
    let policy = answer.head.one("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
        "{policy}"
    );
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(
        !policy.contains("unsafe") && !policy.contains("http"),
        "{path}: {policy}"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.head.one(name), Some(value), "{path}: {name}");
    }
    assert_eq!(answer.head.one("set-cookie"), None, "{path}");
}

#[test]
fn the_console_is_served_with_all_its_files_and_a_strict_policy() {
    let (_servers, proxy) = started();
    for (start, files) in [("/", 20), ("/api/v1/docs", 3)] {
        let (mut waiting, mut seen) = (vec![start.to_owned()], BTreeSet::new());
        let mut size = 0;
        while let Some(path) = waiting.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let answer = proxy.ask("GET", &path, "");
            assert_eq!(answer.status(), 200, "{path}");
            check_policy(&answer, &path);
            let text = answer.text();
            size += text.len();
            assert!(
                !text.contains("<script>") && !text.contains(" style="),
                "{path}"
            );
            waiting.extend(named(&path, text));
        }
        assert!(seen.len() >= files, "{seen:?}");
        assert!(size <= 300 * 1024, "{size} bytes");
    }
    let script = proxy.ask("GET", "/console/app.js", "");
    let kind = script.head.one("content-type");
    assert_eq!(kind, Some("text/javascript; charset=utf-8"));
}

#[test]
fn the_console_checks_host_origin_and_method_as_the_api_does() {
    let (_servers, proxy) = started();
    let admin = proxy.admin();
    let ask = |line: &str, host: &str, more: &str| {
        let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        proxy.ask_raw(&request).status()
    };
    let own = admin.to_string();
    for path in ["/", "/console/app.js", "/api/v1/docs"] {
        let line = format!("GET {path}");
        assert_eq!(ask(&line, &own, ""), 200, "{path}");
        assert_eq!(ask(&line, "evil.example", ""), 403, "{path}");
        assert_eq!(
            ask(&line, &own, "Origin: http://evil.example\r\n"),
            403,
            "{path}"
        );
        assert_eq!(ask(&format!("POST {path}"), &own, ""), 405, "{path}");
    }
    assert_eq!(ask("GET /console/none.js", &own, ""), 404);
    assert_eq!(ask("GET /console/../api/v1/plan", &own, ""), 404);
    // A write of a page of another site, with and without what a browser adds.
    let json = "Content-Type: application/json\r\n";
    let kill = |more: &str| ask("PUT /api/v1/kill", &own, more);
    assert_eq!(kill(""), 415);
    assert_eq!(kill(&format!("{json}Sec-Fetch-Site: cross-site\r\n")), 403);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    assert_eq!(kill(&format!("{json}Sec-Fetch-Site: same-origin\r\n")), 200);
    assert_eq!(answers(&proxy, "mover"), "rest");
}

#[test]
fn with_tokens_only_the_pages_are_open() {
    let servers = Servers::start();
    let hash = sha256("secret");
    let config = format!(
        "{}\n[admin]\ntokens = {{ anna = \"sha256:{hash}\" }}\n",
        servers.config()
    );
    let proxy = Proxy::start_with_flags(&config, MOVER);
    for (path, status) in [
        ("/", 200),
        ("/console/app.js", 200),
        ("/api/v1/docs", 200),
        ("/api/v1/docs/page.js", 200),
        ("/api/v1/admin.json", 401),
        ("/api/v1/overview", 401),
        ("/api/v1/live", 401),
        ("/api/v1/clients", 401),
    ] {
        assert_eq!(proxy.ask("GET", path, "").status(), status, "{path}");
    }
    let with = format!(
        "GET /api/v1/overview HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer secret\r\n\r\n",
        proxy.admin()
    );
    assert_eq!(proxy.ask_raw(&with).status(), 200);
}

/// Reads the data of the next event of a live stream.
fn next_event(wire: &mut Wire) -> Value {
    let mut text = String::new();
    loop {
        let chunk = wire.read_chunk().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        let Some(event) = text.strip_suffix("\n\n") else {
            continue;
        };
        if let Some(data) = event.strip_prefix("event: overview\ndata: ") {
            return serde_json::from_str(data).unwrap();
        }
        text.clear();
    }
}

#[test]
fn live_streams_are_limited_and_counted() {
    const STREAMS: usize = 16;
    let (_servers, proxy) = started();
    let host = proxy.admin();
    let request = format!("GET /api/v1/live HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        let mut wire = Wire::connect(proxy.admin());
        wire.send(&request);
        assert!(wire.read_head().start.starts_with("HTTP/1.1 200 "));
        open.push(wire);
    }
    assert_eq!(proxy.ask("GET", "/api/v1/live", "").status(), 503);
    let metrics = proxy.metrics();
    let count = |result: &str| {
        metrics.value(&format!(
            "dualgauge_admin_live_streams_total{{result=\"{result}\"}}"
        ))
    };
    assert_eq!(["opened", "refused", "failed"].map(count), [16.0, 1.0, 0.0]);
    let are_open = || proxy.metrics().value("dualgauge_admin_live_streams_open");
    assert_eq!(are_open(), 16.0);
    drop(open);
    becomes(are_open, &0.0);
}

#[test]
fn the_live_stream_tells_a_change_and_what_needs_attention() {
    let (_servers, proxy) = started();
    let mut wire = Wire::connect(proxy.admin());
    wire.send(format!(
        "GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n\r\n",
        proxy.admin()
    ));
    let head = wire.read_head();
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    let first = next_event(&mut wire);
    assert_eq!(
        (&first["revision"], &first["kill"]),
        (&0.into(), &Value::Null)
    );
    assert_eq!(first["flags"], 1);
    proxy.ask("PUT", "/api/v1/kill", r#"{"who":"anna","why":"ticket 7"}"#);
    let killed = loop {
        let event = next_event(&mut wire);
        if event["revision"] != 0 {
            break event;
        }
    };
    assert_eq!(killed["kill"]["who"], "anna");
    assert_eq!(killed["attention"][0]["kind"], "kill_switch");
    let broken = fs::read_to_string(proxy.folder().join("dualgauge.toml")).unwrap();
    let broken = format!("{broken}\n[limits]\nbach = 7\n");
    fs::write(proxy.folder().join("dualgauge.toml"), broken).unwrap();
    let found = loop {
        let event = next_event(&mut wire);
        let items = event["attention"].as_array().unwrap().clone();
        if let Some(item) = items
            .into_iter()
            .find(|item| item["kind"] == "configuration")
        {
            break item;
        }
    };
    assert!(
        found["text"].as_str().unwrap().contains("1 problem"),
        "{found}"
    );
    // The proxy ends at once, although a stream is open.
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{}", stopped.log);
}

#[test]
fn the_status_has_the_problems_of_the_last_reload_by_file_and_line() {
    let (_servers, proxy) = started();
    let fine = get(&proxy, "status");
    assert_eq!(fine["problems"], Value::Array(Vec::new()));
    assert_eq!(fine["upstreams"].as_array().unwrap().len(), 2);
    let file = proxy.folder().join("dualgauge.toml");
    let part = proxy.folder().join("part.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&part, "").unwrap();
    fs::write(&file, format!("include = [\"part.toml\"]\n{text}")).unwrap();
    assert_eq!(proxy.ask("POST", "/api/v1/reload", "").status(), 200);
    let files = [&file, &part, &proxy.folder().join("flags.toml")];
    assert_eq!(get(&proxy, "status")["files"], json!(files));
    let text = fs::read_to_string(&file).unwrap();
    let line = text.lines().count() + 3;
    fs::write(&file, format!("{text}\n[limits]\nbach = 7\n")).unwrap();
    assert_eq!(proxy.ask("POST", "/api/v1/reload", "").status(), 422);
    let status = get(&proxy, "status");
    let problem = &status["problems"][0];
    assert_eq!(
        problem["line"].as_u64(),
        u64::try_from(line).ok(),
        "{status}"
    );
    assert!(
        problem["file"]
            .as_str()
            .unwrap()
            .ends_with("dualgauge.toml"),
        "{status}"
    );
    assert!(
        problem["hint"].as_str().unwrap().contains("batch"),
        "{status}"
    );
    assert_eq!(status["reloads"]["failed"], 1);
}

/// A configuration with many clients, and routes beside those of the servers.
fn many(servers: &Servers) -> String {
    let mut config = servers.config();
    for index in 0..130 {
        config.push_str(&format!(
            "\n[[client]]\nname = \"app-{index:03}\"\nmatch = {{ header = {{ x-client-id = \"app-{index:03}\" }} }}\n\
             \n[[route]]\nname = \"extra.{index:03}\"\nrest = \"GET /extra/{index}\"\nrpc = \"extra/{index}\"\n"
        ));
    }
    config
}

#[test]
fn long_lists_come_in_pages_and_are_searched() {
    let servers = Servers::start();
    let mut flags = MOVER.to_owned();
    for index in 0..130 {
        flags.push_str(&format!(
            "[[flag]]\nname = \"f{index:03}\"\nclient = \"app-{index:03}\"\nstage = \"shadow\"\n"
        ));
    }
    let proxy = Proxy::start_with_flags(&many(&servers), &flags);
    assert_eq!(answers(&proxy, "app-129"), "rest");
    for (list, items) in [
        ("clients", "items"),
        ("routes", "items"),
        ("flags", "flags"),
    ] {
        let mut names = BTreeSet::new();
        for offset in [0, 50, 100] {
            let page = get(&proxy, &format!("{list}?limit=50&offset={offset}"));
            assert_eq!(
                (&page["total"], &page["offset"]),
                (&131.into(), &offset.into()),
                "{list}"
            );
            let items = page[items].as_array().unwrap();
            assert!(items.len() <= 50, "{list}");
            names.extend(
                items
                    .iter()
                    .map(|item| item["name"].as_str().unwrap().to_owned()),
            );
        }
        assert_eq!(names.len(), 131, "{list}");
        let found = get(&proxy, &format!("{list}?search=A"));
        assert!(found["total"].as_u64().unwrap() >= 1, "{list}");
        let none = get(&proxy, &format!("{list}?search=nothing-has-this"));
        assert_eq!(none["total"], 0, "{list}");
        for wrong in ["limit=0", "limit=101", "offset=x", "page=1"] {
            let answer = proxy.ask("GET", &format!("/api/v1/{list}?{wrong}"), "");
            assert_eq!(answer.status(), 400, "{list} {wrong}");
        }
    }
    let one = get(&proxy, "flags?search=f129");
    assert_eq!(one["positions"], json!([131]));
    let busiest = eventually("the call is counted", || {
        let page = get(&proxy, "clients?sort=calls&limit=1");
        let busiest = page["items"][0].clone();
        (busiest["calls"]["old"] == 1).then_some(busiest)
    });
    assert_eq!(busiest["name"], "app-129");
    assert_eq!(busiest["stages"]["shadow"], 1);
    assert_eq!(busiest["source"], "header");
}

#[test]
fn a_route_shows_its_callers_its_latency_and_what_translation_keeps() {
    let (_servers, proxy) = started();
    assert_eq!(answers(&proxy, "mover"), "rpc");
    assert_eq!(answers(&proxy, "someone"), "rest");
    let route = eventually("the call is counted", || {
        let route = get(&proxy, "routes/things.read");
        let count = |side: &str| route["latency"][side]["count"].as_u64();
        (count("old") == Some(1) && count("new") == Some(1)).then_some(route)
    });
    assert_eq!(route["rest"], "GET /things/{id}");
    assert_eq!(route["callers"].as_array().unwrap().len(), 2, "{route}");
    assert_eq!(route["usage"]["verdict"], "not deprecated");
    let verdict = get(&proxy, "routes/things.read/verdict");
    let calls = &verdict["directions"][0];
    assert_eq!(
        (&calls["from"], &calls["kind"]),
        (&"rest".into(), &"request".into())
    );
    let lost = proxy.ask("GET", "/api/v1/routes/things.raed", "");
    assert_eq!(lost.status(), 404);
    assert_eq!(lost.json()["hint"], "did you mean `things.read`?");
}

#[test]
fn a_preview_says_what_a_change_would_do_and_a_lost_race_changes_nothing() {
    let (_servers, proxy) = started();
    let path = "flags/mover/preview?stage=passthrough&percent=100";
    let preview = get(&proxy, path);
    assert_eq!(
        (&preview["effect"], &preview["routes"]),
        (&"returns".into(), &1.into())
    );
    let text = preview["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "Returns about 100 % of client `mover`'s calls to the old side, on 1 route."
        ),
        "{text}"
    );
    assert_eq!(answers(&proxy, "mover"), "rpc", "a preview changes nothing");
    let seen = preview["tag"].as_str().unwrap().to_owned();
    let other = r#"{"stage":"shadow","percent":100,"who":"ben"}"#;
    assert_eq!(proxy.ask("PUT", "/api/v1/flags/mover", other).status(), 200);
    let body = r#"{"stage":"passthrough","percent":100}"#;
    let late = format!(
        "PUT /api/v1/flags/mover HTTP/1.1\r\nHost: {}\r\nIf-Match: \"{seen}\"\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        proxy.admin(),
        body.len()
    );
    assert_eq!(proxy.ask_raw(&late).status(), 412);
    assert_eq!(get(&proxy, "flags/mover")["stage"], "shadow");
    let keyless = get(&proxy, "flags/mover/preview?stage=translate&percent=40");
    assert!(
        keyless["faults"][0].as_str().unwrap().contains("no key"),
        "{keyless}"
    );
    for wrong in [
        "",
        "stage=translate",
        "stage=x&percent=1",
        "stage=shadow&percent=101",
    ] {
        let answer = proxy.ask("GET", &format!("/api/v1/flags/mover/preview?{wrong}"), "");
        assert_eq!(answer.status(), 400, "{wrong}");
    }
}

/// Waits for an item that needs attention, of a kind and a severity.
fn attention(proxy: &Proxy, kind: &str, severity: &str) -> Value {
    eventually(kind, || {
        let overview = get(proxy, "overview");
        let mut items = overview["attention"].as_array().unwrap().iter();
        let item = items.find(|item| item["kind"] == kind && item["severity"] == severity);
        item.cloned()
    })
}

#[test]
fn upstreams_that_are_away_need_attention_until_they_are_back() {
    let (rest, link) = (Upstream::nowhere(), Upstream::nowhere());
    let health = "health = { path = \"/healthz\", every = \"1s\", down_after = 1, up_after = 1 }";
    let proxy = Proxy::start(&format!(
        "[admin]\nready_upstreams = [\"old\"]\n\
         [upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\n{health}\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"ws://{}/rpc\"\n",
        rest.address(),
        link.address()
    ));
    // The process is not ready without the upstream that the configuration names; the other one is only noted.
    for (severity, text) in [
        (
            "error",
            "no address of the upstream `old` passes its health checks",
        ),
        ("warning", "the upstream `new` has no link"),
    ] {
        let item = attention(&proxy, "readiness", severity);
        let wanted = json!({"severity": severity, "kind": "readiness", "subject": null, "text": text, "at": null});
        assert_eq!(item, wanted);
    }
    let _server = rest.appears_serving(|_| b"HTTP/1.1 204 No Content\r\n\r\n".to_vec());
    eventually("only the note is left", || {
        let overview = get(&proxy, "overview");
        let items = overview["attention"].as_array().unwrap();
        (items.len() == 1 && items[0]["severity"] == "warning").then_some(())
    });
}

#[test]
fn failed_candidates_need_attention() {
    let rest = Upstream::serving(|_| two_servers::json(r#"{"by":"rest"}"#));
    let servers = Servers {
        rest,
        rpc: Upstream::nowhere(),
    };
    let flags = MOVER.replace("translate", "shadow");
    let proxy = Proxy::start_with_flags(&servers.config(), &flags);
    assert_eq!(answers(&proxy, "mover"), "rest");
    let item = attention(&proxy, "failed_candidates", "warning");
    assert_eq!(
        (&item["subject"], &item["text"]),
        (&"things.read".into(), &"1 candidate failed".into())
    );
    assert!(item["at"].is_string(), "{item}");
    assert_eq!(answers(&proxy, "mover"), "rest");
    eventually("both are counted", || {
        let item = attention(&proxy, "failed_candidates", "warning");
        (item["text"] == "2 candidates failed").then_some(())
    });
}
