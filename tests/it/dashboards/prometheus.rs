//! A real Prometheus, which scrapes a real proxy in traffic of every kind.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::expressions::{NOTHING, boards, with_data};
use super::town::Town;
use super::{read, root};
use crate::support::{Wire, becomes, eventually};

/// A program that `.ci/install-prometheus` has put beside what cargo builds.
fn installed(name: &str) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dualgauge"));
    let target = program.parent().unwrap().parent().unwrap();
    let program = target.join("prometheus/usr/bin").join(name);
    assert!(
        program.exists(),
        "{program:?} is not there: run .ci/install-prometheus"
    );
    program
}

/// A Prometheus of the test's own, in a folder of its own.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    /// With the configuration of `deploy/`, but for the address of the proxy and its haste.
    fn before(admin: SocketAddr) -> Prometheus {
        let folder = tempfile::tempdir().unwrap();
        let shipped = read("deploy/prometheus/prometheus.yml");
        let config = shipped
            .replace("dualgauge:9090", &admin.to_string())
            .replace("15s", "500ms");
        assert!(
            config.contains(&admin.to_string()) && config.contains("500ms"),
            "{config}"
        );
        fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        for rules in ["recording.rules.yml", "alerts.rules.yml"] {
            let from = root("deploy/prometheus").join(rules);
            fs::copy(from, folder.path().join(rules)).unwrap();
        }
        // Somebody else may take a port between the look and the start.
        for _ in 0..20 {
            let free = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap();
            if let Some(child) = Prometheus::run(&folder, free) {
                return Prometheus {
                    child,
                    address: free,
                    _folder: folder,
                };
            }
        }
        panic!("Prometheus does not start");
    }

    /// Runs until it is ready; none where it has ended instead.
    fn run(folder: &TempDir, address: SocketAddr) -> Option<Child> {
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut child = Command::new(installed("prometheus"))
            .arg(format!(
                "--config.file={}",
                folder.path().join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let is_ready = eventually("Prometheus is ready or has ended", || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            TcpStream::connect(address).ok()?;
            let ready = ask(address, "GET", "/-/ready", "");
            ready.contains("is Ready").then_some(true)
        });
        if !is_ready {
            eprintln!("{}", fs::read_to_string(folder.path().join("log")).unwrap());
        }
        is_ready.then_some(child)
    }

    fn get(&self, path: &str) -> Value {
        let answer: Value = serde_json::from_str(&ask(self.address, "GET", path, "")).unwrap();
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// Whether an expression has a value that is a number; where it has one even of nothing, another one than zero. One
    /// that Prometheus does not understand fails the test.
    fn has_data(&self, place: &str, expression: &str) -> bool {
        let form = format!("query={}", encoded(expression));
        let answer = ask(self.address, "POST", "/api/v1/query", &form);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["status"], "success", "{place}: {answer}");
        let samples = answer["data"]["result"].as_array().unwrap();
        let of_nothing = if expression.contains(NOTHING) {
            "0"
        } else {
            "NaN"
        };
        let values = samples.iter().map(|sample| &sample["value"][1]);
        values
            .filter(|value| *value != "NaN")
            .any(|value| value != of_nothing)
    }

    /// The state of each alert that is not quiet.
    fn alerts(&self) -> Vec<(String, String)> {
        let alerts = self.get("/api/v1/alerts");
        let alerts = alerts["alerts"].as_array().unwrap().iter().map(|alert| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&alert["labels"]["alertname"]), text(&alert["state"]))
        });
        alerts.collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(address: SocketAddr, method: &str, path: &str, form: &str) -> String {
    let mut wire = Wire::connect(address);
    let length = form.len();
    wire.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}"
    ));
    wire.read_answer_to(method).text().to_owned()
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Runs promtool in the folder of the rules.
fn promtool(arguments: &[&str], input: &str) {
    let mut child = Command::new(installed("promtool"))
        .args(arguments)
        .current_dir(root("deploy/prometheus"))
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
    let ended = child.wait_with_output().unwrap();
    let said = [ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(
        ended.status.success(),
        "promtool {arguments:?}: {}",
        said.concat()
    );
}

#[test]
#[ignore = "needs prometheus"]
fn the_rules_are_sound_and_do_what_their_unit_tests_say() {
    promtool(&["check", "config", "prometheus.yml"], "");
    promtool(
        &[
            "check",
            "rules",
            "--lint=all",
            "--lint-fatal",
            "recording.rules.yml",
            "alerts.rules.yml",
        ],
        "",
    );
    promtool(&["test", "rules", "rules.test.yml", "alerts.test.yml"], "");
}

#[test]
#[ignore = "needs prometheus"]
fn every_expression_of_every_panel_and_rule_has_data() {
    let town = Town::found();
    let prometheus = Prometheus::before(town.proxy.admin());
    // It sees a count rise only where it has seen it before.
    let reloads = "dualgauge_plan_reloads_total";
    eventually("a scrape", || {
        prometheus.has_data("", reloads).then_some(())
    });
    town.begin();
    let mut missing = with_data();
    assert!(missing.len() > 100, "{}", missing.len());
    let look = || {
        town.round();
        missing.retain(|(place, expression)| !prometheus.has_data(place, expression));
        missing.clone()
    };
    becomes(look, &Vec::new());
    for (metric, label) in boards().iter().flat_map(|board| board.asked_labels()) {
        let path = format!("/api/v1/label/{label}/values?match[]={metric}");
        let values = prometheus.get(&path);
        assert!(!values.as_array().unwrap().is_empty(), "{path}");
    }
    let rules = prometheus.get("/api/v1/rules");
    for group in rules["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            assert_eq!(rule["health"], "ok", "{rule}");
        }
    }
    // What has happened at once is told at once, and what may yet pass is waited for.
    for (name, state) in [
        ("DualgaugeGuardTripped", "firing"),
        ("DualgaugeReloadFailed", "firing"),
        ("DualgaugeNewWayWorse", "pending"),
        ("DualgaugeMismatches", "pending"),
        ("DualgaugeRetiredCalled", "pending"),
    ] {
        let wanted = (name.to_owned(), state.to_owned());
        eventually(name, || prometheus.alerts().contains(&wanted).then_some(()));
    }
    promtool(&["check", "metrics"], town.proxy.metrics().text());
}
