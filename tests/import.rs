//! `dualgauge import` on documents in files: whole drafts, that `check` passes them, and what is refused.

#![expect(
    clippy::unwrap_used,
    reason = "a program that cannot be started fails the test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What a run of the program left behind.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program in a folder, so that paths are short.
fn run_in(folder: &Path, arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .output()
        .unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// The draft and the report of documents in `tests/import`.
fn import(arguments: &[&str]) -> (String, String) {
    let run = run_in(&documents(), &[&["import"], arguments].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    (run.stdout, run.stderr)
}

/// What `import` says of a document that it refuses.
fn refused(name: &str, text: &str, option: &str) -> String {
    let folder = folder(&[(name, text)]);
    let run = run_in(folder.path(), &["import", option, name]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    run.stderr
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const MAIN: &str = r#"
include = ["routes.toml"]
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"
[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/rpc"
"#;

/// `check` has nothing against a draft.
fn assert_passes_check(draft: &str) {
    let folder = folder(&[("dualgauge.toml", MAIN), ("routes.toml", draft)]);
    let run = run_in(folder.path(), &["check", "--config", "dualgauge.toml"]);
    assert_eq!(run.code, Some(0), "{}\nof\n{draft}", run.stderr);
}

const PETSTORE: [&str; 4] = [
    "--openapi",
    "petstore.yaml",
    "--openrpc",
    "petstore-rpc.json",
];
const PETSTORE_REST: [&str; 2] = ["--openapi", "petstore.yaml"];
const PETSTORE_RPC: [&str; 2] = ["--openrpc", "petstore-rpc.json"];
const COACHES: [&str; 2] = ["--openapi", "coaches.json"];
const BY_POSITION: [&str; 2] = ["--openrpc", "by-position.json"];
const ALL: [&str; 8] = [
    "--openapi",
    "petstore.yaml",
    "--openapi",
    "coaches.json",
    "--openrpc",
    "petstore-rpc.json",
    "--openrpc",
    "by-position.json",
];

fn golden(name: &str, arguments: &[&str]) {
    let (draft, report) = import(arguments);
    insta::assert_snapshot!(name, format!("{draft}\n==== standard error\n{report}"));
}

#[test]
fn both_sides_of_a_pet_shop() {
    golden("import_pair", &PETSTORE);
}

#[test]
fn openapi_3_0_alone() {
    golden("import_openapi_3_0", &PETSTORE_REST);
}

#[test]
fn openapi_3_1_alone() {
    golden("import_openapi_3_1", &COACHES);
}

#[test]
fn openrpc_by_name_alone() {
    golden("import_openrpc", &PETSTORE_RPC);
}

#[test]
fn openrpc_by_position_alone() {
    golden("import_by_position", &BY_POSITION);
}

#[test]
fn check_passes_the_draft_of_both_sides() {
    assert_passes_check(&import(&PETSTORE).0);
}

#[test]
fn check_passes_the_draft_of_openapi_alone() {
    assert_passes_check(&import(&PETSTORE_REST).0);
    assert_passes_check(&import(&COACHES).0);
}

#[test]
fn check_passes_the_draft_of_openrpc_alone() {
    assert_passes_check(&import(&PETSTORE_RPC).0);
    assert_passes_check(&import(&BY_POSITION).0);
}

#[test]
fn check_passes_the_draft_of_everything_together() {
    assert_passes_check(&import(&ALL).0);
}

#[test]
fn check_passes_a_draft_in_the_short_form() {
    let api = r#"{"openapi":"3.0.0","paths":{"/pets/{id}":{"get":{"parameters":[
        {"name":"id","in":"path","required":true,"schema":{"type":"integer"}},
        {"name":"page[size]","in":"query","schema":{"type":"integer","default":5}}
    ]},"delete":{}},"/pets":{"post":{"requestBody":{"content":{"application/json":{}}}}}}}"#;
    let folder = folder(&[("api.json", api)]);
    let run = run_in(folder.path(), &["import", "--openapi", "api.json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let routes = run.stdout.lines().filter(|line| *line == "[[route]]");
    assert_eq!(routes.count(), 3, "{}", run.stdout);
    assert_passes_check(&run.stdout);
}

#[test]
fn an_existing_file_is_replaced_only_by_force() {
    let api = fs::read_to_string(documents().join("coaches.json")).unwrap();
    let folder = folder(&[("api.json", &api), ("routes.toml", "# mine\n")]);
    let routes = || fs::read_to_string(folder.path().join("routes.toml")).unwrap();
    let arguments = ["import", "--openapi", "api.json", "--output", "routes.toml"];
    let run = run_in(folder.path(), &arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("`--force`"), "{}", run.stderr);
    assert_eq!(routes(), "# mine\n");
    let run = run_in(folder.path(), &[&arguments[..], &["--force"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    assert!(routes().starts_with("#:schema ./routes.schema.json\n# "));
    assert!(routes().contains("[[route]]"));
    let schema = fs::read_to_string(folder.path().join("routes.schema.json")).unwrap();
    assert_eq!(
        schema,
        fs::read_to_string("config/schema/routes.schema.json").unwrap()
    );
}

#[test]
fn a_document_of_another_kind_is_refused() {
    let swagger = "swagger: '2.0'\npaths: {}\n";
    let openapi = r#"{"openapi": "3.1.0", "paths": {"/a": {}}}"#;
    let openrpc = r#"{"openrpc": "1.3.0", "methods": []}"#;
    let cases = [
        ("a.yaml", swagger, "--openapi"),
        ("a.json", openapi, "--openrpc"),
        ("a.json", openrpc, "--openapi"),
        ("a.json", openrpc, "--openrpc"),
        ("a.json", r#"{"openapi": "3.0.1"}"#, "--openapi"),
        ("a.yaml", "openapi: 4.0\npaths: {/a: {}}\n", "--openapi"),
        ("a.json", "[]", "--openapi"),
    ];
    let said = cases.map(|(name, text, option)| refused(name, text, option));
    insta::assert_snapshot!("import_kinds", said.concat());
}

#[test]
fn text_that_is_no_document_is_refused_with_its_line() {
    let cases = [
        ("a.json", "{\n  \"openapi\": \"3.0.0\",\n  oops\n}"),
        ("a.yaml", "openapi: 3.0.0\npaths:\n  /a: [\n"),
        ("a.yaml", "openapi: 3.0.0\nopenapi: 3.0.1\n"),
        ("a.json", "\n<!-- 1 -->\n<!DOCTYPE html>\n<html></html>\n"),
        ("docs", "<HTML lang=\"en\"><body>\n"),
    ];
    let said = cases.map(|(name, text)| refused(name, text, "--openapi"));
    insta::assert_snapshot!("import_no_document", said.concat());
}

#[test]
fn a_reference_that_leaves_the_document_leaves_out_its_operation() {
    let text = "openapi: 3.0.0\npaths:\n  /a:\n    $ref: 'pet.yaml#/Pet'\n  /b: {get: {}}\n";
    let folder = folder(&[("a.yaml", text)]);
    let run = run_in(folder.path(), &["import", "--openapi", "a.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("no route: 1\n  /a: `$ref: pet.yaml#/Pet` leaves the document"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("rest = \"GET /b\""), "{}", run.stdout);
    assert_passes_check(&run.stdout);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let run = run_in(&documents(), &["import", "--openapi", "none.json"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr
            .starts_with("error: `none.json` cannot be read\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn something_must_be_given() {
    for arguments in [
        &["import"][..],
        &["import", "--output", "routes.toml"],
        &[
            "import",
            "--method",
            "tools/list",
            "--openapi",
            "coaches.json",
        ],
        &["import", "--openapi", "coaches.json", "--force"],
    ] {
        let run = run_in(&documents(), arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_server_that_cannot_be_asked_is_named() {
    let said = |url: &str| run_in(&documents(), &["import", "--from", url]).stderr;
    let said = [
        said("ftp://example.com/rpc"),
        said("http://me:secret@example.com/rpc"),
        said("example.com"),
        run_in(
            &documents(),
            &[
                "import",
                "--from",
                "http://h",
                "--header",
                "X-A\u{1}: secret",
            ],
        )
        .stderr,
    ];
    assert!(said.iter().all(|said| !said.contains("secret")), "{said:?}");
    insta::assert_snapshot!("import_from", said.concat());
}

#[test]
fn documents_that_are_made_to_hurt_are_refused() {
    let deep = format!("{{\"openapi\": {}", "[".repeat(10_000));
    let deep_yaml = format!("openapi: {}", "[".repeat(10_000));
    let indented: String = (0..5_000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    let mut laughs = String::from("a0: &a0 [x, x]\n");
    for level in 1..30 {
        let below = level - 1;
        laughs.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}]\n"));
    }
    for (name, text) in [
        ("a.json", deep),
        ("a.yaml", deep_yaml),
        ("a.yaml", indented),
        ("a.yaml", laughs),
    ] {
        let said = refused(name, &text, "--openapi");
        let first = format!("error: `{name}`");
        assert!(said.starts_with(&first) && said.len() < 500, "{said}");
    }
}

#[test]
fn a_file_beyond_any_document_is_refused_before_it_is_understood() {
    let folder = folder(&[]);
    let file = fs::File::create(folder.path().join("a.json")).unwrap();
    file.set_len(32 * 1024 * 1024 + 1).unwrap();
    let run = run_in(folder.path(), &["import", "--openapi", "a.json"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "error: `a.json` is larger than 32 MiB\n");
}

/// A document with one operation, and what `import` and `check` say of it.
fn drafted(path: &str, operation: &str) -> String {
    let document = format!(
        r#"{{"openapi":"3.0.3","info":{{"title":"t","version":"1"}},"paths":{{"{path}":{operation}}}}}"#
    );
    let folder = folder(&[("api.json", &document)]);
    let run = run_in(folder.path(), &["import", "--openapi", "api.json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_passes_check(&run.stdout);
    run.stdout
}

#[test]
fn the_body_of_a_delete_or_a_get_is_drafted() {
    let body = r#"{"required":true,"content":{"application/json":{"schema":{"type":"object","required":["ids"],"additionalProperties":false,"properties":{"ids":{"type":"array","items":{"type":"string"}}}}}}}"#;
    for method in ["delete", "get"] {
        let operation = format!(
            r#"{{"{method}":{{"operationId":"objects","requestBody":{body},"responses":{{"200":{{"description":"ok"}}}}}}}}"#
        );
        let draft = drafted("/objects", &operation);
        assert!(
            draft.contains(r#"body = { ids = "{ids:array}" }"#),
            "{draft}"
        );
        assert!(draft.contains(r#"params = { ids = "{ids}" }"#), "{draft}");
        assert!(!draft.contains("look: the body"), "{draft}");
    }
    let form =
        r#"{"delete":{"requestBody":{"required":true,"content":{"text/csv":{}}},"responses":{}}}"#;
    let draft = drafted("/objects", form);
    assert!(
        !draft.contains("[[route]]") && draft.contains("No route:"),
        "{draft}"
    );
}

#[test]
fn a_member_of_a_body_may_repeat_a_parameter_of_the_path() {
    let operation = |kind: &str, required: &str| {
        format!(
            r#"{{"patch":{{"operationId":"patchPet","parameters":[{{"name":"id","in":"path","required":true,"schema":{{"type":"string"}}}}],"requestBody":{{"required":true,"content":{{"application/json":{{"schema":{{"type":"object","required":[{required}],"properties":{{"id":{{"type":"{kind}"}},"name":{{"type":"string"}}}}}}}}}}}},"responses":{{"200":{{"description":"ok"}}}}}}}}"#
        )
    };
    for (kind, required, id) in [
        ("integer", r#""id""#, "{=id:integer}"),
        ("string", r#""id""#, "{id}"),
        ("integer", r#""name""#, "{=id?}"),
        ("string", r#""name""#, "{=id?}"),
    ] {
        let draft = drafted("/pets/{id}", &operation(kind, required));
        assert!(
            draft.contains(&format!(r#"id = "{id}""#)),
            "{kind} {required}: {draft}"
        );
        assert!(!draft.contains("is left out"), "{draft}");
    }
}

#[test]
fn an_operation_without_a_body_is_drafted_without_content() {
    let without = drafted("/jobs/{id}/stop", r#"{"post":{"responses":{}}}"#);
    assert!(without.contains("\nbody = \"none\"\n"), "{without}");
    let schema = r#"{"content":{"application/json":{"schema":{"type":"object","properties":{"why":{"type":"string"}}}}}}"#;
    let optional = drafted(
        "/jobs",
        &format!(r#"{{"post":{{"requestBody":{schema},"responses":{{}}}}}}"#),
    );
    assert!(!optional.contains("\nbody = "), "{optional}");
    assert!(
        optional.contains("look: its body is optional"),
        "{optional}"
    );
    let required = schema.replacen('{', r#"{"required":true,"#, 1);
    let required = drafted(
        "/jobs",
        &format!(r#"{{"post":{{"requestBody":{required},"responses":{{}}}}}}"#),
    );
    assert!(!required.contains("look: its body"), "{required}");
    let schema = r#"{"content":{"application/json":{"schema":{"type":"object","required":["ids"],"properties":{"ids":{"type":"array"}}}}}}"#;
    for (needs, body) in [
        (true, schema.to_owned()),
        (false, schema.replacen('{', r#"{"required":true,"#, 1)),
        (false, schema.replace(r#""required":["ids"],"#, "")),
    ] {
        let draft = drafted(
            "/jobs",
            &format!(r#"{{"delete":{{"requestBody":{body},"responses":{{}}}}}}"#),
        );
        assert!(draft.contains("body = { ids = "), "{draft}");
        let found = draft.contains("look: its body is optional, but a call without it is refused");
        assert_eq!(found, needs, "{draft}");
    }
}

#[test]
fn json_with_too_many_values_is_refused_at_once() {
    let words = vec!["\"a\""; 1_000_001].join(",");
    let text = format!("{{\"openapi\":\"3.0.0\",\"x-words\":[{words}]}}");
    let said = refused("a.json", &text, "--openapi");
    assert!(
        said.starts_with("error: `a.json` is refused") && said.contains("more than 1000000 values"),
        "{said}"
    );
}

#[test]
fn a_name_that_stands_twice_in_json_is_refused_with_its_place() {
    let text = "{\"openapi\":\"3.0.0\",\n\"paths\":{\"/a\":{},\"/a\":{}}}";
    let said = refused("a.json", text, "--openapi");
    assert!(
        said.contains("the name `/a` stands twice in one object at line 2"),
        "{said}"
    );
}

#[test]
fn what_is_told_of_a_document_has_no_control_characters() {
    let nasty = "\\u001b[2J\\u0000\\u009b";
    let twice = format!("{{\"{nasty}\":1,\"{nasty}\":1}}");
    let kind = format!("{{\"openapi\":\"{nasty}\"}}");
    for text in [twice, kind] {
        let said = refused("a.json", &text, "--openapi");
        let control = |letter: char| letter.is_control() && letter != '\n';
        assert!(!said.contains(control), "{said:?}");
    }
    let path = format!(
        "{{\"openapi\":\"3.0.0\",\"paths\":{{\"/{nasty}\":{{\"get\":{{}}}},\"/a\":{{\"get\":{{\"summary\":\"{nasty}\",\"operationId\":\"{nasty}\"}}}}}}}}"
    );
    let folder = folder(&[("a.json", &path)]);
    let run = run_in(folder.path(), &["import", "--openapi", "a.json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let control = |letter: char| letter.is_control() && letter != '\n';
    assert!(!run.stdout.contains(control), "{:?}", run.stdout);
    assert!(!run.stderr.contains(control), "{:?}", run.stderr);
}

/// How long the program takes for a body of so many properties: the shortest of three runs.
fn time_of(count: usize) -> Duration {
    let properties: Vec<String> = (0..count)
        .map(|number| format!("\"member{number}\":{{\"type\":\"string\"}}"))
        .collect();
    let document = format!(
        r#"{{"openapi":"3.0.0","paths":{{"/a":{{"post":{{"requestBody":{{"content":{{"application/json":{{"schema":{{"type":"object","properties":{{{}}}}}}}}}}}}}}}}}}}"#,
        properties.join(",")
    );
    let folder = folder(&[("a.json", &document)]);
    let arguments = ["import", "--openapi", "a.json"];
    let times = (0..3).map(|_| {
        let begin = now();
        assert_eq!(run_in(folder.path(), &arguments).code, Some(0));
        begin.elapsed()
    });
    times.min().unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is tested is the time that passes"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn the_time_of_an_import_grows_with_its_document() {
    let (small, large) = (time_of(4_000), time_of(32_000));
    // Eight times the properties; a quadratic step would take up to 64 times as long.
    assert!(large < small * 24, "{small:?} and {large:?}");
}
