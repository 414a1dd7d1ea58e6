//! Flags flipped through the admin API and through their file, and reloads, while calls go on.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Message, Proxy, Upstream, becomes, eventually, program, rest_only, run_to_end,
};
use crate::two_servers::{MOVER, Servers, answers};

const PASSTHROUGH: &str = r#"{"stage":"passthrough","percent":100}"#;

/// A proxy where calls of `mover` go to the other side.
fn moving(servers: &Servers) -> Proxy {
    Proxy::start_with_flags(&servers.config(), MOVER)
}

fn write(proxy: &Proxy, file: &str, text: &str) {
    fs::write(proxy.folder().join(file), text).unwrap();
}

/// The part of an answer, which must have this status, that a JSON pointer names.
fn part(answer: &Message, status: u16, pointer: &str) -> Value {
    assert_eq!(answer.status(), status, "{answer:?}");
    answer
        .json()
        .pointer(pointer)
        .unwrap_or_else(|| panic!("no {pointer} in {answer:?}"))
        .clone()
}

fn failed_reloads(proxy: &Proxy) -> f64 {
    let metrics = proxy.metrics();
    metrics.value(r#"dualgauge_plan_reloads_total{result="failed"}"#)
}

/// How often a text is in the log.
fn times(proxy: &Proxy, text: &str) -> usize {
    proxy.log().matches(text).count()
}

#[test]
fn a_put_flips_a_flag_for_the_very_next_call() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    for _ in 0..3 {
        assert_eq!(answers(&proxy, "mover"), "rpc");
        let flip = r#"{"stage":"passthrough","percent":100,"who":"anna"}"#;
        let flag = proxy.ask("PUT", "/api/v1/flags/mover", flip);
        assert_eq!(part(&flag, 200, "/stage"), "passthrough");
        assert_eq!(part(&flag, 200, "/file/stage"), "translate");
        assert_eq!(part(&flag, 200, "/flipped/who"), "anna");
        assert_eq!(answers(&proxy, "mover"), "rest");
        let flip = r#"{"stage":"translate","percent":100}"#;
        proxy.ask("PUT", "/api/v1/flags/mover", flip);
    }
    proxy.log_line(&["the rollout was changed", "flag=mover", "who=anna"]);
}

#[test]
fn a_flip_acts_on_a_connection_that_is_open_already() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    let mut client = proxy.connect();
    let call = "GET /things/7 HTTP/1.1\r\nHost: a\r\nx-client-id: mover\r\n\r\n";
    client.send(call);
    assert_eq!(client.read_answer().json(), json!({"by": "rpc"}));
    proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);
    client.send(call);
    assert_eq!(client.read_answer().json(), json!({"by": "rest"}));
}

#[test]
fn a_flip_survives_a_restart() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);

    let proxy = proxy.restart();
    assert_eq!(answers(&proxy, "mover"), "rest");
    let flag = proxy.ask("GET", "/api/v1/flags/mover", "");
    assert_eq!(part(&flag, 200, "/stage"), "passthrough");

    proxy.ask("DELETE", "/api/v1/flags/mover", "");
    assert_eq!(answers(&proxy.restart(), "mover"), "rpc");
}

#[test]
fn a_command_at_the_port_for_calls_says_so_and_changes_nothing_there() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    let port = format!("http://{}", proxy.address());
    for command in [
        &["flags", "set", "mover", "passthrough"][..],
        &["flags"],
        &["mismatches"],
        &["reload"],
    ] {
        let mut command = program(&[command, &["--admin", &port]].concat());
        let ended = run_to_end({
            command.env("DUALGAUGE_TOKEN", "secret");
            command
        });
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.errors.contains("is not an admin listener"),
            "{ended:?}"
        );
        assert!(ended.errors.contains("`admin.address`"), "{ended:?}");
    }
    for request in servers.rest.requests() {
        assert_eq!(request.head.start, "GET /healthz HTTP/1.1");
        assert_eq!(request.head.one("authorization"), None);
    }
    let admin = format!("http://{}", proxy.admin());
    let set = run_to_end(program(&[
        "flags",
        "set",
        "mover",
        "passthrough",
        "--admin",
        &admin,
    ]));
    assert_eq!(set.code, Some(0), "{set:?}");
    let flag = proxy.ask("GET", "/api/v1/flags/mover", "");
    assert_eq!(part(&flag, 200, "/percent"), 100);
}

#[test]
fn the_kill_switch_acts_although_it_cannot_be_stored() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    let obstacle = proxy.folder().join("state/rollout.json.new");
    fs::create_dir(&obstacle).unwrap();
    let admin = format!("http://{}", proxy.admin());
    let killed = run_to_end(program(&[
        "flags", "kill", "--who", "anna", "--admin", &admin,
    ]));
    assert_eq!(killed.code, Some(0), "{killed:?}");
    let lines: Vec<&str> = killed.output.lines().collect();
    assert!(lines[0].starts_with("KILL SWITCH ON since "), "{killed:?}");
    assert!(
        lines[1].starts_with("  NOT STORED YET: it acts in this process only"),
        "{killed:?}"
    );
    assert_eq!(answers(&proxy, "mover"), "rest");
    let again = proxy.ask("PUT", "/api/v1/kill", "{}");
    let error = part(&again, 202, "/kill_unstored");
    assert!(
        error.as_str().unwrap().contains("rollout.json.new"),
        "{error}"
    );
    proxy.log_line(&["ERROR", "the kill switch is on, but not stored"]);
    fs::remove_dir(&obstacle).unwrap();
    let stored = || {
        let flags = proxy.ask("GET", "/api/v1/flags", "").json();
        flags.get("kill_unstored").is_none()
    };
    becomes(stored, &true);
    assert_eq!(answers(&proxy.restart(), "mover"), "rest");
}

#[test]
fn a_delete_gives_a_flag_back_to_its_file() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);
    assert_eq!(answers(&proxy, "mover"), "rest");
    let flag = proxy.ask("DELETE", "/api/v1/flags/mover", "");
    assert_eq!(part(&flag, 200, "/stage"), "translate");
    assert_eq!(part(&flag, 200, "/flipped"), Value::Null);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    // What is not flipped is given back as well.
    let again = proxy.ask("DELETE", "/api/v1/flags/mover", "");
    assert_eq!(part(&again, 200, "/stage"), "translate");
}

#[test]
fn flags_are_listed_in_their_order_and_each_alone() {
    let servers = Servers::start();
    let flags = format!(
        "{MOVER}[[flag]]\nname = \"b\"\nside = \"rpc\"\nstage = \"retired\"\npercent = 0\n"
    );
    let proxy = Proxy::start_with_flags(&servers.config(), &flags);
    let list = proxy.ask("GET", "/api/v1/flags", "");
    assert_eq!(list.head.one("content-type"), Some("application/json"));
    let mover = json!({
        "name": "mover", "client": "mover", "route": "*", "side": null,
        "stage": "translate", "percent": 100, "without_key": "out",
        "file": {"stage": "translate", "percent": 100}, "flipped": null, "tripped": null, "guard": null, "ramp": null,
        "tag": part(&list, 200, "/flags/0/tag"),
    });
    assert_eq!(part(&list, 200, "/revision"), 0);
    assert_eq!(part(&list, 200, "/flags/0"), mover);
    assert_eq!(part(&list, 200, "/flags/1/name"), "b");
    assert_eq!(part(&list, 200, "/flags/1/side"), "rpc");
    assert_eq!(part(&list, 200, "/flags/1/percent"), 0);
    let alone = proxy.ask("GET", "/api/v1/flags/mover", "");
    assert_eq!(part(&alone, 200, ""), mover);

    proxy.ask(
        "PUT",
        "/api/v1/flags/b",
        r#"{"stage":"retired","percent":100}"#,
    );
    let list = proxy.ask("GET", "/api/v1/flags", "");
    assert_eq!(part(&list, 200, "/revision"), 1);
    assert_eq!(part(&list, 200, "/flags/1/percent"), 100);
}

#[test]
fn an_unknown_flag_is_404_with_the_nearest_name() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    for (method, body) in [("GET", ""), ("PUT", PASSTHROUGH), ("DELETE", "")] {
        let answer = proxy.ask(method, "/api/v1/flags/mvoer", body);
        assert_eq!(part(&answer, 404, "/hint"), "did you mean `mover`?");
        let kind = answer.head.one("content-type");
        assert_eq!(kind, Some("application/problem+json"));
    }
    assert_eq!(answers(&proxy, "mover"), "rpc");
}

#[test]
fn a_stage_that_cannot_run_is_422_and_changes_nothing() {
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let route = "[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n";
    let flag = "[[flag]]\nname = \"all\"\nside = \"rest\"\nstage = \"passthrough\"\n";
    let proxy = Proxy::start_with_flags(&format!("{}{route}", rest_only(&upstream)), flag);
    let translate = r#"{"stage":"translate","percent":100}"#;
    let answer = proxy.ask("PUT", "/api/v1/flags/all", translate);
    assert_eq!(part(&answer, 422, "/problems/0/place"), "flip of `all`");
    let message = part(&answer, 422, "/problems/0/message");
    assert!(
        message.as_str().unwrap().contains("none is configured"),
        "{message}"
    );
    assert_eq!(proxy.rest("GET", "/a", &[], "").status(), 204);
    let list = proxy.ask("GET", "/api/v1/flags", "");
    assert_eq!(part(&list, 200, "/revision"), 0);

    // Who is to be told apart for a share?
    let share = proxy.ask(
        "PUT",
        "/api/v1/flags/all",
        r#"{"stage":"passthrough","percent":5}"#,
    );
    let key = part(&share, 422, "/problems/0/key");
    assert!(key.as_str().unwrap().ends_with("percent"), "{share:?}");
}

#[test]
fn a_flip_that_cannot_be_understood_names_every_member_and_changes_nothing() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    let flip = r#"{"stage":"translat","percent":101,"what":"x"}"#;
    let answer = proxy.ask("PUT", "/api/v1/flags/mover", flip);
    let places: Vec<Value> = part(&answer, 400, "/problems")
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["place"].clone())
        .collect();
    assert_eq!(places, ["what", "stage", "percent"]);
    let answer = proxy.ask("PUT", "/api/v1/flags/mover", "{");
    assert_eq!(part(&answer, 400, "/problems/0/place"), "body");
    assert_eq!(answers(&proxy, "mover"), "rpc");
}

#[test]
fn an_edit_of_the_flags_file_acts_by_itself() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    write(
        &proxy,
        "flags.toml",
        &MOVER.replace("translate", "passthrough"),
    );
    let stage = || proxy.ask("GET", "/api/v1/flags/mover", "").json()["stage"].clone();
    becomes(stage, &json!("passthrough"));
    assert_eq!(answers(&proxy, "mover"), "rest");
    let reloads = r#"dualgauge_plan_reloads_total{result="ok"}"#;
    assert_eq!(proxy.metrics().value(reloads), 1.0);
    proxy.log_line(&["is reloaded and in force"]);
}

#[test]
fn an_edit_of_a_flag_is_over_its_flip_and_says_so() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);
    write(&proxy, "flags.toml", &MOVER.replace("translate", "retired"));
    let stage = || proxy.ask("GET", "/api/v1/flags/mover", "").json()["stage"].clone();
    becomes(stage, &json!("retired"));
    proxy.log_line(&[
        "a runtime change is dropped: the flag was edited",
        "flag=mover",
    ]);
    let call = proxy.rest("GET", "/things/7", &[("x-client-id", "mover")], "");
    assert_eq!(call.status(), 410);
}

#[test]
fn a_flag_that_is_not_edited_keeps_its_flip_over_a_reload() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);
    let more = format!("{MOVER}[[flag]]\nname = \"b\"\nstage = \"retired\"\nside = \"rpc\"\n");
    write(&proxy, "flags.toml", &more);
    eventually("the new flag", || {
        let flag = proxy.ask("GET", "/api/v1/flags/b", "");
        (flag.status() == 200).then_some(())
    });
    assert_eq!(answers(&proxy, "mover"), "rest");
}

#[test]
fn a_bad_edit_of_the_flags_file_keeps_what_was_in_force() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    write(
        &proxy,
        "flags.toml",
        &MOVER.replace("translate", "sideways"),
    );
    let line = proxy.log_line(&["ERROR", "flag[0].stage"]);
    assert!(line.contains("/flags.toml:4: "), "{line}");
    becomes(|| failed_reloads(&proxy), &1.0);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    let ready = proxy.ask("GET", "/readyz", "");
    assert_eq!(ready.status(), 200);
    assert!(ready.text().contains("has problems"), "{ready:?}");
    // A flip still works over what is in force.
    let flag = proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);
    assert_eq!(part(&flag, 200, "/stage"), "passthrough");
    assert_eq!(answers(&proxy, "mover"), "rest");

    write(&proxy, "flags.toml", MOVER);
    becomes(
        || proxy.ask("GET", "/readyz", "").text().to_owned(),
        &"ready\n".to_owned(),
    );
    assert_eq!(failed_reloads(&proxy), 1.0);
}

#[test]
fn a_bad_edit_of_the_main_file_keeps_what_was_in_force() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    let main = fs::read_to_string(proxy.folder().join("dualgauge.toml")).unwrap();
    let bad = main
        .replace("rpc = \"things/read\"", "rcp = \"things/read\"")
        .replace("GET /things/{id}", "GET /things/{id");
    write(&proxy, "dualgauge.toml", &bad);
    let line = proxy.log_line(&["ERROR", "route[0].rcp"]);
    assert!(line.contains("did you mean `rpc`?"), "{line}");
    assert!(line.contains("/dualgauge.toml:"), "{line}");
    becomes(|| failed_reloads(&proxy), &1.0);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    assert_eq!(answers(&proxy, "other"), "rest");
}

#[test]
fn a_hang_up_reads_the_files_at_once() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    proxy.signal("HUP");
    // Only who asks is told that nothing is new.
    proxy.log_line(&["is reloaded and unchanged"]);
    write(
        &proxy,
        "flags.toml",
        &MOVER.replace("translate", "passthrough"),
    );
    proxy.signal("HUP");
    proxy.log_line(&["is reloaded and in force"]);
    becomes(|| answers(&proxy, "mover"), &"rest".to_owned());
}

#[test]
fn a_hang_up_does_not_list_problems_again_that_are_in_the_log() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    write(
        &proxy,
        "flags.toml",
        &MOVER.replace("translate", "sideways"),
    );
    becomes(|| failed_reloads(&proxy), &1.0);
    proxy.signal("HUP");
    proxy.log_line(&["still has the problems", "problems=1"]);
    assert_eq!(times(&proxy, "`sideways`"), 1, "{}", proxy.log());
    let kept = "the previous configuration stays in force";
    assert_eq!(times(&proxy, kept), 1, "{}", proxy.log());
    assert_eq!(failed_reloads(&proxy), 2.0);

    // Another problem is a new list.
    write(&proxy, "flags.toml", &MOVER.replace("translate", "upwards"));
    proxy.log_line(&["`upwards`"]);
    becomes(|| times(&proxy, kept), &2);
}

#[test]
fn a_connection_and_a_call_that_are_open_during_a_reload_go_on() {
    let upstream = Upstream::start();
    let route = "[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n";
    let flag = "[[flag]]\nname = \"all\"\nside = \"rest\"\nstage = \"passthrough\"\n";
    let proxy = Proxy::start_with_flags(&format!("{}{route}", rest_only(&upstream)), flag);
    let call = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = proxy.connect();
    client.send(call);
    let mut server = upstream.accept();
    server.read_request();

    write(
        &proxy,
        "flags.toml",
        &flag.replace("passthrough", "retired"),
    );
    proxy.signal("HUP");
    let stage = || proxy.ask("GET", "/api/v1/flags/all", "").json()["stage"].clone();
    becomes(stage, &json!("retired"));

    // The call keeps the plan that it began with, the next one has the new plan.
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
    assert_eq!(client.read_answer().text(), "old");
    client.send(call);
    assert_eq!(client.read_answer().status(), 410);
    // An upstream that did not change keeps its connections.
    client.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(server.read_request().head.start, "GET /b HTTP/1.1");
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
    assert_eq!(client.read_answer().text(), "b");
}

#[test]
fn the_api_reads_the_files_again_and_tells_what_came_of_it() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    let reload = || {
        proxy.ask(
            "POST",
            "/api/v1/reload",
            r#"{"who":"anna","why":"new route"}"#,
        )
    };
    assert_eq!(part(&reload(), 200, "/reloads"), 0);
    let config = fs::read_to_string(proxy.folder().join("dualgauge.toml")).unwrap();
    write(&proxy, "flags.toml", "");
    let told = reload();
    assert_eq!(part(&told, 200, "/flags"), 0);
    assert_eq!(answers(&proxy, "mover"), "rest");
    write(&proxy, "dualgauge.toml", &format!("{config}\n[nonsense]\n"));
    let told = reload();
    assert_eq!(part(&told, 422, "/problems/0/key"), "nonsense");
    assert_eq!(answers(&proxy, "mover"), "rest");
    let readiness = proxy.ask("GET", "/readyz", "");
    assert_eq!(readiness.status(), 200, "{readiness:?}");
    assert!(readiness.text().contains("the configuration has problems"));
    let other = proxy.ask_raw(&format!(
        "POST /api/v1/reload HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}",
        proxy.admin()
    ));
    assert_eq!(other.status(), 415);
    proxy.log_line(&[
        "read again for the admin API",
        "who=anna",
        "why=\"new route\"",
    ]);
}

#[test]
fn a_fifo_in_the_place_of_the_flags_file_blocks_nothing() {
    let servers = Servers::start();
    let proxy = moving(&servers);
    let file = proxy.folder().join("flags.toml");
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    proxy.log_line(&["ERROR", "flags.toml", "not a regular file"]);
    assert_eq!(proxy.ask("GET", "/readyz", "").status(), 200);
    let flag = proxy.ask("PUT", "/api/v1/flags/mover", PASSTHROUGH);
    assert_eq!(part(&flag, 200, "/stage"), "passthrough");
    fs::remove_file(&file).unwrap();
    write(&proxy, "flags.toml", MOVER);
    becomes(
        || proxy.ask("GET", "/readyz", "").text().to_owned(),
        &"ready\n".to_owned(),
    );
}
