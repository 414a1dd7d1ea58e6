//! Bad input of clients: what each gets, over real sockets, as the reference table in `docs/reference/failures.md` has it.
//!
//! A row holds whatever form the route has and whichever side the client is of. Where a value is refused, nobody
//! behind hears of it; where it is none of the proxy's business, it arrives as it was.

mod urls;
mod values;

use crate::scene::{before_rest, json, problem, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream, rpc_only};

const ROUTES: &str = r#"
[rpc]
paths = ["/rpc"]
[[route]]
name = "items.delete"
rest = "DELETE /items/{id}"
rpc = "items/delete"
[[route]]
name = "items.clear"
rest = "DELETE /items"
rpc = "items/clear"
[[route]]
name = "items.list"
rest = "GET /items?page={page:integer?}&q={q?}"
rpc = "items/list"
[[route]]
name = "items.put"
rest = "PUT /items/{id}?n={n:integer?}"
rpc = "items/put"
[[route]]
name = "dropping"
rest = "GET /dropping"
rpc = "dropping"
extra = "drop"
[[route]]
name = "files.get"
rest = "GET /files/{path=**}"
rpc = "files/get"

[[route]]
name = "full.delete"
rest = "DELETE /full?id={id}"
rpc = "full/delete"
params = { id = "{id}" }
[[route]]
name = "full.clear"
rest = "DELETE /full"
rpc = "full/delete"
params = {}
[[route]]
name = "full.read"
rest = "GET /full/{id}?page={page:integer?}"
rpc = "tools/call"
params = { name = "read", arguments = { key = "{id}", page = "{page}" } }
[[route]]
name = "full.dropping"
rest = "GET /full/dropping/{id}"
rpc = "tools/call"
params = { name = "drop", arguments = { key = "{id}" } }
extra = "drop"
[[route]]
name = "full.post"
rest = "POST /full/{id}?page={page:integer?}"
headers = { x-kind = "{kind?}" }
body = { n = "{n:integer}", x = "{x:string?}", any = "{any?}" }
rpc = "full/post"
params = { id = "{id}", page = "{page}", kind = "{kind}", n = "{n}", x = "{x}", any = "{any}" }
"#;

/// One row of the table.
struct Row {
    /// What is bad, and where it stands.
    what: &'static str,
    place: &'static str,
    rest: Cell<Rest>,
    rpc: Cell<&'static str>,
}

/// What a client of one side gets.
struct Cell<C: 'static> {
    /// As the table has it: `400 invalid_params`, `passes …`, or nothing where the side has no such input.
    answer: &'static str,
    /// What has this in it when it arrives, where it passes.
    arrives: &'static str,
    /// Calls of this kind, in short and in full forms.
    calls: &'static [C],
}

/// Method and target; one header; the body.
type Rest = (&'static str, (&'static str, &'static [u8]), &'static [u8]);

const NO_HEADER: (&str, &[u8]) = ("", b"");

const fn get(call: &'static str) -> Rest {
    (call, NO_HEADER, b"")
}

const fn with(call: &'static str, body: &'static str) -> Rest {
    (call, NO_HEADER, body.as_bytes())
}

const fn rest(answer: &'static str, calls: &'static [Rest]) -> Cell<Rest> {
    let arrives = "";
    Cell {
        answer,
        arrives,
        calls,
    }
}

/// `method params`
const fn rpc(answer: &'static str, calls: &'static [&'static str]) -> Cell<&'static str> {
    let arrives = "";
    Cell {
        answer,
        arrives,
        calls,
    }
}

/// What passes, and the text by which it is known when it arrives.
const fn passes<C>(answer: &'static str, arrives: &'static str, calls: &'static [C]) -> Cell<C> {
    Cell {
        answer,
        arrives,
        calls,
    }
}

const REFUSED: &str = "400 `invalid_params`";
const MALFORMED: &str = "400 `malformed_target`";
const INVALID: &str = "-32602 `invalid_params`";

/// All rows, in the order of the table.
fn rows() -> impl Iterator<Item = &'static Row> {
    urls::ROWS.iter().chain(values::ROWS)
}

/// Writes what a source line cannot hold.
fn spelled(text: &[u8]) -> Vec<u8> {
    let deep = ["[".repeat(10_000), "]".repeat(10_000)].concat();
    match std::str::from_utf8(text) {
        Ok(text) => text.replace("DEEP", &deep).into_bytes(),
        Err(_) => text.to_vec(),
    }
}

fn send_rest(proxy: &Proxy, (call, (name, value), body): Rest) -> Message {
    let body = spelled(body);
    let mut request = format!("{call} HTTP/1.1\r\nHost: a.example\r\n").into_bytes();
    if !name.is_empty() {
        request.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    if !body.is_empty() {
        request.extend(
            format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            )
            .bytes(),
        );
    }
    let mut client = proxy.connect();
    client.send([&request[..], b"\r\n", &body].concat());
    client.read_answer()
}

fn send_rpc(proxy: &Proxy, call: &str) -> Message {
    let message = if call.starts_with('{') {
        call.to_owned()
    } else {
        let (method, params) = call.split_once(' ').unwrap_or((call, ""));
        let params = match params {
            "" => String::new(),
            params => format!(r#","params":{params}"#),
        };
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"{params}}}"#)
    };
    let mut bytes = spelled(message.as_bytes());
    if let Some(at) = bytes.iter().position(|byte| *byte == 1) {
        bytes[at] = 0xff;
    }
    proxy.rpc(bytes)
}

/// What the client of a REST call got: the status, and the reason where the proxy refused it.
fn rest_answer(answer: &Message) -> String {
    match answer.status() {
        200 => "passes".into(),
        status => format!("{status} `{}`", problem(answer).0),
    }
}

fn rpc_answer(answer: &Message) -> String {
    let answer = answer.json();
    if answer.get("result").is_some() {
        return "passes".into();
    }
    let (code, reason) = rpc_failure(&answer);
    format!("{code} `{reason}`")
}

/// Checks that each call of a cell gets its answer, and that what is refused does not go on.
fn expect<C: Copy + std::fmt::Debug>(
    cell: &Cell<C>,
    upstream: &Upstream,
    send: impl Fn(C) -> String,
    faults: &mut Vec<String>,
) {
    let (wanted, _) = cell.answer.split_once(", ").unwrap_or((cell.answer, ""));
    for call in cell.calls {
        let before = upstream.requests().len();
        let found = send(*call);
        let requests = upstream.requests();
        let passed = requests.len() - before;
        if let (true, Some(request)) = (wanted == "passes", requests.last()) {
            let told = format!("{} {}", request.head.start, request.text());
            let (wanted, text) = match cell.arrives.strip_prefix('!') {
                Some(text) => (false, text),
                None => (true, cell.arrives),
            };
            if told.contains(text) != wanted {
                faults.push(format!(
                    "{call:?} arrived as {told}, not with {}",
                    cell.arrives
                ));
            }
        }
        if found != wanted || passed != usize::from(wanted == "passes") {
            faults.push(format!(
                "{call:?}: {found}, not {wanted}; {passed} calls went on"
            ));
        }
    }
}

#[test]
fn bad_input_gets_what_the_reference_table_says_and_goes_no_further() {
    let (old, new) = (Upstream::serving(|_| json("1")), saying(r#""result":1"#));
    let to_rest = before_rest(&old, ROUTES);
    // Else the other paths of an RPC upstream alone pass through to it.
    let to_rpc = Proxy::start(&format!(
        "unrouted = \"reject\"\n{}{ROUTES}",
        rpc_only(&new)
    ));
    let mut faults = Vec::new();
    for row in rows() {
        expect(
            &row.rest,
            &new,
            |call| rest_answer(&send_rest(&to_rpc, call)),
            &mut faults,
        );
        expect(
            &row.rpc,
            &old,
            |call| rpc_answer(&send_rpc(&to_rest, call)),
            &mut faults,
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_docs_have_the_reference_table_as_it_is() {
    let docs = include_str!("../../docs/reference/failures.md");
    let (_, section) = docs.split_once("## Bad input\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .collect();
    let rows = rows().map(|row| {
        format!(
            "| {} | {} | {} | {} |",
            row.what, row.place, row.rest.answer, row.rpc.answer
        )
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(lines, rows, "the table should be:\n{}", rows.join("\n"));
}
