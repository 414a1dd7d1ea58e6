//! What callers and servers send makes no series: two floods of calls whose every text is random, and the second
//! finds all series there.

use std::collections::BTreeSet;

use crate::random::dice::Dice;
use crate::scene::{call, json};
use crate::support::{Message, Proxy, Upstream, becomes, both};

const TABLES: &str = r#"
[[client]]
name = "ios"
match = { header = { x-client-id = "ios-*" } }
key = { header = "x-device-id" }
[[client]]
name = "moved"
match = { header = { x-client-id = "moved-*" } }
[[client]]
name = "late"
match = { header = { x-client-id = "late-*" } }
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
extra = "drop"
[[route]]
name = "items.make"
rest = "POST /items"
rpc = "items/make"
ignore_query = ["zqx*"]
"#;

const FLAGS: &str = r#"
[[flag]]
name = "compared"
client = "ios"
stage = "shadow"
[[flag]]
name = "translated"
client = "moved"
stage = "translate"
[[flag]]
name = "closed"
client = "late"
stage = "retired"
"#;

/// How often each shape of a call is made in one flood.
const TIMES: usize = 30;
/// Of them, how many have a candidate whose answer differs.
const COMPARED: f64 = TIMES as f64;
/// What every random text begins with.
const MARK: &str = "zqx";

struct Flood {
    dice: Dice,
    proxy: Proxy,
    _servers: [Upstream; 2],
}

/// What a server says: members whose names it takes from the call, so that every answer has others.
fn echo(request: &Message, by: &str) -> String {
    let named = format!("{}{}", request.head.start, request.text());
    let mut names = named.split(|c: char| !c.is_ascii_alphanumeric());
    let name = names.find(|name| name.starts_with(MARK)).unwrap_or(MARK);
    format!(r#"{{"{name}":"{by}","{by}":1}}"#)
}

impl Flood {
    fn begin() -> Flood {
        let rest = Upstream::serving(|request| json(echo(request, "rest")));
        let rpc = Upstream::serving(|request| {
            let said = echo(request, "rpc");
            // What is no JSON comes here as well: nothing says what it calls.
            let message = serde_json::from_slice::<serde_json::Value>(&request.body);
            let id = message.unwrap_or_default()["id"].to_string();
            json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{said}}}"#))
        });
        let noise = "[rollout.candidates]\nnoise = 0\n";
        let config = format!("{}{noise}{TABLES}", both(&rest, &rpc));
        Flood {
            dice: Dice::of(0),
            proxy: Proxy::start_with_flags(&config, FLAGS),
            _servers: [rest, rpc],
        }
    }

    fn text(&mut self) -> String {
        format!("{MARK}{:x}", self.dice.below(usize::MAX))
    }

    fn rest(&mut self, method: &str, path: &str, client: &str, body: &str) -> u16 {
        let texts: [String; 7] = std::array::from_fn(|_| self.text());
        let [who, name, value, device, session, token, query] = texts;
        let who = format!("{client}{who}");
        let header = format!("x-{name}");
        let headers = [
            ("x-client-id", &*who),
            (&*header, &*value),
            ("x-device-id", &*device),
            ("mcp-session-id", &*session),
            ("authorization", &*token),
            ("content-type", "application/json"),
        ];
        let target = format!("{path}?{query}={value}");
        self.proxy.rest(method, &target, &headers, body).status()
    }

    /// A call of every shape.
    fn round(&mut self) {
        let [path, method, member, id] = std::array::from_fn(|_| self.text());
        let item = format!("/items/{path}");
        let body = format!(r#"{{"{member}":"{id}"}}"#);
        for client in ["", "ios-", "moved-"] {
            assert_eq!(self.rest("GET", &item, client, ""), 200);
            assert_eq!(self.rest("POST", "/items", client, &body), 200);
            // Of no route, under a route and elsewhere, and with a method that nobody knows.
            assert_eq!(
                self.rest("GET", &format!("{item}/{member}"), client, ""),
                200
            );
            assert_eq!(
                self.rest("GET", &format!("/{path}/{member}"), client, ""),
                200
            );
            assert_eq!(self.rest(&method.to_uppercase(), &item, client, ""), 200);
            for named in ["items/get", &method] {
                let message = call(named, &body).replace(":1,", &format!(":\"{id}\","));
                assert_eq!(self.rest("POST", "/rpc", client, &message), 200);
            }
            let batch = format!("[{},{}]", call(&method, "[]"), call(&path, "{}"));
            assert_eq!(self.rest("POST", "/rpc", client, &batch), 200);
            assert_eq!(self.rest("POST", "/rpc", client, &path), 200);
        }
        assert_eq!(self.rest("GET", &item, "late-", ""), 410);
        assert_eq!(self.rest("POST", "/items", "moved-", &path), 400);
        let mut smuggler = self.proxy.connect();
        smuggler.send(format!(
            "POST /{path} HTTP/1.1\r\nHost: {id}\r\nContent-Length: 1\r\nTransfer-Encoding: {member}\r\n\r\n"
        ));
        assert_eq!(smuggler.read_answer().status(), 400);
    }

    /// The series after a flood, when all candidates have ended.
    fn series_after(&mut self, floods: f64) -> BTreeSet<String> {
        self.dice = Dice::of(floods as u64);
        for _ in 0..TIMES {
            self.round();
        }
        let labels = ["route", "client", "side", "stage", "verdict"];
        let compared = || {
            let verdicts = self
                .proxy
                .metrics()
                .table("dualgauge_verdicts_total", &labels);
            let of_rest = verdicts.get("items.get ios rest shadow mismatch");
            let of_rpc = verdicts.get("items.get ios rpc shadow mismatch");
            (of_rest.copied(), of_rpc.copied())
        };
        becomes(
            compared,
            &(Some(floods * COMPARED), Some(floods * COMPARED)),
        );
        let page = self.proxy.metrics();
        assert!(!page.text().contains(MARK), "{}", page.text());
        page.series().into_iter().map(str::to_owned).collect()
    }
}

/// The values of a label.
fn values<'s>(series: &'s BTreeSet<String>, label: &str) -> BTreeSet<&'s str> {
    let start = format!("{label}=\"");
    let pairs = series.iter().flat_map(|series| series.split(['{', ',']));
    pairs
        .filter_map(|pair| pair.strip_prefix(&start)?.split('"').next())
        .collect()
}

#[test]
fn a_second_flood_of_random_calls_finds_every_series_there() {
    let mut flood = Flood::begin();
    let before = flood.proxy.metrics().series().len();
    let first = flood.series_after(1.0);
    let second = flood.series_after(2.0);
    let new: Vec<_> = second.difference(&first).collect();
    assert_eq!(new, Vec::<&String>::new());
    assert_eq!(first.len(), second.len());
    // Some two thousand calls have come; each histogram has 18 series.
    assert!(
        before > 100 && first.len() < 2_000,
        "{before} → {}",
        first.len()
    );
    let known = |label| values(&second, label);
    let routes = ["*", "items.get", "items.make", "unrouted"];
    assert_eq!(known("route"), BTreeSet::from(routes));
    let clients = ["ios", "late", "moved", "none", "other"];
    assert!(
        known("client").is_subset(&BTreeSet::from(clients)),
        "{:?}",
        known("client")
    );
    let flags = ["closed", "compared", "none", "translated"];
    assert_eq!(known("flag"), BTreeSet::from(flags));
    assert_eq!(known("prefix"), BTreeSet::from(["/items"]));
}
