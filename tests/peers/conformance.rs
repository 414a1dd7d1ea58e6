//! The official conformance suites of MCP: a server behind a link passes the scenarios that a server of the suite's own
//! revision passes by itself, whichever revision the server behind the link speaks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::installed::{Linked, node, own};
use crate::processes::{installed, started};

/// The checks that a link prevents, with the reasons: `SUITE SERVER SCENARIO CHECK: reason`.
const KNOWN: &str = "tests/data/mcp/conformance.txt";

/// Scenarios of a suite: its name, its folder, the options that choose the scenarios, and the server that passes them.
struct Suite {
    name: &'static str,
    folder: &'static str,
    options: &'static [&'static str],
    server: usize,
}

/// Versions 0.1.16 and 0.2.0-alpha.12 of the suites; the latter has other scenarios for 2026-07-28.
const SUITES: [Suite; 3] = [
    Suite {
        name: "0.1.16",
        folder: "conformance-1",
        options: &[],
        server: 0,
    },
    Suite {
        name: "0.2.0",
        folder: "conformance-2",
        options: &[],
        server: 0,
    },
    Suite {
        name: "2026-07-28",
        folder: "conformance-2",
        options: &["--requirements", "2026-07-28"],
        server: 1,
    },
];

/// The servers: the name, the script, and the packages of its library. Each serves one era.
const SERVERS: [(&str, &str, &str); 2] = [
    ("typescript-1", "conformance.mjs", "peers-npm"),
    ("typescript-2", "conformance_second.mjs", "peers-eras"),
];

/// The checks that passed, each with its scenario, and the names of the scenarios that failed and count.
struct Report {
    passed: BTreeSet<String>,
    failed: Vec<String>,
}

/// Runs the scenarios of a suite for servers.
fn run(suite: &Suite, url: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let packages = installed("peers-npm");
    let program = packages.join("node_modules").join(suite.folder);
    let ended = Command::new(node(&packages))
        .arg(program.join("dist/index.js"))
        .args(["server", "--url", url, "--output-dir"])
        .arg(folder.path())
        .args(suite.options)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    let (_, summary) = text
        .split_once("=== SUMMARY ===")
        .unwrap_or_else(|| panic!("{}: {text}{errors}", suite.name));
    // Extensions, and scenarios that no revision requires yet, run as well.
    let (summary, unscored) = summary.split_once("Not scored").unwrap_or((summary, ""));
    let counts = |name: &&str| !unscored.contains(&format!(" {name} ("));
    let failed = summary.lines().filter_map(|line| line.strip_prefix("✗ "));
    let failed = failed.filter_map(|line| Some(line.split_once(':')?.0));
    let mut passed = BTreeSet::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let scenario = &name["server-".len()..name.len() - "-2026-11-27T15-08-39-822Z".len()];
        if counts(&scenario) {
            let checks = passed_checks(&path.join("checks.json"));
            passed.extend(checks.map(|check| format!("{scenario} {check}")));
        }
    }
    let failed = failed.filter(counts).map(str::to_owned).collect();
    Report { passed, failed }
}

/// Returns the names of the checks of one scenario that passed each time.
fn passed_checks(file: &Path) -> impl Iterator<Item = String> + use<> {
    let all: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut checks = BTreeMap::new();
    for check in all.as_array().unwrap() {
        let name = check["id"].as_str().unwrap().to_owned();
        let status = check["status"].as_str().unwrap();
        // Others only inform, or do not apply to the server.
        if ["SUCCESS", "FAILURE", "WARNING"].contains(&status) {
            *checks.entry(name).or_insert(true) &= status == "SUCCESS";
        }
    }
    let passed = checks.into_iter().filter(|(_, passed)| *passed);
    passed.map(|(name, _)| name)
}

/// The checks that passed with a server, directly and through a link, by the index of the suite.
type Passed = Vec<(usize, BTreeSet<String>)>;

/// Runs the suites of its own with a server, and all suites through a link.
fn serve(index: usize) -> (Passed, Passed) {
    let (_, script, packages) = SERVERS[index];
    let packages = installed(packages);
    let mut server = Command::new(node(&packages));
    server.arg(own("tests/data/mcp").join(script));
    server.arg(packages.join("package.json"));
    let (_process, port) = started(&mut server, "");
    let direct = format!("http://127.0.0.1:{}/mcp", port.trim());
    let link = Linked::before(&direct);
    let suites = SUITES.iter().enumerate();
    let own = suites.clone().filter(|(_, suite)| suite.server == index);
    let passed = own.map(|(number, suite)| {
        let report = run(suite, &direct);
        assert!(
            report.failed.is_empty(),
            "{}: {:?}",
            suite.name,
            report.failed
        );
        (number, report.passed)
    });
    let passed = passed.collect();
    let linked = suites.map(|(number, suite)| (number, run(suite, &link.url).passed));
    (passed, linked.collect())
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_link_keeps_the_conformance_of_its_server() {
    let runs: Vec<(Passed, Passed)> = thread::scope(|scope| {
        let running = [0, 1].map(|index| scope.spawn(move || serve(index)));
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let direct = |number: usize| {
        let all = runs.iter().flat_map(|(direct, _)| direct);
        let mut all = all.filter(|(of, _)| *of == number);
        &all.next().unwrap().1
    };
    let mut lost = BTreeSet::new();
    for ((server, _, _), (_, linked)) in SERVERS.iter().zip(&runs) {
        for (number, kept) in linked {
            let (suite, direct) = (SUITES[*number].name, direct(*number));
            assert!(!direct.is_empty(), "{suite}");
            let missing = direct.difference(kept);
            let missing: Vec<String> = missing
                .map(|name| format!("{suite} {server} {name}"))
                .collect();
            let kept = direct.len() - missing.len();
            eprintln!("{suite} {server}: {kept} of {} checks", direct.len());
            lost.extend(missing);
        }
    }
    let known = fs::read_to_string(own(KNOWN)).unwrap();
    let known = known.lines().filter(|line| !line.starts_with('#'));
    let known = known.filter_map(|line| line.split_once(": "));
    let known: BTreeSet<String> = known.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(lost, known, "{KNOWN}");
}
