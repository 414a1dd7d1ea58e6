//! The sources of `dualgauge import`: a URL, standard input, and a command; and refreshed tables.

use std::fs::{self, File};
use std::path::Path;

use serde_json::json;

use crate::scene::{answer, json as json_answer};
use crate::support::{Ended, Upstream, program, run_to_end};

/// A document with one operation.
fn document(summary: &str) -> String {
    let get = json!({ "operationId": "list_pets", "summary": summary, "responses": {} });
    json!({ "openapi": "3.1.0", "paths": { "/pets": { "get": get } } }).to_string()
}

fn import(arguments: &[&str]) -> Ended {
    run_to_end(program(&[&["import"], arguments].concat()))
}

fn assert_drafted(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(
        ended.output.contains("rest = \"GET /pets\""),
        "{}",
        ended.output
    );
}

#[test]
fn a_document_is_read_from_a_url_with_the_headers_of_the_command() {
    let server = Upstream::answering(json_answer(document("All pets")));
    let url = format!("http://{}/api.json?v=1", server.address());
    let ended = import(&["--openapi", &url, "--header", "X-Key: secret"]);
    assert_drafted(&ended);
    assert!(!ended.output.contains("secret"), "{}", ended.output);
    let request = server.request();
    assert_eq!(request.head.start, "GET /api.json?v=1 HTTP/1.1");
    assert_eq!(request.head.one("x-key"), Some("secret"));
}

#[test]
fn a_url_with_yaml_is_read_by_its_content() {
    let yaml = "openapi: 3.1.0\npaths:\n  /pets: { get: { responses: {} } }\n";
    let server = Upstream::answering(answer("200 OK", &[("Content-Type", "text/yaml")], yaml));
    let url = format!("http://{}/openapi", server.address());
    assert_drafted(&import(&["--openapi", &url]));
}

#[test]
fn a_url_without_a_document_is_a_fault() {
    let moved = answer("302 Found", &[("Location", "http://127.0.0.1:1/")], "");
    let cases = [
        (answer("404 Not Found", &[], "none"), "404"),
        (moved, "302"),
        (answer("200 OK", &[], "<html>"), "paths"),
    ];
    for (reply, word) in cases {
        let server = Upstream::answering(reply);
        let url = format!("http://{}/api.json", server.address());
        let ended = import(&["--openapi", &url]);
        assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
        let fault = ended.errors.starts_with("error: ");
        assert!(
            fault && (word == "paths" || ended.errors.contains(word)),
            "{}",
            ended.errors
        );
    }
}

#[test]
fn a_document_is_read_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        let file = folder.path().join("input");
        fs::write(&file, text).unwrap();
        let mut command = program(&["import", "--openapi", "-"]);
        command.stdin(File::open(&file).unwrap());
        run_to_end(command)
    };
    let ended = read(&document("All pets"));
    assert_drafted(&ended);
    assert!(
        ended.output.contains("#   standard input\n"),
        "{}",
        ended.output
    );
    let ended = read("{");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .errors
            .starts_with("error: `standard input` is not JSON"),
        "{}",
        ended.errors
    );
}

/// A server over HTTP with SSE whose stream has these events.
fn sse_server(get: &'static str, events: &'static str, post: &'static str) -> Upstream {
    Upstream::serving(move |request| {
        let words: Vec<&str> = request.head.start.split(' ').collect();
        let stream = [("Content-Type", "text/event-stream")];
        match words[..2] {
            ["GET", _] => answer(get, &stream, events),
            ["POST", "/messages"] => answer(post, &[], ""),
            _ => answer("405 Method Not Allowed", &[], ""),
        }
    })
}

#[test]
fn a_server_over_sse_that_does_not_list_its_tools_says_why() {
    let endpoint = "event: endpoint\ndata: /messages\n\n";
    let refused = "event: endpoint\ndata: /messages\n\nevent: message\n\
        data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"no licence\"}}\n\n";
    let foreign = "event: endpoint\ndata: http://other.example/messages\n\n";
    let (accepted, failed) = ("202 Accepted", "500 Internal Server Error");
    for (get, events, post, reason) in [
        (
            "200 OK",
            refused,
            accepted,
            "`initialize` was refused: {\"code\":-32000,\"message\":\"no licence\"}",
        ),
        (
            "200 OK",
            endpoint,
            failed,
            "answered `initialize` with the status 500",
        ),
        ("200 OK", foreign, accepted, "it is on another origin"),
        (
            "401 Unauthorized",
            "",
            accepted,
            "answered `GET` with the status 401",
        ),
        (
            "404 Not Found",
            "",
            accepted,
            "answered `tools/list` with the status 405",
        ),
    ] {
        let server = sse_server(get, events, post);
        let url = format!("http://{}/sse", server.address());
        let ended = import(&["--method", "tools/list", "--from", &url]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.errors.contains(reason), "{reason}: {}", ended.errors);
    }
}

/// A server over standard input and output, with one tool on each of two pages.
const SERVER: &str = r#"
echo "started with $1" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"cursor":"2"'*) result='{"tools":[{"name":"second","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"first","inputSchema":{"type":"object"}}],"nextCursor":"2"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn command(script: &str, more: &[&str]) -> Ended {
    import(&[more, &["--", "/bin/sh", "-c", script, "sh", "an argument"]].concat())
}

#[test]
fn a_command_is_asked_for_all_pages_of_its_tools() {
    let ended = command(SERVER, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    for name in ["first", "second"] {
        let line = format!("name = \"{name}\"\n");
        assert!(ended.output.contains(&line), "{}", ended.output);
    }
}

#[test]
fn a_command_is_paired_with_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.json");
    fs::write(&file, document("All pets").replace("list_pets", "first")).unwrap();
    let ended = command(SERVER, &["--openapi", file.to_str().unwrap()]);
    assert_drafted(&ended);
    assert!(
        ended.errors.contains("drafted: 1 of a pair"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_command_that_fails_is_a_fault_with_what_it_said() {
    let ended = command("echo 'no key' >&2; exit 7", &[]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    for words in ["did not list its tools", "exit status: 7", "no key"] {
        assert!(ended.errors.contains(words), "{words}: {}", ended.errors);
    }
    let ended = import(&["--", "no-such-program"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("`no-such-program` cannot be started"),
        "{}",
        ended.errors
    );
}

#[test]
fn a_command_that_never_answers_is_ended_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; wait", pid.display());
    let ended = command(&script, &["--timeout", "1"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("no answer within 1s"),
        "{}",
        ended.errors
    );
    let pid = fs::read_to_string(pid).unwrap();
    let process = format!("/proc/{}/stat", pid.trim());
    let runs = || {
        let stat = fs::read_to_string(&process).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'Z')
    };
    crate::support::becomes(runs, &false);
}

/// Imports a document into a table.
fn import_into(folder: &Path, document: &str, more: &[&str]) -> Ended {
    let file = folder.join("api.json");
    fs::write(&file, document).unwrap();
    let table = folder.join("routes.toml");
    let mut command = program(&["import", "--openapi"]);
    command.arg(&file).arg("--output").arg(&table).args(more);
    run_to_end(command)
}

#[test]
fn a_refreshed_table_keeps_its_edits_and_has_the_changes_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let table = || fs::read_to_string(folder.join("routes.toml")).unwrap();
    assert_eq!(
        import_into(folder, &document("All pets"), &[]).code,
        Some(0)
    );
    let edited = table().replace(
        "[[route]]\n",
        "# ours\n[[route]]\ntimeout = \"2s\" # slow\n",
    );
    fs::write(folder.join("routes.toml"), &edited).unwrap();
    let same = import_into(folder, &document("All pets"), &["--refresh"]);
    assert_eq!((same.code, table()), (Some(0), edited.clone()));
    // A table of a former version does not name its schema.
    let first = "#:schema ./routes.schema.json\n";
    let former = edited.strip_prefix(first).unwrap();
    fs::write(folder.join("routes.toml"), former).unwrap();
    let draft = folder.join("routes.toml.draft");
    let text = fs::read_to_string(&draft).unwrap();
    fs::write(&draft, text.strip_prefix(first).unwrap()).unwrap();
    let same = import_into(folder, &document("All pets"), &["--refresh"]);
    assert_eq!((same.code, table()), (Some(0), edited));
    let added = document("Every pet").replace("{\"/pets\"", "{\"/toys\":{\"get\":{}},\"/pets\"");
    let ended = import_into(folder, &added, &["--refresh"]);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let line = "refreshed: 1 changed, 1 added, 0 removed, 0 in conflict";
    assert!(ended.errors.contains(line), "{}", ended.errors);
    let text = table();
    for line in [
        "# ours",
        "timeout = \"2s\" # slow",
        "summary = \"Every pet\"",
        "rest = \"GET /toys\"",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\nin\n{text}");
    }
    // Both sides change the same key.
    fs::write(
        folder.join("routes.toml"),
        text.replace("Every pet", "Our pets"),
    )
    .unwrap();
    let ended = import_into(
        folder,
        &added.replace("Every pet", "Some pets"),
        &["--refresh"],
    );
    assert_eq!(ended.code, Some(3), "{}", ended.errors);
    assert!(
        ended
            .errors
            .contains("conflict: `list_pets`: `summary` was edited"),
        "{}",
        ended.errors
    );
    let text = table();
    assert!(text.contains("summary = \"Our pets\""), "{text}");
    assert!(text.contains("#   summary = \"Some pets\""), "{text}");
}

#[test]
fn a_table_without_its_draft_is_not_refreshed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ended = import_into(folder, &document("All pets"), &["--refresh"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("routes.toml` cannot be read"),
        "{}",
        ended.errors
    );
    fs::write(folder.join("routes.toml"), "# mine\n").unwrap();
    let ended = import_into(folder, &document("All pets"), &["--refresh"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("routes.toml.draft` does not exist"),
        "{}",
        ended.errors
    );
    fs::write(folder.join("routes.toml.draft"), "").unwrap();
    fs::write(folder.join("routes.toml"), "oops").unwrap();
    let ended = import_into(folder, &document("All pets"), &["--refresh"]);
    assert!(
        ended.errors.contains("is not TOML; nothing was written"),
        "{}",
        ended.errors
    );
    let table = fs::read_to_string(folder.join("routes.toml")).unwrap();
    assert_eq!((ended.code, table.as_str()), (Some(1), "oops"));
}
