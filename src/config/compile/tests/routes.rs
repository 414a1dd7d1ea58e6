//! Routes beyond the short form.

use serde_json::json;

use super::{BOTH, NEW, ROUTE, plan, problems};
use dualgauge_model::document::{ApiInfo, openapi};
use dualgauge_patterns::side::Side;

#[test]
fn a_route_of_every_kind_of_pattern_becomes_part_of_the_plan() {
    let plan = plan(&format!(
        "{BOTH}{}",
        r#"
[[route]]
name = "trainers.get"
rest = "GET /api/trainers/{id}"
rpc = "tools/call"
params = { name = "get_trainer", arguments = { trainer_id = "{id}" } }
outcomes = "common"
schema = { params = { required = ["name"] } }
[[route.outcome]]
rest = { status = 200, body = "{trainer}" }
rpc = { result = {
  structuredContent = { trainer = "{trainer}" },
  content = [{ type = "text", text = "{>trainer:json}" }],
} }
[[route.outcome]]
rest = { status = 404, body = { code = "NothingThere", message = "{message}", timestamp = "{>now}" } }
rpc = { error = { code = -32601, message = "{message}" } }
[[route.example]]
rest = { call = "GET /api/trainers/7" }
rpc = { method = "tools/call", params = { name = "get_trainer", arguments = { trainer_id = "7" } } }
reply = { rest = { status = 200, body = { id = "7" } }, rpc = { result = { structuredContent = { trainer = { id = "7" } } } } }
[[route]]
name = "b"
rest = "GET /b"
rpc = "b"
outcomes = ["common"]
[[outcomes.common]]
rest = { status = 422, body = { detail = "{detail}" } }
rpc = { error = { code = -32602, message = "{detail}" } }
"#
    ));
    let [coach, other] = plan.routes.routes() else {
        panic!("two routes");
    };
    let keys = |rows: &[dualgauge_model::outcome::OutcomeRow]| {
        let rows = rows.iter().map(|row| (row.key.clone(), row.origin));
        rows.collect::<Vec<_>>()
    };
    assert_eq!(
        keys(coach.outcomes.rows()),
        [
            ("route[0].outcome[0]".to_owned(), 0),
            ("route[0].outcome[1]".to_owned(), 0),
            ("outcomes.common[0]".to_owned(), 1),
        ]
    );
    assert_eq!(
        keys(other.outcomes.rows()),
        [("outcomes.common[0]".to_owned(), 1)]
    );
    assert_eq!(coach.examples.len(), 1);
    assert!(coach.schema.params.is_some() && coach.schema.result.is_none());
}

/// Begins at line 7, after [`BOTH`].
const EVERY_FAULT: &str = r#"
[[route]]
name = "a"
rest = "GET /a/{id}"
rpc = "a"
params = {
  id = "{id}",
  arguments = { 
    "a b" = "{id",
  },
}
query = {
   "x y" = "}",
}
headers = { 
   Host = "1",
}
outcomes = ["comon", "common"]
[[route]]
name = "b"
rest = "GET /b/{id}"
rpc = "b"
outcomes = ["common"]
[[route.outcome]]
rest = { status = 200, body = "{trainer}" }
rpc = { result = {
  a = { trainer = "{trainer}" },
  content = [{ type = "text", text = "{>no:json}" }],
} }
[[route]]
name = "c"
rest = "GET /c"
rpc = "c"
outcomes = ["common"]
schema.params.type = "integr"
schema.result = { allOf = [{
   "$ref" = "x.json" }] }
[[outcomes.common]]
rest = { status = 422, body = { 
  detail = "{>id}",
  code = "{x}",
 } }
rpc = { error = { code = -32602, message = "{x}" } }
[[outcomes.common]]
rest = { status = 99 }
rpc = { error = { code = -32602, message = "{x}" } }
[[outcomes.never]]
rest = { status = 99 }
rpc = { error = { code = -32602, message = "{x}" } }
"#;

#[test]
fn every_fault_of_patterns_sets_and_schemas_is_reported_at_its_line() {
    let expected = [
        r#"15: route[0].params.arguments."a b": `{id` has no closing brace; write `{{` for a literal one"#,
        r#"19: route[0].query."x y": `}` without `{`; write `}}` for a literal one"#,
        "22: route[0].headers.Host: header names are written in lower case: `host`",
        "24: route[0].outcomes[0]: there is no set `comon`; write `[[outcomes.NAME]]` rows, or name another",
        "  hint: did you mean `common`?",
        "32: route[1].outcome[0].rpc: `{>no}` has no value to write: no hole `no` is on both sides, and the call has none",
        "41: route[2].schema.params: is not a JSON Schema: at `/type`, \"integr\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        "42: route[2].schema.result: `$ref` points to `x.json`, outside the schema; copy its target to `$defs` and write `#/$defs/NAME`",
        "45: outcomes.common[0].rest: `{>id}` has no value to write: no hole `id` is on both sides, and the call has none (with the route `c`)",
        "51: outcomes.common[1].rest.status: 99 is not a response status; write one from 200 to 599",
    ];
    let text = format!("{BOTH}{EVERY_FAULT}");
    assert_eq!(problems(&text), expected.join("\n"));
}

const SHORT: &str = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";

#[test]
fn a_row_of_a_route_replaces_one_of_a_set() {
    let row = |code: i32| {
        format!(
            "rest = {{ status = 404, body = {{ code = '{{code}}' }} }}\nrpc = {{ error = {{ code = {code}, message = '{{code}}' }} }}\n"
        )
    };
    let used = plan(&format!(
        "{BOTH}{SHORT}outcomes = 'common'\n[[route.outcome]]\n{}[[outcomes.common]]\n{}",
        row(-1),
        row(-1)
    ));
    assert_eq!(used.routes.route(0).outcomes.order(Side::Rest), [0, 1]);
    let twice = format!(
        "{BOTH}{SHORT}[[route.outcome]]\n{}[[route.outcome]]\n{}",
        row(-1),
        row(-1)
    );
    assert_eq!(
        problems(&twice),
        "14: route[0].outcome[1]: the row is never used: route[0].outcome[0] matches everything that it matches, on both sides"
    );
}

#[test]
fn overlapping_rows_of_a_set_are_reported_once_for_all_its_routes() {
    let other = SHORT.replace("'a'", "'b'").replace("/a", "/b");
    let main = format!(
        "{BOTH}{SHORT}outcomes = 'common'\n{other}outcomes = 'common'\n\
         [[outcomes.common]]\nrest = {{ status = 400, body = {{ a = '{{m}}' }} }}\nrpc.error = {{ code = 1, message = '{{m}}' }}\n\
         [[outcomes.common]]\nrest = {{ status = 400, body = {{ b = '{{m}}' }} }}\nrpc.error = {{ code = 2, message = '{{m}}' }}\n"
    );
    assert_eq!(
        problems(&main),
        "20: outcomes.common[1]: it matches answers of rest servers that outcomes.common[0] matches as well, and neither is more specific; name a member or a text that distinguishes them, or write `name` in one row and `after` in the other"
    );
}

#[test]
fn a_set_is_named_once() {
    let main = format!(
        "{BOTH}{SHORT}outcomes = [\n'common',\n'common']\n[[outcomes.common]]\nrest.status = 201\nrpc.result = 1\n"
    );
    assert_eq!(
        problems(&main),
        "13: route[0].outcomes[1]: the set `common` is named twice"
    );
}

#[test]
fn a_route_entered_from_one_side_needs_no_upstream_for_the_other() {
    let main = format!("rollout.default.rpc = 'translate'\n{NEW}{SHORT}from = 'rest'\n");
    assert_eq!(plan(&main).routes.route(0).from, Some(Side::Rest));
    let entered = format!("rollout.default.rpc = 'translate'\n{NEW}{SHORT}from = 'rpc'\n");
    assert!(
        problems(&entered)
            .starts_with("1: rollout.default.rpc: `translate` sends calls of the `rpc` side")
    );
}

#[test]
fn declared_failures_document_a_route() {
    let route = |failures: &str| format!("{BOTH}{ROUTE}schema.failures = {failures}\n");
    let plan = plan(&route(
        "{ 404 = { description = 'gone' }, 5XX = { schema = { '$ref' = '#/schemas/f' } } }\n[schemas.f]\ntype = 'object'",
    ));
    let found = &plan.routes.routes()[0].docs.failures;
    let statuses: Vec<&str> = found.iter().map(|one| one.status.as_str()).collect();
    assert_eq!(statuses, ["404", "5XX"]);
    assert_eq!(found[0].description.as_deref(), Some("gone"));
    assert!(found[1].schema.is_some());

    let wrong = "{ 200 = {}, 4XX = { text = 'x' }, 404 = { schema = { '$ref' = '#/schemas/no' } }, 500 = 1, 501 = { schema = true } }";
    for status in ["+404", "0500", "4040", "40", "4xx"] {
        let found = problems(&route(&format!("{{ '{status}' = {{}} }}")));
        let words = format!("`{status}` is not a failure; write a status from 400 to 599");
        assert!(found.contains(&words), "{found}");
    }
    let found = problems(&route(wrong));
    assert_eq!(
        found.replace("11: route[0].schema.failures: ", ""),
        "`200` is not a failure; write a status from 400 to 599, `4XX`, `5XX` or `default`\n\
         `404`: `$ref: #/schemas/no` has no target; write the schema `no` in `[schemas]`\n\
         `4XX` has the unknown key `text`; known: description, content_type, schema, headers\n\
         `500` is not a table; write `{ description = \"…\", schema = { … } }`\n\
         `501.schema` is not a table"
    );
}

#[test]
fn declared_successes_document_a_route() {
    let route = |successes: &str| format!("{BOTH}{ROUTE}schema.successes = {successes}\n");
    let plan = plan(&route(
        "{ 201 = { description = 'made', headers = { ETag = { description = 'version', required = true, schema = { type = 'string' } } } } }\nbody_description = 'all of it'",
    ));
    let docs = &plan.routes.routes()[0].docs;
    assert_eq!(docs.body.as_deref(), Some("all of it"));
    let [made] = docs.successes.as_slice() else {
        panic!("{docs:?}");
    };
    assert_eq!(made.status, "201");
    assert_eq!(made.description.as_deref(), Some("made"));
    let [header] = made.headers.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(header.name, "etag");
    assert!(header.is_required && header.schema.is_some());
    let declared = "{ 200 = { schema = { type = 'integer' } } }";
    for (more, expected) in [
        ("", json!({ "type": "integer" })),
        (
            "schema.result = { type = 'string' }\n",
            json!({ "type": "string" }),
        ),
    ] {
        let plan = self::plan(&format!("{}{more}", route(declared)));
        let document = openapi(plan.routes.routes(), &ApiInfo::default());
        let found = document["paths"].as_object().unwrap().values().next();
        let operation = found.and_then(|item| item.as_object()?.values().next());
        let content = &operation.unwrap()["responses"]["200"]["content"];
        assert_eq!(
            content["application/json"]["schema"], expected,
            "{document}"
        );
    }

    let found = problems(&route(
        "{ 404 = {}, 2XX = {}, 200 = { headers = 1 }, 201 = { headers = { 'a b' = {} } }, 202 = { headers = { a = { no = 1 } } }, 203 = { headers = { a = { required = 'yes' } } } }",
    ));
    assert_eq!(
        found.replace("11: route[0].schema.successes: ", ""),
        "`200.headers` is not a table\n\
         `201.headers.a b` is not the name of a header\n\
         `202.headers.a` has the unknown key `no`; known: description, required, schema\n\
         `203.headers.a.required` is neither true nor false\n\
         `2XX` is not a success; write a status from 200 to 299\n\
         `404` is not a success; write a status from 200 to 299"
    );
}

#[test]
fn no_prefix_captures_headers_that_the_listener_removes_or_sets() {
    let route = "name = 'a'\nrest = 'GET /a'\nheaders = { 'x-user-...' = '{u}' }\nrpc = 'a'\nparams = { u = '{u}' }\n";
    let config =
        |listen: &str, from: &str| format!("{BOTH}[[route]]\n{route}{from}\n[listen]\n{listen}\n");
    for (listen, named) in [
        (
            "remove_headers = ['X-User_Role']",
            "`x-user-role` of `listen.remove_headers[0]`",
        ),
        (
            "remove_headers = ['x-u*']",
            "`x-u*` of `listen.remove_headers[0]`",
        ),
        (
            "set_headers = { x-user_client = '{client}' }",
            "`x-user-client` of `listen.set_headers.x-user_client`",
        ),
    ] {
        let found = problems(&config(listen, ""));
        let words = format!(
            "route[0].headers.\"x-user-...\": it captures {named}, so an RPC client could write it"
        );
        assert!(found.contains(&words), "{found}");
        plan(&config(listen, "from = 'rest'"));
    }
    plan(&config(
        "remove_headers = ['x-users-*', 'x-user-']\nset_headers = { x-client = 'a' }",
        "",
    ));
}
