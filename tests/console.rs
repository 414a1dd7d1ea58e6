//! The console in a headless browser, used as a person would use it, before the proxy of `dualgauge demo`.
//!
//! Each script of `tests/console` looks at one page: in both colour schemes, on a screen of 400 pixels, with axe, and
//! without any request to another origin. `.ci/install-console` installs the browser; the tests are ignored unless they
//! are asked for. With `CONSOLE_SHOTS=docs/how-to/console` they make the pictures of the documents.

#![expect(
    clippy::unwrap_used,
    reason = "a program that does not do as the test says fails the test"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// One browser at a time: several would make each other slow.
static BROWSER: Mutex<()> = Mutex::new(());

/// The kind of build, since the limits of times are those of release builds.
const BUILD: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(asked.unwrap().success());
        self.0.wait().unwrap();
    }
}

/// A proxy with its addresses, and the folder of its files.
struct Started {
    _process: Process,
    calls: String,
    admin: String,
    folder: PathBuf,
}

/// Starts a proxy and waits for its line `serving …, admin …`. Without a folder, another line names it.
fn start(command: &mut Command, folder: Option<&Path>) -> Started {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let process = Process(child);
    let (mut addresses, mut found) = (None, folder.map(Path::to_owned));
    while addresses.is_none() || found.is_none() {
        let line = lines.next().unwrap().unwrap();
        let told = line.strip_prefix("serving http://");
        if let Some((calls, admin)) = told.and_then(|told| told.split_once(", admin http://")) {
            addresses = Some((calls.to_owned(), admin.to_owned()));
        }
        if let Some((_, rest)) = line.split_once("The configuration is in ") {
            let path = rest.split(". ").next().unwrap();
            found = Some(PathBuf::from(path));
        }
    }
    // A process that cannot write its output would stop.
    thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    let (calls, admin) = addresses.unwrap();
    Started {
        _process: process,
        calls,
        admin,
        folder: found.unwrap(),
    }
}

fn dualgauge() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dualgauge"))
}

/// Runs a script of `tests/console` with a proxy.
fn run(script: &str, proxy: &Started) {
    let own = Path::new(env!("CARGO_BIN_EXE_dualgauge"));
    let npm = own.ancestors().nth(2).unwrap().join("console-npm");
    assert!(
        npm.exists(),
        "{} is missing; run .ci/install-console",
        npm.display()
    );
    let status = Command::new("node")
        .arg(format!("tests/console/{script}.mjs"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CONSOLE_NPM", npm)
        .env("CONSOLE_URL", format!("http://{}", proxy.admin))
        .env("CONSOLE_CALLS", format!("http://{}", proxy.calls))
        .env("CONSOLE_FOLDER", &proxy.folder)
        .env("CONSOLE_BUILD", BUILD)
        .status();
    assert!(status.unwrap().success(), "{script}");
}

/// Starts the demo.
fn start_demo(options: &[&str]) -> Started {
    let mut command = dualgauge();
    command.args(["demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    start(command.args(options), None)
}

/// Runs a script with the demo.
fn demo(script: &str) {
    let _turn = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    run(script, &start_demo(&[]));
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn the_overview_shows_shares_attention_and_clients_live() {
    demo("overview");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_person_flips_undoes_loses_a_race_rearms_and_kills() {
    demo("flags");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_difference_is_opened_and_its_ignore_rule_copied() {
    demo("differences");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn clients_are_found_with_their_stages_and_errors() {
    demo("clients");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_route_shows_both_sides_and_its_verdict() {
    demo("routes");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_pasted_call_is_explained_with_live_flips() {
    demo("explain");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn problems_of_a_reload_are_shown_by_file_and_line() {
    demo("configuration");
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_recording_is_started_watched_and_stopped() {
    demo("recording");
}

/// Runs `dualgauge` and returns its exit code, its output and its errors.
fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let done = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_har_file_of_a_browser_is_explained_replayed_and_learnt_from() {
    let _turn = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let proxy = start_demo(&["--no-traffic"]);
    run("har", &proxy);
    let file = proxy.folder.join("browser.har");

    let config = proxy.folder.join("dualgauge.toml");
    let mut replay = dualgauge();
    replay.arg("replay").arg(&file).arg("--config").arg(config);
    let (code, told, errors) = output(replay.args(["--unsafe", "--format", "json"]));
    assert_eq!(code, Some(1), "{told} {errors}");
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let calls = |route: &str| {
        let route = &told["routes"][route];
        [&route["calls"], &route["different"]].map(|count| count.as_u64())
    };
    // The old server refuses a form by its own means; the new one describes a tool differently.
    assert_eq!(calls("tools.call"), [Some(3), Some(1)], "{told:#}");
    assert_eq!(calls("tools.list"), [Some(1), Some(1)], "{told:#}");
    let skipped = told["skipped"].as_array().unwrap().iter();
    let skipped: Vec<_> = skipped
        .map(|one| (&one["reason"], &one["numbers"]))
        .collect();
    let skipped = serde_json::to_value(skipped).unwrap();
    // Chromium does not report the bytes of a file.
    let wanted = serde_json::json!([
        ["body_not_recorded", [6, 7]],
        ["unrouted", [1]],
        ["unrouted", [8]]
    ]);
    assert_eq!(skipped, wanted, "{told:#}");

    let (code, draft, errors) = output(dualgauge().arg("learn").arg(&file));
    assert_eq!(code, Some(0), "{draft} {errors}");
    for part in [
        "rest = \"POST /mcp/v1/tools/call\"",
        "rest = \"POST /mcp/v1/tools/list\"",
        "# guess: from 5 observed calls",
    ] {
        assert!(draft.contains(part), "{part}: {draft}");
    }
    assert!(errors.contains("left out 2 calls"), "{errors}");
}

/// Runs a script with a proxy. The configuration begins with keys of `[admin]`.
fn configured(script: &str, config: &str) {
    let _turn = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let listen = "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n";
    fs::write(&file, format!("{listen}{config}")).unwrap();
    let mut command = dualgauge();
    command.arg("run").arg("--config").arg(file);
    run(script, &start(&mut command, Some(folder.path())));
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn a_token_is_asked_for_and_stays_in_its_tab() {
    // The digest of `secret`.
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    configured(
        "token",
        &format!(
            "tokens = {{ anna = \"sha256:{hash}\" }}\n\
             [upstream.old]\nside = \"rest\"\nurl = \"http://127.0.0.1:9\"\n"
        ),
    );
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn the_page_of_an_openapi_document_sends_a_call_with_any_value() {
    let server = start_server();
    configured(
        "docs",
        &format!(
            "[upstream.old]\nside = \"rest\"\nurl = \"http://{server}\"\n\
             [[route]]\nname = \"files.read\"\nrest = \"GET /files/{{path=**}}\"\nrpc = \"files/read\"\n\
             [[route]]\nname = \"items.read\"\nrest = \"GET /größe/{{id}}\"\nrpc = \"items/read\"\n\
             [[local]]\nrest = \"GET /openapi.json\"\nanswer = \"openapi\"\n\
             [[local]]\nrest = \"GET /docs\"\nanswer = \"docs\"\n"
        ),
    );
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn upstreams_that_are_away_are_shown_as_missing_for_readiness() {
    let health = "health = { path = \"/healthz\", every = \"1s\", down_after = 1 }";
    // Nothing listens at an address that was free.
    let away = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = away.local_addr().unwrap();
    drop(away);
    configured(
        "readiness",
        &format!(
            "ready_upstreams = [\"old\"]\n\
             [upstream.old]\nside = \"rest\"\nurl = \"http://{address}\"\n{health}\n\
             [upstream.new]\nside = \"rpc\"\nurl = \"ws://{address}/rpc\"\n"
        ),
    );
}

/// Starts a server for both sides, whose responses differ.
fn start_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // The proxy closes its connections when it ends.
            thread::spawn(|| drop(serve(stream.unwrap())));
        }
    });
    address
}

/// Serves the requests of a connection to its end.
fn serve(stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let is_rpc = line.starts_with("POST");
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        line.clear();
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = match is_rpc {
            true => {
                let call: serde_json::Value = serde_json::from_slice(&body)?;
                let id = &call["id"];
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"name":"new","size":2,"same":true}}}}"#
                )
            }
            false => r#"{"name":"old","size":1,"same":true}"#.to_owned(),
        };
        let length = body.len();
        stream.write_all(
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
                .as_bytes(),
        )?;
    }
    Ok(())
}

/// Starts a proxy with ten thousand routes and clients and a thousand flags.
fn start_large(folder: &Path) -> Started {
    write_large(folder, start_server());
    let mut command = dualgauge();
    command
        .arg("run")
        .arg("--config")
        .arg(folder.join("dualgauge.toml"));
    start(&mut command, Some(folder))
}

/// Writes a configuration with so many routes, flags and clients. One route has many outcomes and examples, and there are many upstreams
/// and files.
fn write_large(folder: &Path, server: SocketAddr) {
    let mut tables = String::new();
    let mut flags = String::new();
    for index in 0..10_000 {
        let area = index / 100;
        let _ = write!(
            tables,
            "[[client]]\nname = \"app-{index:05}\"\nmatch = {{ header = {{ x-client-id = \"app-{index:05}\" }} }}\n\
             key = {{ header = \"x-device\" }}\n\
             [[route]]\nname = \"area{area:03}.call{index:05}\"\nrest = \"GET /area{area:03}/call{index:05}/{{id}}\"\n\
             rpc = \"area{area:03}/call{index:05}\"\n"
        );
        // Many flags match one client, and few of them take its calls.
        let (client, percent) = if index < 2000 { (1, 1) } else { (index, 100) };
        if index % 10 == 0 {
            let _ = write!(
                flags,
                "[[flag]]\nname = \"wave-{index:05}\"\nclient = \"app-{client:05}\"\nstage = \"shadow\"\npercent = {percent}\n"
            );
        }
    }
    // They belong to the last route.
    for code in 0..150 {
        let _ = write!(
            tables,
            "[[route.outcome]]\nrest = {{ status = 422, body = {{ error = \"e{code}\" }} }}\nrpc = {{ error = {{ code = {code} }} }}\n\
             [[route.example]]\nrest = {{ call = \"GET /area099/call09999/{code}\" }}\n\
             rpc = {{ method = \"area099/call09999\", params = {{ id = \"{code}\" }} }}\n\
             [upstream.other-{code}]\nside = \"rest\"\nurl = \"http://127.0.0.1:9\"\n"
        );
        fs::write(folder.join(format!("part-{code:03}.toml")), "").unwrap();
    }
    let config = format!(
        "include = [\"part-*.toml\"]\n\
         [listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [upstream.old]\nside = \"rest\"\nurl = \"http://{server}\"\ndefault = true\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{server}/rpc\"\n\
         [rollout]\nflags = \"flags.toml\"\nstate = \"state/\"\n[rollout.candidates]\nconcurrency = 1000\n[record]\ndirectory = \"recordings\"\n[log]\nlevel = \"error\"\n{tables}"
    );
    fs::write(folder.join("dualgauge.toml"), config).unwrap();
    fs::write(folder.join("flags.toml"), flags).unwrap();
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn ten_thousand_routes_and_clients_and_a_thousand_flags_are_shown_in_pages() {
    let _turn = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    run("large", &start_large(folder.path()));
}

#[test]
#[ignore = "needs what .ci/install-console installs"]
fn each_page_of_the_api_is_quick_with_ten_thousand_routes_while_the_proxy_serves_calls() {
    let _turn = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    run("times", &start_large(folder.path()));
}
