//! Routes beyond the short form.

use super::{BOTH, plan, problems};

#[test]
fn a_route_of_every_kind_of_pattern_becomes_part_of_the_plan() {
    let plan = plan(&format!(
        "{BOTH}{}",
        r#"
[[route]]
name = "coaches.get"
rest = "GET /api/coaches/{id}"
rpc = "tools/call"
params = { name = "get_coach", arguments = { coach_id = "{id}" } }
outcomes = "common"
schema = { params = { required = ["name"] } }
[[route.outcome]]
rest = { status = 200, body = "{coach}" }
rpc = { result = {
  structuredContent = { coach = "{coach}" },
  content = [{ type = "text", text = "{>coach:json}" }],
} }
[[route.outcome]]
rest = { status = 404, body = { code = "ResourceNotFound", message = "{message}", timestamp = "{>now}" } }
rpc = { error = { code = -32601, message = "{message}" } }
[[route.example]]
rest = { call = "GET /api/coaches/7" }
rpc = { method = "tools/call", params = { name = "get_coach", arguments = { coach_id = "7" } } }
reply = { rest = { status = 200, body = { id = "7" } }, rpc = { result = { structuredContent = { coach = { id = "7" } } } } }
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
    let keys = |rows: &[crate::domain::outcome::Row]| {
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

/// Begins at line 7, behind [`BOTH`].
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
rest = { status = 200, body = "{coach}" }
rpc = { result = {
  a = { coach = "{coach}" },
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
fn every_fault_of_patterns_sets_and_schemas_is_told_at_its_line() {
    let expected = [
        r#"15: route[0].params.arguments."a b": `{id` has no closing brace; write `{{` for a literal one"#,
        r#"19: route[0].query."x y": `}` without `{`; write `}}` for a literal one"#,
        "22: route[0].headers.Host: header names are written in lower case: `host`",
        "24: route[0].outcomes[0]: there is no set `comon`; write `[[outcomes.NAME]]` rows, or name another",
        "  hint: did you mean `common`?",
        "32: route[1].outcome[0].rpc: `{>no}` writes what nothing reads: no hole `no` is shared by both sides, and the call has none",
        "41: route[2].schema.params: is no JSON Schema: at `/type`, \"integr\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        "42: route[2].schema.result: `$ref` leads to `x.json`, out of the schema; write what it names under `$defs`, and `#/$defs/NAME`",
        "45: outcomes.common[0].rest: `{>id}` writes what nothing reads: no hole `id` is shared by both sides, and the call has none (with the route `c`)",
        "51: outcomes.common[1].rest.status: 99 is no status of an answer; write one from 200 to 599",
        "53: outcomes.never: no route names the set `never`; name it by `outcomes`, or remove it",
    ];
    let text = format!("{BOTH}{EVERY_FAULT}");
    assert_eq!(problems(&text), expected.join("\n"));
}
