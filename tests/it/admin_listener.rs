//! What the admin listener answers, and to whom.

use crate::support::Proxy;
use crate::two_servers::{MOVER, Servers, answers};

#[test]
fn the_admin_listener_answers_what_it_knows_and_nothing_else() {
    let servers = Servers::start();
    let proxy = Proxy::start(&servers.config());
    let health = proxy.ask("GET", "/healthz", "");
    assert_eq!((health.status(), health.text()), (200, "ok\n"));
    let ready = proxy.ask("GET", "/readyz", "");
    assert_eq!((ready.status(), ready.text()), (200, "ready\n"));
    let metrics = proxy.ask("GET", "/metrics", "");
    let kind = metrics.head.one("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    let plan = proxy.ask("GET", "/api/v1/plan", "").json();
    assert_eq!(plan["routes"][0]["name"], "things.read");
    assert_eq!(plan["upstreams"].as_array().unwrap().len(), 2);

    for path in [
        "/console",
        "/healthz/",
        "/metrics/x",
        "/api/v1",
        "/api/v2/flags",
        "/things/7",
    ] {
        let lost = proxy.ask("GET", path, "");
        assert_eq!(lost.status(), 404, "{path}");
        let kind = lost.head.one("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{path}");
    }
    let written = proxy.ask("POST", "/metrics", "{}");
    assert_eq!(
        (written.status(), written.head.one("allow")),
        (405, Some("GET, HEAD"))
    );
    // Calls are no business of this listener, and it is none of the calls' one.
    assert_eq!(proxy.rest("GET", "/metrics", &[], "").json()["by"], "rest");
}

#[test]
fn the_routes_are_served_as_documents() {
    let servers = Servers::start();
    let proxy = Proxy::start(&servers.config());
    let openapi = proxy.ask("GET", "/api/v1/openapi.json", "");
    assert_eq!(
        (openapi.status(), openapi.head.one("content-type")),
        (200, Some("application/json"))
    );
    let openapi = openapi.json();
    assert_eq!(openapi["openapi"], "3.1.0");
    let read = &openapi["paths"]["/things/{id}"]["get"];
    assert_eq!(read["x-dualgauge-route"], "things.read");
    let openrpc = proxy.ask("GET", "/api/v1/openrpc.json", "").json();
    let method = &openrpc["methods"][0];
    assert_eq!(
        (&method["name"], &method["params"][0]["name"]),
        (&"things/read".into(), &"id".into())
    );
    let foreign = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(proxy.ask_raw(foreign).status(), 403);
}

#[test]
fn a_page_of_another_site_cannot_use_the_admin_listener() {
    let servers = Servers::start();
    let proxy = Proxy::start_with_flags(&servers.config(), MOVER);
    let own = proxy.admin();
    let body = r#"{"stage":"passthrough","percent":100}"#;
    let put = |host: &str, more: &str| {
        let length = body.len();
        let request = format!(
            "PUT /api/v1/flags/mover HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{more}\r\n{body}"
        );
        proxy.ask_raw(&request).status()
    };
    let json = "Content-Type: application/json\r\n";
    let own_host = own.to_string();
    assert_eq!(put("evil.example", json), 403);
    assert_eq!(put(&format!("evil.example:{}", own.port()), json), 403);
    assert_eq!(
        put(&own_host, &format!("{json}Origin: http://evil.example\r\n")),
        403
    );
    assert_eq!(put(&own_host, &format!("{json}Origin: null\r\n")), 403);
    assert_eq!(put(&own_host, ""), 415);
    assert_eq!(put(&own_host, "Content-Type: text/plain\r\n"), 415);
    let two_hosts = format!("{json}Host: {own}\r\n");
    assert_eq!(put(&own_host, &two_hosts), 400);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    // Reading is refused in the same way.
    for path in ["/metrics", "/readyz", "/api/v1/flags"] {
        let read = proxy.ask_raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        ));
        assert_eq!(read.status(), 403, "{path}");
    }

    assert_eq!(
        put(&own_host, &format!("{json}Origin: http://{own}\r\n")),
        200
    );
    assert_eq!(put(&format!("localhost:{}", own.port()), json), 200);
    assert_eq!(answers(&proxy, "mover"), "rest");
}
