//! The real program: what it prints, and with which exit code.

#![expect(
    clippy::unwrap_used,
    reason = "a program that cannot be started fails the test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What a run of the program left behind.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program with nothing in its environment but what is given.
fn run_with(arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(arguments: &[&str]) -> Run {
    run_with(arguments, &[])
}

/// Runs `check` on a file, and cuts its folder from what is printed.
fn check(file: &Path, more: &[&str]) -> Run {
    let mut arguments = vec!["check", "--config", file.to_str().unwrap()];
    arguments.extend(more);
    let folder = format!("{}/", file.parent().unwrap().display());
    let run = run(&arguments);
    Run {
        code: run.code,
        stdout: run.stdout.replace(&folder, ""),
        stderr: run.stderr.replace(&folder, ""),
    }
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
[rollout]
flags = "flags.toml"
[[client]]
name = "ios-app"
match = { header = { x-client-id = "ios-*" } }
"#;

const ROUTES: &str = r#"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"
[[route]]
name = "i"
rest = "POST /items"
rpc = "items/create"
"#;

fn fine() -> TempDir {
    let flags = "[[flag]]\nname = 'f'\nstage = 'translate'\nside = 'rpc'\n";
    folder(&[
        ("dualgauge.toml", MAIN),
        ("routes.toml", ROUTES),
        ("flags.toml", flags),
    ])
}

#[test]
fn a_retired_route_that_a_lenient_server_may_still_serve_is_noted() {
    let told = |keys: &str, flag: &str| {
        let main = format!("{keys}{MAIN}");
        let flags = format!("[[flag]]\nname = 'g'\n{flag}\n");
        let folder = folder(&[
            ("dualgauge.toml", &main),
            ("routes.toml", ROUTES),
            ("flags.toml", &flags),
        ]);
        let run = check(&folder.path().join("dualgauge.toml"), &[]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        let notes = run.stdout.lines();
        let notes =
            notes.filter(|line| line.starts_with("note: ") && line.contains("unrouted_irregular"));
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let retired = "stage = 'retired'\nside = 'rest'";
    let note = |place: &str, more: &str| {
        format!(
            "note: {place}: unrouted_irregular: `GET /Items/1` passes as a call of no route, and a lenient server may read it \
             as a call of the retired route `items.read`{more}"
        )
    };
    let more = "; the same holds for 1 more route";
    assert_eq!(told("", retired), [note("default", more)]);
    let of_one = format!("{retired}\nroute = 'items.*'");
    let said = "unrouted_irregular = 'pass'\n";
    assert_eq!(told(said, &of_one), [note("dualgauge.toml:1", "")]);
    for (keys, flag) in [
        ("unrouted_irregular = 'reject'\n", retired),
        ("unrouted = 'reject'\n", retired),
        ("", "stage = 'retired'\nside = 'rpc'"),
        ("", "stage = 'translate'\nside = 'rpc'"),
    ] {
        assert_eq!(told(keys, flag), [""; 0], "{keys} {flag}");
    }
}

#[test]
fn a_mistake_in_a_configuration_is_one_problem_in_its_own_words() {
    let route = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";
    let again = "[[route]]\nname = 'a'\nrest = 'GET /b'\nrpc = 'b'\n";
    let outcome = "[[route.outcome]]\nrest.status = 200\nrpc.result = 1\n";
    for (routes, tables, problem) in [
        (
            format!("{route}{again}"),
            "",
            "routes.toml:6: route[1].name: the name `a` is already used by route[0].name at routes.toml:2\n",
        ),
        (
            outcome.to_owned(),
            "",
            "routes.toml:1: route: `[[route.outcome]]` must follow the `[[route]]` to which it belongs; `route` is a list of tables\n",
        ),
        (
            format!("{outcome}{route}"),
            "",
            "routes.toml:4:3: duplicate key\n  \
             hint: a list of tables comes before the lists in it: `[[route]]` before its `[[route.outcome]]`\n",
        ),
        (
            route.to_owned(),
            "[admin]\ntokens = { anna = 's3cret' }\n",
            "dualgauge.toml:10: admin.tokens.anna: an admin token is written as its hash: `sha256:` and 64 hexadecimal \
             digits\n  hint: `printf %s TOKEN | sha256sum` prints the digits\n",
        ),
        (
            route.to_owned(),
            "[rollout]\nflags = 'none.toml'\n",
            "none.toml: cannot be read: No such file or directory (os error 2)\n  \
             hint: `rollout.flags` at dualgauge.toml:10 names this file\n",
        ),
    ] {
        let main = MAIN.replace("[rollout]\nflags = \"flags.toml\"\n", "");
        let main = format!("{main}{tables}");
        let folder = folder(&[("dualgauge.toml", &main), ("routes.toml", &routes)]);
        let run = check(&folder.path().join("dualgauge.toml"), &[]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), problem));
    }
}

#[test]
fn a_misspelled_http_method_is_noted() {
    let noted = |method: &str| {
        let route = format!("[[route]]\nname = 'm'\nrest = '{method} /m'\nrpc = 'm'\n");
        let main = MAIN.replace("flags = \"flags.toml\"\n", "");
        let folder = folder(&[("dualgauge.toml", &main), ("routes.toml", &route)]);
        let run = check(&folder.path().join("dualgauge.toml"), &[]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{method}");
        run.stdout
    };
    let note = "note: routes.toml:3: route[0].rest: `GTE` is no standard HTTP method\n  hint: did you mean `GET`?\n";
    let said = noted("GTE");
    assert!(said.contains(note), "{said}");
    for method in ["GET", "PURGE", "PROPFIND", "SUBSCRIBE", "QUERY"] {
        let said = noted(method);
        assert!(!said.contains("no standard HTTP method"), "{said}");
    }
}

fn wrong() -> TempDir {
    let main = MAIN.replace("9001", "9001/base?x=1");
    let routes = format!("{ROUTES}[[route]]\nname = \"x\"\nrest = \"get /x\"\nrpc = \"x\"\n");
    let flags = "[[flag]]\nname = 'f'\nstage = 'translate'\nclient = 'ios-ap'\nroute = '*s.*'\n\
                 [[flag]]\nname = 'g'\nstage = 'retired'\npercent = 5\nclient = 'ios-app'\n";
    folder(&[
        ("dualgauge.toml", &main),
        ("routes.toml", &routes),
        ("flags.toml", flags),
    ])
}

/// Flags that can run, and never do what they are there for.
fn idle() -> TempDir {
    let flags = r#"
[[flag]]
name = "compares-nothing"
route = "i"
side = "rpc"
stage = "shadow"
[[flag]]
name = "judges"
stage = "translate"
side = "rpc"
client = "ios-app"
guard = {}
[[flag]]
name = "compares"
route = "*"
side = "rpc"
stage = "verify"
client = "ios-app"
[[flag]]
name = "judges-nothing"
stage = "passthrough"
side = "rest"
percent = 50
guard = {}
ramp = { steps = [1, 5], every = "1h" }
[[flag]]
name = "behind"
stage = "retired"
side = "rpc"
client = "ios-*"
route = "items.*"
[[flag]]
name = "not-behind"
stage = "translate"
side = "rpc"
[[flag]]
name = "moves-nothing"
stage = "shadow"
side = "rest"
route = "passes"
guard = {}
"#;
    let passes = "[[route]]\nname = \"passes\"\nrest = \"GET /p\"\nrpc = \"p\"\nfrom = \"rest\"\nstage = \"passthrough\"\n";
    let main = MAIN.to_owned()
        + "key = { header = \"x-device-id\" }\n\
           [upstream.new]\nside = \"rpc\"\nurl = \"http://127.0.0.1:9002/rpc\"\n";
    folder(&[
        ("dualgauge.toml", &main),
        ("routes.toml", &format!("{ROUTES}{passes}")),
        ("flags.toml", flags),
    ])
}

#[test]
fn flags_that_never_do_what_they_are_there_for_are_noted() {
    let folder = idle();
    let file = folder.path().join("dualgauge.toml");
    let run = check(&file, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let notes = run.stdout.lines().filter(|line| line.starts_with("note: "));
    let notes: Vec<_> = notes.collect();
    insta::assert_snapshot!("idle_flags", notes.join("\n"));
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = run(&["--version"]);
    assert_eq!(version.code, Some(0));
    assert_eq!(
        version.stdout,
        format!("dualgauge {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_command_that_cannot_be_understood_is_exit_code_2() {
    let commands: [&[&str]; 5] = [
        &[],
        &["chek"],
        &["check"],
        &["run"],
        &["check", "--config", "x", "--format", "yaml"],
    ];
    for arguments in commands {
        let run = run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
        assert!(run.stderr.contains("--help"), "{}", run.stderr);
    }
}

#[test]
fn the_schemas_of_both_files_are_printed() {
    for (arguments, key) in [
        (&["schema"][..], "upstream"),
        (&["schema", "flags"], "flag"),
    ] {
        let run = run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        let schema: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(schema["properties"][key].is_object(), "{arguments:?}");
    }
}

#[test]
fn a_fine_configuration_is_shown_route_by_route() {
    let folder = fine();
    let run = check(&folder.path().join("dualgauge.toml"), &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("fine_for_people", run.stdout);
}

#[test]
fn a_fine_configuration_is_a_document_for_programs() {
    let folder = fine();
    let run = check(&folder.path().join("dualgauge.toml"), &["--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout.lines().count(), 1);
    insta::assert_snapshot!("fine_for_programs", run.stdout.replace("},{", "},\n{"));
}

const LOSSY: &str = r#"
include = ["routes.toml"]
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"
[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/rpc"
"#;

const LOSSY_ROUTES: &str = r#"
[[route]]
name = "items.search"
rest = "GET /items?q={q}&limit={limit:integer=50}&trace={_}"
rpc = "items/search"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"
lossy = "nothing is"
outcomes = "common"
[[route.example]]
rest = { call = "GET /items/7" }
rpc = { method = "items/read", params = { id = "8" } }
[[outcomes.common]]
rest = { status = [404, 410], body = { error = "{m}", at = "{>now}" } }
rpc = { error = { code = -32601, message = "{m}" } }
[[outcomes.common]]
lossy = "nothing is either"
rest = { status = 403, body = { error = "{m}" } }
rpc = { error = { code = -32001, message = "{m}" } }
"#;

fn lossy(routes: &str) -> TempDir {
    folder(&[("dualgauge.toml", LOSSY), ("routes.toml", routes)])
}

#[test]
fn a_loss_is_shown_by_a_message_that_does_not_come_back() {
    let folder = lossy(LOSSY_ROUTES);
    let run = check(&folder.path().join("dualgauge.toml"), &["-v"]);
    assert_eq!(run.code, Some(1));
    insta::assert_snapshot!("lossy_for_people", run.stdout);
    insta::assert_snapshot!("lossy_problems", run.stderr);
}

/// Three routes share a set; the last one has a row of its own, which takes what a row of the set fits.
const SHARED_SET: &str = r#"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"
outcomes = "common"
[[route]]
name = "items.search"
rest = "GET /items?limit={limit:integer=50}"
rpc = "items/search"
outcomes = "common"
[[route]]
name = "things.read"
rest = "GET /things/{id}"
rpc = "things/read"
outcomes = "common"
[[route.outcome]]
rest = { status = 409, body = { error = "{m}" } }
rpc = { error = { code = -31409, message = "{m}" } }
[[outcomes.common]]
lossy = "the time is not compared"
rest = { status = 404, body = { error = "{m}", at = "{>now}" } }
rpc = { error = { code = -31404, message = "{m}" } }
[[outcomes.common]]
rest = { status = 409, body = { error = "{m}" } }
rpc = { error = { code = -31409, message = "{m}" } }
[[outcomes.common]]
rest = { status = 422, body = { error = "{m}", "n?" = "{n:integer?=1}" } }
rpc = { error = { code = -31422, message = "{m}", data = { n = "{n:integer=1}" } } }
"#;

#[test]
fn a_set_of_outcomes_is_reported_once_and_normal_forms_on_demand() {
    let folder = lossy(SHARED_SET);
    let file = folder.path().join("dualgauge.toml");
    let brief = check(&file, &["--no-upgrade-notes"]);
    assert_eq!((brief.code, brief.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("shared_set", brief.stdout);
    let full = check(&file, &["--no-upgrade-notes", "--verbose"]);
    insta::assert_snapshot!("shared_set_verbose", full.stdout);
}

#[test]
fn a_loss_is_in_the_document_for_programs() {
    let folder = lossy(LOSSY_ROUTES);
    let run = check(&folder.path().join("dualgauge.toml"), &["--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!("lossy_for_programs", run.stdout.replace("},{", "},\n{"));
}

#[test]
fn losses_that_are_accepted_are_no_problem() {
    let routes = LOSSY_ROUTES
        .replace(
            "rpc = \"items/search\"",
            "rpc = \"items/search\"\nlossy = \"nobody reads it\"",
        )
        .replace("lossy = \"nothing is\"\n", "")
        .replace("lossy = \"nothing is either\"\n", "")
        .replace(
            "[[outcomes.common]]\nrest = { status = [404",
            "[[outcomes.common]]\nlossy = \"the time\"\nrest = { status = [404",
        )
        .replace("id = \"8\"", "id = \"7\"");
    let folder = lossy(&routes);
    let run = check(&folder.path().join("dualgauge.toml"), &[]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), ""),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("(accepted: the time)"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.ends_with("ok: 2 routes, 0 flags, 0 clients\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_row_with_a_code_of_the_proxys_own_failures_is_noted() {
    let row = "rpc = { error = { code = -32001, message = \"{m}\" } }";
    let own = row.replace("-32001", "-31021");
    let note = "the proxy itself answers -31021 for `upstream_unreachable`";
    let own = LOSSY_ROUTES.replace(row, &own);
    let moved = "rpc.failure_codes = -40000\n";
    for (keys, routes, noted) in [
        ("", LOSSY_ROUTES, false),
        ("", &*own, true),
        (moved, &*own, false),
    ] {
        let main = format!("{keys}{LOSSY}");
        let folder = folder(&[("dualgauge.toml", &main), ("routes.toml", routes)]);
        let run = check(&folder.path().join("dualgauge.toml"), &[]);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(all.contains(note), noted, "{all}");
    }
}

#[test]
fn a_tool_without_a_row_for_its_failure_is_noted_where_rest_clients_call_it() {
    let route = "[[route]]\nname = \"t\"\nrest = \"POST /t\"\nrpc = \"tools/call\"\nparams = { name = \"t\", arguments = \"{a={}}\" }\nbody = \"{a}\"\n";
    for (keys, from, status) in [
        ("", "", Some(422)),
        ("rpc.tool_error_status = 500\n", "", Some(500)),
        ("", "from = \"rpc\"\n", None),
        ("", "from = \"rest\"\n", Some(422)),
    ] {
        let main = format!("{keys}{LOSSY}");
        let routes = format!("{route}{from}");
        let folder = folder(&[("dualgauge.toml", &main), ("routes.toml", &routes)]);
        let run = check(&folder.path().join("dualgauge.toml"), &[]);
        let all = format!("{}{}", run.stdout, run.stderr);
        let noted = all.contains("no row takes the result of a tool that failed");
        assert_eq!(noted, status.is_some(), "{all}");
        if let Some(status) = status {
            let words = format!("so that REST clients get {status}");
            assert!(all.contains(&words), "{all}");
        }
    }
}

#[test]
fn subscriptions_that_other_clients_can_end_are_noted() {
    let route = "[[route]]\nname = \"s\"\nrest = \"GET /s\"\nrpc = \"sub\"\nparams = []\n\
        subscription.notification = { method = \"told\", params = [\"{id}\", \"{event}\"] }\n\
        subscription.unsubscribe = { method = \"unsub\" }\n";
    for (keys, noted) in [
        ("", true),
        ("withhold = [\"unsub\"]\n", false),
        ("sharing = \"client\"\n", false),
    ] {
        let main = format!(
            "include = [\"routes.toml\"]\n[upstream.u]\nside = \"rpc\"\nurl = \"ws://127.0.0.1:9/\"\n{keys}"
        );
        let folder = folder(&[("dualgauge.toml", &main), ("routes.toml", route)]);
        let run = check(&folder.path().join("dualgauge.toml"), &[]);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(
            all.contains("JSON-RPC clients can send `unsub`"),
            noted,
            "{all}"
        );
    }
}

/// One problem of each kind: single values, routes that cannot be decoded or compiled, a route that is there twice, an
/// example that does not hold, a loss, and flags.
const EVERY_KIND: [(&str, &str); 3] = [
    (
        "dualgauge.toml",
        r#"
include = ["routes.toml"]
[limits]
batch = "many"
[rpc]
notification_status = 1000
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"
[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/rpc"
[rollout]
flags = "flags.toml"
[[client]]
name = "app"
match = { header = { x-client-id = "app" } }
"#,
    ),
    (
        "routes.toml",
        r#"
[[route]]
name = "undecoded"
rest = "GET /undecoded"
rpc = 7
[[route]]
name = "uncompiled"
rest = "get /uncompiled"
rpc = "uncompiled"
[[route]]
name = "first"
rest = "GET /same/{id}"
rpc = "first"
[[route]]
name = "second"
rest = "GET /same/{other}"
rpc = "second"
[[route]]
name = "example"
rest = "GET /items/{id}"
rpc = "items/read"
[[route.example]]
rest = { call = "GET /items/7" }
rpc = { method = "items/read", params = { id = "8" } }
[[route]]
name = "loses"
rest = "GET /items?q={q}&trace={_}"
rpc = "items/search"
"#,
    ),
    (
        "flags.toml",
        r#"
[[flag]]
name = "undecoded"
stage = "translated"
[[flag]]
name = "of-nobody"
client = "ap"
stage = "translate"
[[flag]]
name = "of-a-route-that-cannot-be-decoded"
client = "app"
route = "undecoded"
stage = "translate"
"#,
    ),
];

#[test]
fn a_problem_hides_no_other() {
    let folder = folder(&EVERY_KIND);
    let run = check(&folder.path().join("dualgauge.toml"), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!("problems_of_every_kind", run.stderr);
}

#[test]
fn every_problem_of_every_file_is_printed_to_standard_error() {
    let folder = wrong();
    let run = check(&folder.path().join("dualgauge.toml"), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!("problems_for_people", run.stderr);
}

#[test]
fn every_problem_is_in_one_document_for_programs() {
    let folder = wrong();
    let run = check(&folder.path().join("dualgauge.toml"), &["--format", "json"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    assert_eq!(run.stdout.lines().count(), 1);
    insta::assert_snapshot!("problems_for_programs", run.stdout.replace("},{", "},\n{"));
}

#[test]
fn a_file_that_is_not_there_is_a_problem() {
    let folder = folder(&[]);
    let run = check(&folder.path().join("none.toml"), &[]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        run.stderr,
        "none.toml: cannot be read: No such file or directory (os error 2)\n"
    );
}

#[test]
fn variables_are_part_of_what_is_checked() {
    let folder = fine();
    let file = folder.path().join("dualgauge.toml");
    let variable = [("DUALGAUGE_LIMITS__BODY", "much")];
    let run = run_with(&["check", "--config", file.to_str().unwrap()], &variable);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr
            .starts_with("DUALGAUGE_LIMITS__BODY: limits.body: `much` is not a size"),
        "{}",
        run.stderr
    );
}

#[test]
fn every_example_of_a_main_file_is_fine() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let is_main = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
            && fs::read_to_string(path).unwrap().contains("\n[upstream.")
    };
    let files = fs::read_dir(examples).unwrap();
    let main: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(is_main)
        .collect();
    assert!(!main.is_empty());
    for file in main {
        let run = check(&file, &[]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(run.stdout.contains("\nok: "), "{}", run.stdout);
    }
}

#[test]
fn more_series_than_the_limit_are_noted() {
    let mut text = "[upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:1\"\n".to_owned();
    for client in 0..20 {
        text += &format!(
            "[[client]]\nname = \"c{client}\"\nmatch = {{ header = {{ x = \"c{client}\" }} }}\n"
        );
    }
    for route in 0..4 {
        text += &format!(
            "[[route]]\nname = \"r{route}\"\nrest = \"GET /{route}\"\nrpc = \"r{route}\"\n"
        );
    }
    let of = |more: &str| {
        let folder = folder(&[("dualgauge.toml", &format!("{text}{more}"))]);
        check(&folder.path().join("dualgauge.toml"), &[]).stdout
    };
    let limited = of("[metrics]\nseries = 5000\n");
    assert!(limited.contains("note: "), "{limited}");
    assert!(
        limited.contains("as soon as each client has called each route; the limit is 5000"),
        "{limited}"
    );
    let left_out = of(
        "[metrics]\nseries = 5000\n[metrics.labels]\ndualgauge_call_duration_seconds = [\"route\"]\n\
         dualgauge_upstream_duration_seconds = [\"route\"]\n",
    );
    assert!(!left_out.contains("the limit is 5000"), "{left_out}");
    assert!(left_out.contains("at most, limit 5000\n"), "{left_out}");
}
