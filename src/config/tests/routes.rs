//! The keys of routes and of sets of outcomes.

use serde_json::json;

use super::Fixture;
use crate::config::raw::{RawRoute, RawSchema};
use dualgauge_model::outcome::RpcReplySource;
use dualgauge_model::route::{Example, ExampleWay, Extra};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

const RICH: &str = r#"
[[route]]
name = "trainers.put"
rest = "PUT /trainers/{id}"
rpc = "tools/call"
query = { "page size" = "{size:integer?}", a = 1 }
headers = { x-tenant = "{tenant}", accept = true }
params = {
  name = "put_coach",
  arguments = { id = "{id}", z = 1, a = [2.0, -0.5, 1e300, true, "{_:null}"] },
  "..." = "{others}",
}
body = ["*", { b = "{b}", a = "{a}" }]
extra = "reject"
from = "rest"
notify = true
lossy = "z is fixed"
outcomes = ["common", "own"]
schema = { params = { type = "object", required = ["id"], properties = { id = { pattern = "^[a-z]{2}$" } } } }

[[route.outcome]]
rest = { status = [404, "4xx"], headers = { location = "/x/{id}" }, text = "gone: {m}" }
rpc = { error = { code = "{code:integer}", message = "{m}", data = {} } }
lossy = "the code"

[[route.outcome]]
rest = { status = 200, body = "{_}" }
rpc.result.isError = false

[[route.example]]
way = "rpc"
rest = { call = "PUT /trainers/7?a={}", headers = { x-tenant = "{t}" }, body = [{ b = "{{", a = "{_:null}" }] }
rpc = { method = "tools/call", params = { z = 1, a = "}}" } }
reply = {
  rest = { status = 404, headers = { location = "/x/7" }, text = "gone: {x}" },
  rpc = { error = { code = -3, message = "x{{y}}", data = [] } },
}
[[route.example]]
rest.call = "PUT /trainers/8"
rpc.method = "tools/call"
reply = { rest = { status = 200, body = {} }, rpc = { result = "{_:null}" } }

[[outcomes.own]]
rest.status = 400
rpc.error.code = -1
[[outcomes.common]]
rest.status = 201
rpc.result = {}
[[outcomes.common]]
rest.status = 202
rpc.result = 1
"#;

fn text(text: &str) -> SourceTree {
    SourceTree::Text(text.to_owned())
}

fn literal(text: &str) -> SourceTree {
    SourceTree::Literal(json_of(text))
}

fn json_of(text: &str) -> Json {
    Json::parse(text.to_owned().into(), 9).unwrap()
}

fn named<const N: usize>(members: [(&str, SourceTree); N]) -> Vec<(String, SourceTree)> {
    members.map(|(name, tree)| (name.to_owned(), tree)).into()
}

fn route(text: &str) -> RawRoute {
    Fixture::new(text).config().routes.remove(0)
}

#[test]
fn patterns_are_read_as_they_are_written_members_in_order() {
    let route = route(RICH);
    let query = [("page size", text("{size:integer?}")), ("a", literal("1"))];
    assert_eq!(route.query, named(query));
    let headers = [("x-tenant", text("{tenant}")), ("accept", literal("true"))];
    assert_eq!(route.headers, named(headers));
    let list = vec![
        literal("2.0"),
        literal("-0.5"),
        literal("1e300"),
        literal("true"),
        text("{_:null}"),
    ];
    let arguments = [
        ("id", text("{id}")),
        ("z", literal("1")),
        ("a", SourceTree::List(list)),
    ];
    let params = [
        ("name", text("put_coach")),
        ("arguments", SourceTree::Table(named(arguments))),
        ("...", text("{others}")),
    ];
    assert_eq!(route.params, Some(SourceTree::Table(named(params))));
    let each = SourceTree::Table(named([("b", text("{b}")), ("a", text("{a}"))]));
    assert_eq!(route.body, Some(SourceTree::List(vec![text("*"), each])));
}

#[test]
fn the_words_of_a_route_are_read() {
    let route = route(RICH);
    assert_eq!(route.extra.unwrap().value, Extra::Reject);
    assert_eq!(route.from.unwrap().value, Side::Rest);
    assert!(route.notify.unwrap().value);
    assert_eq!(route.lossy.unwrap().value, "z is fixed");
    let sets = route.sets.iter().map(|set| (&*set.value, &*set.key));
    let expected = [
        ("common", "route[0].outcomes[0]"),
        ("own", "route[0].outcomes[1]"),
    ];
    assert_eq!(sets.collect::<Vec<_>>(), expected);
    let schema = route.schema.params.unwrap();
    assert_eq!(
        schema.value,
        RawSchema::Written(json!({
            "type": "object",
            "required": ["id"],
            "properties": { "id": { "pattern": "^[a-z]{2}$" } },
        }))
    );
    assert_eq!(schema.key, "route[0].schema.params");
    assert_eq!(route.schema.result, None);
}

#[test]
fn outcomes_are_read_under_a_route_and_under_a_name() {
    let config = Fixture::new(RICH).config();
    let [gone, tool] = config.routes[0].rows.as_slice() else {
        panic!("two rows");
    };
    assert_eq!(
        (&*gone.key, gone.origin, gone.lossy.as_deref()),
        ("route[0].outcome[0]", 0, Some("the code"))
    );
    assert_eq!(
        gone.rest.status,
        SourceTree::List(vec![literal("404"), text("4xx")])
    );
    assert_eq!(gone.rest.headers, named([("location", text("/x/{id}"))]));
    assert_eq!(
        (gone.rest.body.as_ref(), gone.rest.text.as_deref()),
        (None, Some("gone: {m}"))
    );
    let error = RpcReplySource::Error {
        code: text("{code:integer}"),
        message: Some(text("{m}")),
        data: Some(SourceTree::Table(Vec::new())),
    };
    assert_eq!(gone.rpc, error);
    assert_eq!(tool.rest.body, Some(text("{_}")));
    let is_error = SourceTree::Table(named([("isError", literal("false"))]));
    assert_eq!(tool.rpc, RpcReplySource::Result(is_error));

    let sets = config.sets.iter().map(|set| {
        let keys = set.rows.iter().map(|row| row.key.as_str());
        (set.name.value.as_str(), keys.collect::<Vec<_>>())
    });
    assert_eq!(
        sets.collect::<Vec<_>>(),
        [
            ("common", vec!["outcomes.common[0]", "outcomes.common[1]"]),
            ("own", vec!["outcomes.own[0]"]),
        ]
    );
}

#[test]
fn an_example_holds_values_and_a_single_set_needs_no_list() {
    let route = route(RICH);
    let [both_sides, short] = route.examples.as_slice() else {
        panic!("two examples");
    };
    let Example {
        key,
        way,
        call,
        headers,
        body,
        method,
        params,
        rpc_headers,
        reply,
    } = both_sides;
    assert!(rpc_headers.is_empty());
    assert_eq!(
        (&**key, *way),
        ("route[0].example[0]", ExampleWay::From(Side::Rpc))
    );
    assert_eq!((&**call, &**method), ("PUT /trainers/7?a={}", "tools/call"));
    assert_eq!(*headers, [("x-tenant".to_owned(), "{t}".to_owned())]);
    assert_eq!(*body, Some(json_of(r#"[{"b":"{","a":null}]"#)));
    assert_eq!(*params, Some(json_of(r#"{"z":1,"a":"}"}"#)));
    let reply = reply.as_ref().unwrap();
    assert_eq!(
        (reply.status, reply.text.as_deref()),
        (404, Some("gone: {x}"))
    );
    assert_eq!(reply.headers, [("location".to_owned(), "/x/7".to_owned())]);
    let error = json_of(r#"{"code":-3,"message":"x{y}","data":[]}"#);
    assert_eq!((&reply.body, &reply.rpc), (&None, &Err(error)));

    assert_eq!(short.way, ExampleWay::Both);
    let reply = short.reply.as_ref().unwrap();
    assert_eq!(reply.body, Some(json_of("{}")));
    assert_eq!(reply.rpc, Ok(json_of("null")));

    let one = "[[route]]\nname = 'a'\nrest = 'GET /'\nrpc = 'a'\noutcomes = 'common'\n";
    let route = self::route(one);
    assert_eq!(route.sets[0].key, "route[0].outcomes");
}

const WRONG: &str = r#"
[[route]]
name = "a"
rest = "GET /"
rpc = "a"
params = { at = 1979-05-27, far = [1, inf], no = { x = nan } }
query = ["q"]
headers = 3
extra = "kary"
from = "frame"
notify = "yes"
lossy = true
outcomes = []
schema = { params = 3, reslt = {} }
example = {}
frame = {}
silence = "1s"
event = 1
affinity = 1
deprecated = {}
bodi = {}
[[route.outcome]]
rest = { headers = 1, text = 2, stat = 200 }
rpc = { result = 1, error = { code = 1 } }
[[route.outcome]]
rest = "200"
rpc = { error = { message = 07:32:00 } }
frame = {}
lossi = ""
[[route.outcome]]
rest.status = 200
rpc = {}

[[route]]
name = "b"
rest = "GET /b"
rpc = "b"
from = "rst"
outcomes = 3
[[route.example]]
way = "all"
rest = { call = "", headers = { a = 1 }, body = { "a b" = ["{x}"] } }
rpc = { methd = "a", params = "{" }
reply = {
  rest = { status = 99, text = "", body = {} },
  rpc = {
    error = { code = "1", message = 2 }, result = {} },
}
[[route.example]]
rest.call = "GET /b"
rpc.method = "b"
reply = { rest = { status = 600 }, rpc = { error = {} } }

[outcomes]
one = 1
two = {}
three = ["row"]
[[outcomes.four]]
"#;

const EVERY_WRONG: &str = r#"4: route[0].rest: `rest` and `frame` exclude each other; write one
6: route[0].params.at: a date or time is not a JSON value; write it as a string
6: route[0].params.far[1]: JSON has no infinite number and no `nan`; write a finite one
6: route[0].params.no.x: JSON has no infinite number and no `nan`; write a finite one
7: route[0].query: `query` and `frame` exclude each other; write one
7: route[0].query: a list is not a table
8: route[0].headers: `headers` and `frame` exclude each other; write one
8: route[0].headers: the number `3` is not a table
9: route[0].extra: `kary` is not allowed here; write `drop`, `reject` or `carry`
11: route[0].notify: the string `yes` is not a boolean; write `true` or `false`
12: route[0].lossy: the boolean `true` is not a string
13: route[0].outcomes: the list is empty; write at least one
14: route[0].schema.params: the number `3` is not a schema; write a table, JSON as a text, or the name of a file
14: route[0].schema.reslt: unknown key
  hint: did you mean `result`?
15: route[0].example: a table is not a list of tables; write `[[route.example]]`
18: route[0].event: unknown key
19: route[0].affinity: the number `1` is not a string
20: route[0].deprecated: `since` is missing
21: route[0].bodi: unknown key
  hint: did you mean `body`?
23: route[0].outcome[0].rest: `status` is missing
23: route[0].outcome[0].rest.headers: the number `1` is not a table
23: route[0].outcome[0].rest.stat: unknown key
23: route[0].outcome[0].rest.text: the number `2` is not a string
24: route[0].outcome[0].rpc: `result` and `error` exclude each other; write one
26: route[0].outcome[1].rest: the string `200` is not a table
27: route[0].outcome[1].rpc.error: `code` is missing
27: route[0].outcome[1].rpc.error.message: a date or time is not a JSON value; write it as a string
28: route[0].outcome[1].frame: `frame` and `rest` exclude each other; write one
29: route[0].outcome[1].lossi: unknown key
  hint: did you mean `lossy`?
32: route[0].outcome[2].rpc: `result` or `error` is missing
38: route[1].from: `rst` is not allowed here; write `rest`, `rpc`, `frame` or `old`
  hint: did you mean `rest`?
39: route[1].outcomes: the number `3` is not a string
41: route[1].example[0].way: `all` is not allowed here; write `both`, `rest` or `rpc`
42: route[1].example[0].rest.body."a b"[0]: a value has no holes; write `{{` and `}}` for braces, and `{_:null}` for null
42: route[1].example[0].rest.call: the string is empty; write at least one character
42: route[1].example[0].rest.headers: the header `a` of an example is not a string
43: route[1].example[0].rpc: `method` is missing
43: route[1].example[0].rpc.methd: unknown key
  hint: did you mean `method`?
43: route[1].example[0].rpc.params: `{` has no closing brace; write `{{` for a literal one
45: route[1].example[0].reply.rest: `body` is JSON, `text` is not; write one of them
45: route[1].example[0].reply.rest.status: the number `99` is not a whole number from 200 to 599
46: route[1].example[0].reply.rpc: `result` and `error` exclude each other; write one
47: route[1].example[0].reply.rpc.error.code: the string `1` is not a whole number from -9223372036854775808 to 9223372036854775807
47: route[1].example[0].reply.rpc.error.message: the message of an error must be a string
52: route[1].example[1].reply.rest.status: the number `600` is not a whole number from 200 to 599
52: route[1].example[1].reply.rpc.error: `code` is missing
52: route[1].example[1].reply.rpc.error: `message` is missing
55: outcomes.one: the number `1` is not a list of tables; write `[[outcomes.one]]`
56: outcomes.two: a table is not a list of tables; write `[[outcomes.two]]`
57: outcomes.three[0]: the string `row` is not a table
58: outcomes.four[0]: `rpc` is missing"#;

#[test]
fn every_invalid_value_is_reported_at_its_line() {
    assert_eq!(
        Fixture::new(WRONG)
            .problems()
            .replace("dualgauge.toml:", ""),
        EVERY_WRONG
    );
}

#[test]
fn a_set_is_of_one_file() {
    let set = "[[outcomes.common]]\nrest.status = 200\nrpc.result = 1\n";
    let fixture = Fixture::new("include = ['a.toml', 'b.toml']\n[outcomes]\nother = []\n")
        .file("a.toml", set)
        .file(
            "b.toml",
            format!("\n{set}{}", set.replace("common", "other")),
        );
    assert_eq!(
        fixture.problems(),
        "b.toml:2: outcomes.common: the set is also defined at a.toml:1; write all its rows in one file, or give it another name\n\
         b.toml:5: outcomes.other: the set is also defined at dualgauge.toml:3; write all its rows in one file, or give it another name"
    );
}

#[test]
fn a_set_of_an_included_file_keeps_its_lines() {
    let route = "[[route]]\nname = 'a'\nrest = 'GET /'\nrpc = 'a'\noutcomes = 'common'\n";
    let fixture = Fixture::new(&format!("include = ['r.toml']\n{route}")).file(
        "r.toml",
        "\n[[outcomes.common]]\nrest.status = 200\nrpc.result = 1\n",
    );
    let config = fixture.config();
    let [set] = config.sets.as_slice() else {
        panic!("one set");
    };
    let place = |key: &str| {
        let place = config.places.nearest(key).to_string();
        place.replace(&format!("{}/", fixture.path("").display()), "")
    };
    assert!(set.name.place.to_string().ends_with("r.toml:2"));
    assert!(place("outcomes.common[0].rpc.result.deeper[3]").ends_with("r.toml:4"));
}

#[test]
fn a_schema_file_is_relative_to_the_file_that_names_it() {
    let route = |name: &str, schema: &str| {
        format!(
            "[[route]]\nname = '{name}'\nrest = 'GET /{name}'\nrpc = '{name}'\nschema = {schema}\n"
        )
    };
    let main = route(
        "a",
        "{ params = 'schemas/a.json', result = 'routes/b.json' }",
    );
    let fixture = Fixture::new(&format!("include = ['routes/*.toml']\n{main}"))
        .file("routes/r.toml", route("b", "{ result = 'b.json' }"))
        .file("schemas/a.json", r#"{"type":"object"}"#)
        .file("routes/b.json", "true");
    let config = fixture.config();
    let [a, b] = config.routes.as_slice() else {
        panic!("two routes");
    };
    let params = a.schema.params.as_ref().unwrap();
    assert_eq!(params.value, RawSchema::Written(json!({"type": "object"})));
    let of_b = b.schema.result.as_ref().unwrap();
    assert_eq!(of_b.value, RawSchema::Written(json!(true)));
    // A reload looks at all of them.
    let files = [
        "dualgauge.toml",
        "routes/r.toml",
        "routes/b.json",
        "schemas/a.json",
    ];
    assert_eq!(config.files, files.map(|name| fixture.path(name)));

    let main = route("a", "{ params = 'none.json', result = 'bad.json' }");
    let fixture = Fixture::new(&main).file("bad.json", "{\n \"a\": }");
    let folder = fixture.path("").display().to_string();
    assert_eq!(
        fixture.problems().replace(&folder, ""),
        "dualgauge.toml:5: route[0].schema.params: `none.json` cannot be read: No such file or directory (os error 2)\n\
         dualgauge.toml:5: route[0].schema.result: `bad.json` is not JSON: expected value at line 2 column 7"
    );
}

const SUBSCRIBING: &str = r#"
[[route]]
name = "heads"
rest = "GET /heads"
rpc = "eth_subscribe"
params = ["newHeads"]
subscription.notification = { method = "eth_subscription", params = { subscription = "{id}", result = "{event}" } }
subscription.unsubscribe = { method = "eth_unsubscribe" }
"#;

#[test]
fn a_subscription_has_the_places_of_its_id_and_its_events() {
    let source = route(SUBSCRIBING).subscription.unwrap().value;
    assert_eq!(source.method, "eth_subscription");
    assert_eq!(source.unsubscribe, "eth_unsubscribe");
    let params = [("subscription", text("{id}")), ("result", text("{event}"))];
    assert_eq!(source.params, Some(SourceTree::Table(named(params))));
    assert_eq!((source.result, source.unsubscribe_params), (None, None));
}
