//! Commands that ask a running process, as people use them wrongly.

use serde_json::json;

use crate::support::{Ended, Proxy, Upstream, Wire, program, run_to_end, sha256};
use crate::two_servers::{MOVER, Servers};

/// A key for the callers of `mover`, and its flag with a part of them.
fn part_of_mover(servers: &Servers) -> Proxy {
    let config = servers.config().replace(
        "match = { header = { x-client-id = \"mover\" } }",
        "match = { header = { x-client-id = \"mover\" } }\nkey = { header = \"x-device-id\" }",
    );
    Proxy::start_with_flags(&config, &format!("{MOVER}percent = 5\n"))
}

fn ask(proxy: &Proxy, command: &[&str]) -> Ended {
    let admin = format!("http://{}", proxy.admin());
    run_to_end(program(&[command, &["--admin", &admin]].concat()))
}

fn refused(proxy: &Proxy, command: &[&str]) -> String {
    let ended = ask(proxy, command);
    assert_eq!((ended.code, &*ended.output), (Some(1), ""), "{ended:?}");
    ended.errors
}

#[test]
fn a_new_stage_keeps_the_percentage_of_the_flag() {
    let servers = Servers::start();
    let proxy = part_of_mover(&servers);
    let flag = || proxy.ask("GET", "/api/v1/flags/mover", "").json();
    for (command, stage, percent) in [
        (&["shadow"][..], "shadow", json!(5)),
        (
            &["translate", "--percent", "33.333"],
            "translate",
            json!(33.333),
        ),
        (&["passthrough"], "passthrough", json!(33.333)),
    ] {
        let set = ask(&proxy, &[&["flags", "set", "mover"], command].concat());
        assert_eq!(set.code, Some(0), "{set:?}");
        let flag = flag();
        assert_eq!(
            (&flag["stage"], &flag["percent"]),
            (&json!(stage), &percent)
        );
    }
    let said = refused(&proxy, &["flags", "set", "mvoer", "translate"]);
    assert!(said.contains("hint: did you mean `mover`?"), "{said}");
}

#[test]
fn a_percentage_that_changes_meanwhile_is_not_overwritten() {
    let servers = Servers::start();
    let proxy = part_of_mover(&servers);
    let admin = proxy.admin();
    // Another person changes the flag when the command has read it.
    let between = Upstream::serving(move |request| {
        let forward = |start: &str, fields: &str, body: &str| {
            let mut wire = Wire::connect(admin);
            wire.send(format!("{start}\r\nHost: {admin}\r\n{fields}\r\n{body}"));
            wire.read_answer()
        };
        let sized = |body: &str| {
            let length = body.len();
            format!("Content-Type: application/json\r\nContent-Length: {length}\r\n")
        };
        let tag = request.head.one("if-match");
        let tag = tag.map_or_else(String::new, |tag| format!("If-Match: {tag}\r\n"));
        let fields = format!("{tag}{}", sized(request.text()));
        let answer = forward(&request.head.start, &fields, request.text());
        if request.head.start.starts_with("GET /api/v1/flags/mover ") {
            let other = r#"{"stage":"translate","percent":50}"#;
            let start = "PUT /api/v1/flags/mover HTTP/1.1";
            assert_eq!(forward(start, &sized(other), other).status(), 200);
        }
        let head = answer.head.to_string().replace('\n', "\r\n");
        [head.as_bytes(), b"\r\n", &answer.body].concat()
    });
    let between = format!("http://{}", between.address());
    let ended = run_to_end(program(&[
        "flags", "set", "mover", "shadow", "--admin", &between,
    ]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.errors.contains("the flag has changed"),
        "{}",
        ended.errors
    );
    let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
    assert_eq!(
        (&flag["stage"], &flag["percent"]),
        (&json!("translate"), &json!(50))
    );
}

#[test]
fn a_change_of_an_old_version_names_the_option_and_the_current_one() {
    let servers = Servers::start();
    let proxy = part_of_mover(&servers);
    let set = ["flags", "set", "mover", "shadow", "--if-match", "1-old"];
    let tag = proxy.ask("GET", "/api/v1/flags/mover", "").json()["tag"].clone();
    let tag = tag.as_str().unwrap();
    let expected = format!(
        "error: 412 Precondition Failed: the flag has changed; the current tag is `{tag}`\n  \
         hint: `--if-match {tag}` changes the current version"
    );
    assert_eq!(refused(&proxy, &set), expected);
    let kill = ["flags", "kill", "--if-match", tag];
    let expected = "error: 412 Precondition Failed: the rollout has changed; the current revision is `0`\n  \
                    hint: `--if-match 0` changes the current version";
    assert_eq!(refused(&proxy, &kill), expected);
}

#[test]
fn a_name_that_is_not_there_is_said_to_be_wrong() {
    let servers = Servers::start();
    let proxy = part_of_mover(&servers);
    for command in [&["mismatches"][..], &["mismatches", "--reset"], &["usage"]] {
        for format in ["human", "json"] {
            let options = ["--route", "things.raed", "--format", format];
            let said = refused(&proxy, &[command, &options].concat());
            let expected =
                "error: no route matches `--route things.raed`; did you mean `things.read`?";
            assert_eq!(said, expected, "{command:?}");
            let options = ["--route", "things.*", "--format", format];
            let ended = ask(&proxy, &[command, &options].concat());
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }
    let history = ask(&proxy, &["flags", "history", "nosuch"]);
    assert_eq!(history.output, "no change of a flag with this name");
    let history = ask(&proxy, &["flags", "history"]);
    assert_eq!(history.output, "nothing was changed yet");
}

#[test]
fn brownouts_that_are_not_announced_are_called_off_with_a_note() {
    let servers = Servers::start();
    let announced = "from = 2099-01-01, until = 2099-01-02";
    let lifecycle = format!(
        "deprecated = {{ since = 2020-01-01, brownouts = [{{ {announced} }}] }}\n\
         [[route]]\nname = \"things.list\"\nrest = \"GET /things\"\nrpc = \"things/list\"\n"
    );
    let proxy = Proxy::start_with_flags(&format!("{}{lifecycle}", servers.config()), MOVER);
    ask(&proxy, &["flags", "call-off", "things.read"]);
    let called_off = ask(&proxy, &["flags", "call-off", "things.list"]).output;
    let lines: Vec<&str> = called_off.lines().take(2).collect();
    assert_eq!(
        lines,
        [
            "brownouts called off: things.list (it announces none; see `deprecated.brownouts`)",
            "brownouts called off: things.read",
        ]
    );
}

#[test]
fn a_missing_or_unknown_token_is_told_with_the_options_for_it() {
    let servers = Servers::start();
    let hash = sha256("secret");
    let config = format!(
        "{}\n[admin]\ntokens = {{ anna = \"sha256:{hash}\" }}\n",
        servers.config()
    );
    let proxy = Proxy::start(&config);
    let hint = "  hint: set `DUALGAUGE_TOKEN` or `--token-file FILE` to a token of `admin.tokens`";
    let said = refused(&proxy, &["flags"]);
    assert_eq!(
        said,
        format!("error: 401 Unauthorized: the API needs a token\n{hint}")
    );
    let admin = format!("http://{}", proxy.admin());
    let with = |token: &str| {
        let mut command = program(&["usage", "--admin", &admin]);
        command.env("DUALGAUGE_TOKEN", token);
        run_to_end(command)
    };
    let said = with("other").errors;
    assert_eq!(
        said,
        format!("error: 401 Unauthorized: the token is not one of `admin.tokens`\n{hint}")
    );
    assert_eq!(with("secret").code, Some(0));
}
