//! The keys of routes and of sets of outcomes.

use serde_json::json;

use super::Fixture;
use crate::config::raw::{RawRoute, RawSchema};
use crate::domain::json::Json;
use crate::domain::outcome::RpcReplySource;
use crate::domain::pattern::Tree;
use crate::domain::route::{Example, Extra, Notify, Way};
use crate::domain::side::Side;

const RICH: &str = r#"
[[route]]
name = "coaches.put"
rest = "PUT /coaches/{id}"
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
rest = { call = "PUT /coaches/7?a={}", headers = { x-tenant = "{t}" }, body = [{ b = "{{", a = "{_:null}" }] }
rpc = { method = "tools/call", params = { z = 1, a = "}}" } }
reply = {
  rest = { status = 404, headers = { location = "/x/7" }, text = "gone: {x}" },
  rpc = { error = { code = -3, message = "x{{y}}", data = [] } },
}
[[route.example]]
rest.call = "PUT /coaches/8"
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

fn text(text: &str) -> Tree {
    Tree::Text(text.to_owned())
}

fn literal(text: &str) -> Tree {
    Tree::Literal(json_of(text))
}

fn json_of(text: &str) -> Json {
    Json::parse(text.to_owned().into(), 9).unwrap()
}

fn named<const N: usize>(members: [(&str, Tree); N]) -> Vec<(String, Tree)> {
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
        ("a", Tree::List(list)),
    ];
    let params = [
        ("name", text("put_coach")),
        ("arguments", Tree::Table(named(arguments))),
        ("...", text("{others}")),
    ];
    assert_eq!(route.params, Some(Tree::Table(named(params))));
    let each = Tree::Table(named([("b", text("{b}")), ("a", text("{a}"))]));
    assert_eq!(route.body, Some(Tree::List(vec![text("*"), each])));
}

#[test]
fn the_words_of_a_route_are_read() {
    let route = route(RICH);
    assert_eq!(route.extra.unwrap().value, Extra::Reject);
    assert_eq!(route.from.unwrap().value, Side::Rest);
    assert_eq!(route.notify.unwrap().value, Notify::Yes);
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
        Tree::List(vec![literal("404"), text("4xx")])
    );
    assert_eq!(gone.rest.headers, named([("location", text("/x/{id}"))]));
    assert_eq!(
        (gone.rest.body.as_ref(), gone.rest.text.as_deref()),
        (None, Some("gone: {m}"))
    );
    let error = RpcReplySource::Error {
        code: text("{code:integer}"),
        message: Some(text("{m}")),
        data: Some(Tree::Table(Vec::new())),
    };
    assert_eq!(gone.rpc, error);
    assert_eq!(tool.rest.body, Some(text("{_}")));
    let is_error = Tree::Table(named([("isError", literal("false"))]));
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
        reply,
    } = both_sides;
    assert_eq!(
        (&**key, *way),
        ("route[0].example[0]", Way::From(Side::Rpc))
    );
    assert_eq!((&**call, &**method), ("PUT /coaches/7?a={}", "tools/call"));
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

    assert_eq!(short.way, Way::Both);
    let reply = short.reply.as_ref().unwrap();
    assert_eq!(reply.body, Some(json_of("{}")));
    assert_eq!(reply.rpc, Ok(json_of("null")));

    let one = "[[route]]\nname = 'a'\nrest = 'GET /'\nrpc = 'a'\noutcomes = 'common'\n";
    let route = self::route(one);
    assert_eq!(route.sets[0].key, "route[0].outcomes");
}
