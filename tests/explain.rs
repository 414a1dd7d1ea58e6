//! `explain` and `routes`, as they print.

#![expect(
    clippy::unwrap_used,
    reason = "a program that cannot be started fails the test"
)]

#[path = "explain/dialects.rs"]
mod dialects;
#[path = "explain/routes.rs"]
mod routes;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const MAIN: &str = include_str!("data/two-sides.toml");

const ROUTES: &str = r#"
[[route]]
name = "repository.search"
rest = "GET /api/search?q={query}&limit={limit:integer=50}&ext={extensions:string[,]?}"
rpc = "repository/search"
timeout = "2500ms"

[[route]]
name = "items.make"
rest = "POST /items/{id}"
rpc = "items/make"

[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"

[[route]]
name = "coaches.get"
rest = "GET /api/coaches/{id}"
rpc = "tools/call"
params = { name = "get_coach", arguments = { coach_id = "{id}" } }
extra = "drop"
[[route.outcome]]
rest = { status = 200, body = "{coach}" }
rpc = { result = {
  structuredContent = { coach = "{coach}" },
  content = [{ type = "text", text = "{>coach:json}" }],
} }
[[route.outcome]]
rest = { status = [404, "5xx"], body = { code = "ResourceNotFound", message = "{message}", id = "{>id}" } }
rpc = { error = { code = -32601, message = "{message}" } }

[[route]]
name = "coaches.delete"
rest = "DELETE /api/coaches/{id}"
rpc = "tools/call"
params = { name = "delete_coach", arguments = { coach_id = "{id}", token = "{token}" } }
headers = { authorization = "Bearer {token}" }
extra = "drop"
"#;

const FLAGS: &str = r#"
[[flag]]
name = "gone"
route = "items.read"
side = "rest"
stage = "retired"

[[flag]]
name = "ios-first"
client = "ios-*"
stage = "translate"
percent = 25

[[flag]]
name = "others"
client = "other"
stage = "translate"
"#;

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The files of a configuration, and a program that reads them.
struct Bench(TempDir);

impl Bench {
    fn new() -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        for (name, text) in [
            ("dualgauge.toml", MAIN),
            ("routes.toml", ROUTES),
            ("flags.toml", FLAGS),
        ] {
            bench.write(name, text);
        }
        bench
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
            .arg(arguments[0])
            .args(["--config", "dualgauge.toml"])
            .args(&arguments[1..])
            .current_dir(self.0.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What is explained of a request.
    fn explain(&self, arguments: &[&str]) -> String {
        self.explain_input(arguments, "")
    }

    fn explain_input(&self, arguments: &[&str], input: &str) -> String {
        let run = self.run(&[&["explain"], arguments].concat(), input);
        let note = "note: the files say nothing of flag changes, guard trips and the kill switch; `--admin URL` in place of `--config` asks a running process\n";
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), note));
        run.stdout
    }
}

#[test]
fn a_routed_rest_call_is_explained_from_the_route_to_the_rows_that_could_answer() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.explain(&[
        "/api/coaches/7?utm_source=mail",
        "-H",
        "authorization: Bearer s3cret"
    ]));
}

#[test]
fn an_rpc_call_is_explained_with_its_url_and_what_is_dropped() {
    let call = r#"{"jsonrpc":"2.0","id":"a-1","method":"tools/call",
        "params":{"name":"delete_coach","arguments":{"coach_id":"a/b","token":"s3cret","x":1},"_meta":{}}}"#;
    insta::assert_snapshot!(Bench::new().explain_input(&[], call));
}

#[test]
fn a_batch_is_explained_message_by_message() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"items/read","params":{"id":"7"}},
        {"jsonrpc":"2.0","method":"items/make","params":{"id":"7","n":1.10}},
        {"jsonrpc":"2.0","method":"items/make"}, {"id":4}, {"jsonrpc":"2.0","id":9,"method":"nobody/knows"}]"#;
    let bench = Bench::new();
    bench.write("batch.json", batch);
    insta::assert_snapshot!(bench.explain(&["--json", "batch.json", "--path", "/mcp"]));
}

#[test]
fn what_no_route_takes_passes_or_is_refused() {
    let bench = Bench::new();
    let passes = bench.explain(&["-X", "PUT", "http://api.example/items/7"]);
    bench.write(
        "dualgauge.toml",
        &MAIN.replace("\"passthrough\"", "\"reject\""),
    );
    let other_method = bench.explain(&["-X", "PUT", "/items/7"]);
    let unrouted = bench.explain(&["/nowhere"]);
    insta::assert_snapshot!([passes, other_method, unrouted].join("\n"));
}

#[test]
fn an_irregular_path_is_explained_as_it_is_served() {
    let bench = Bench::new();
    let path = "http://api.example/api%2fsearch";
    let passes = bench.explain(&[path]);
    assert!(!passes.contains("irregular_path"), "{passes}");
    let main = format!("unrouted_irregular = \"reject\"\n{MAIN}");
    bench.write("dualgauge.toml", &main);
    let refused = bench.explain(&[path]);
    assert!(refused.contains("irregular_path"), "{refused}");
    assert!(refused.contains("`repository.search`"), "{refused}");
}

#[test]
fn a_refused_parameter_is_explained_in_the_words_of_its_failure() {
    insta::assert_snapshot!(Bench::new().explain(&["/api/search?q=a&limit=many"]));
}

#[test]
fn a_retired_route_names_what_to_use() {
    insta::assert_snapshot!(Bench::new().explain(&["/items/7"]));
}

#[test]
fn a_flag_with_a_percentage_tells_the_bucket_of_the_caller() {
    let bench = Bench::new();
    let ask = |device: &str| {
        let device = format!("x-device-id: {device}");
        bench.explain(&["/api/search?q=a", "-H", "x-client-id: ios-7", "-H", &device])
    };
    let keyless = bench.explain(&["/api/search?q=a", "-H", "x-client-id: ios-7"]);
    insta::assert_snapshot!([ask("one"), ask("two"), ask("three"), keyless].join("\n"));
}

#[test]
fn an_http_file_is_explained_request_by_request() {
    let bench = Bench::new();
    let file = "### make one\nPOST http://localhost:8080/items/7 HTTP/1.1\nContent-Type: application/json\nCookie: sid=s3cret\n\n{ \"n\": 1.10,\n  \"sid\": \"s3cret\" }\n\n### look\nGET /api/search\n    ?q=a\n    &ext=rs,md\n";
    bench.write("requests.http", file);
    let told = bench.explain(&["--http", "requests.http"]);
    assert_eq!(told, bench.explain_input(&["--http", "-"], file));
    insta::assert_snapshot!(told);
}

#[test]
fn a_reply_is_run_through_the_rows() {
    let bench = Bench::new();
    bench.write(
        "error.json",
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no coach"}}"#,
    );
    bench.write("answer.http", "HTTP/1.1 404 Not Found\nContent-Type: application/json\n\n{\"code\":\"ResourceNotFound\",\"message\":\"no coach\",\"more\":1}\n");
    bench.write("page.html", "<p>busy</p>");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_coach","arguments":{"coach_id":"7"}}}"#;
    let rest = bench.explain(&["/api/coaches/7", "--reply", "error.json"]);
    let rpc = bench.explain_input(&["--reply", "answer.http"], call);
    let built_in = bench.explain_input(&["--reply", "page.html", "--status", "503"], call);
    let no_response = bench.explain(&["/api/coaches/7", "--reply", "page.html"]);
    insta::assert_snapshot!([rest, rpc, built_in, no_response].join("\n"));
}

#[test]
fn an_explanation_is_a_document_for_programs() {
    let bench = Bench::new();
    let told = bench.explain(&["/items/7", "-d", r#"{"n":1.10}"#, "--format", "json"]);
    insta::assert_snapshot!(told);
}

#[test]
fn what_cannot_be_read_is_exit_code_2() {
    let bench = Bench::new();
    bench.write("empty.http", "# nothing\n");
    for (arguments, words) in [
        (&["/a b"][..], "`/a b` is neither a path nor a URL"),
        (
            &["/a", "-H", "x"],
            "`x` is not a header; write `Name: value`",
        ),
        (&["/a", "-X", "B(D"], "`B(D` is not an HTTP method"),
        (&["/a", "-d", "@none.json"], "`none.json` cannot be read"),
        (&["--http", "empty.http"], "the HTTP file has no request"),
        (&[], "error: no request given; give a URL or a path"),
        (&["--json", "-"], "error: no request given"),
        (&["--json", "empty.http"], "the request is not JSON"),
        (
            &["/a", "--reply", "empty.http", "--status", "99"],
            "99 is not a response status",
        ),
        (
            &["--json", "-", "--reply", "-"],
            "standard input is the request already",
        ),
        (
            &["/a", "-d", "x", "-H", "content-encoding: br"],
            "leave `Content-Encoding` out",
        ),
        (&["/a", "--json", "x"], "cannot be used with"),
    ] {
        let run = bench.run(&[&["explain"], arguments].concat(), "");
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
    }
    bench.write(
        "routes.toml",
        "[[route]]\nname = 'x'\nrest = 'GET'\nrpc = 'x'\n",
    );
    for command in ["explain", "routes"] {
        let run = bench.run(&[command], "{}");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{command}");
        assert!(
            run.stderr.contains("routes.toml:3: route[0].rest: "),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_request_that_is_probably_meant_otherwise_is_noted() {
    let bench = Bench::new();
    let noted = |url: &str| {
        let run = bench.run(&["explain", url], "");
        assert_eq!(run.code, Some(0), "{url}");
        run.stderr.contains("is read as the host")
    };
    let run = bench.run(&["explain", "items/7"], "");
    let note = "note: `items` is read as the host; write `/items/7` for a path\n";
    assert!(run.stderr.ends_with(note), "{}", run.stderr);
    for url in ["/items/7", "localhost:8080/items/7", "api.example/items/7"] {
        assert!(!noted(url), "{url}");
    }
    let run = bench.run(&["explain"], "{");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("caused by: byte 1"), "{}", run.stderr);
    let run = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args(["explain", "/x"])
        .output()
        .unwrap();
    let errors = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("<--config <FILE>|--admin <URL>>"),
        "{errors}"
    );
}

#[test]
fn a_glob_that_matches_no_route_is_a_failure() {
    let bench = Bench::new();
    let run = bench.run(&["routes", "--route", "items.raed"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let error = "error: no route matches `--route items.raed`; did you mean `items.read`?\n";
    assert_eq!(run.stderr, error);
}

#[test]
fn the_routes_are_a_table() {
    let bench = Bench::new();
    let human = bench.run(&["routes"], "").stdout;
    let markdown = bench.run(
        &["routes", "--format", "markdown", "--route", "coaches.*"],
        "",
    );
    insta::assert_snapshot!([human, markdown.stdout].join("\n"));
}

#[test]
fn the_routes_are_documents_for_programs() {
    let bench = Bench::new();
    for format in ["json", "openapi", "openrpc"] {
        let run = bench.run(&["routes", "--format", format], "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        insta::assert_snapshot!(format!("routes_{format}"), run.stdout);
    }
}

#[test]
fn routes_in_front_of_the_one_that_takes_a_call_say_why_they_do_not_fit() {
    let bench = Bench::new();
    bench.write(
        "flags.toml",
        "[[flag]]\nname = 'all'\nstage = 'translate'\n",
    );
    bench.write(
        "routes.toml",
        r#"
        [[route]]
        name = "one"
        rest = "POST /m/{model}/read"
        rpc = "read"
        body = { ids = "{ids:integer[]}" }
        params = { model = "{model}", ids = "{ids}" }

        [[route]]
        name = "any"
        after = "one"
        rest = "POST /m/{model}/{method}"
        rpc = "{method}"
        body = { "..." = "{more}" }
        params = { model = "{model}", "..." = "{more}" }
        "#,
    );
    let posted = ["explain", "/m/a/read", "-d", r#"{"ids":"x"}"#];
    let said = bench.run(&posted, "");
    let front = "  in front   `one` does not fit: body/ids: it must be an array, not a string\n";
    assert!(
        said.stdout.contains("  route      any  "),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains(front), "{}", said.stdout);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"read","params":{"model":"a","x":1}}"#;
    let said = bench.run(&["explain", "--json", "-"], call);
    let front = "  in front   `one` does not fit: params/x: the route does not know it\n";
    assert!(
        said.stdout.contains(front),
        "{}{}",
        said.stdout,
        said.stderr
    );
}
