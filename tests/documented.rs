//! What the documentation shows of the route table is what the program takes: each block is checked by it.

#![expect(
    clippy::unwrap_used,
    reason = "a program that cannot be started fails the test"
)]

#[path = "docs/pages.rs"]
mod pages;

use std::fs;
use std::path::Path;
use std::process::Command;

const MAIN: &str = "include = ['routes.toml']\n[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
    [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n";

/// The blocks of TOML in a page that declare routes, streams or events.
fn blocks(page: &str) -> Vec<&str> {
    let inside = page.split("```toml\n").skip(1);
    let blocks = inside.filter_map(|behind| Some(behind.split_once("\n```")?.0));
    blocks
        .filter(|block| {
            let declares = ["[[route]]", "[[stream]]", "[[event]]"];
            declares.iter().any(|key| block.contains(key)) && !block.contains("[upstream.")
        })
        .collect()
}

#[test]
fn every_route_in_the_documentation_passes_check() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = pages::of(&root.join("docs"));
    pages.push(root.join("README.md"));
    pages.sort();
    let mut checked = 0;
    for page in pages {
        for block in blocks(&fs::read_to_string(&page).unwrap()) {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("dualgauge.toml"), MAIN).unwrap();
            fs::write(folder.path().join("routes.toml"), block).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
                .args(["check", "--no-upgrade-notes", "--config"])
                .arg(folder.path().join("dualgauge.toml"))
                .env_clear()
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned()
                + &String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success(),
                "{}:\n{block}\n{said}",
                page.display()
            );
            checked += 1;
        }
    }
    assert!(checked >= 3, "only {checked} blocks were found");
}

/// What `check` says of a table that a main file includes, with files by their names.
fn checked(main: &str, table: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dualgauge.toml"), main).unwrap();
    fs::write(folder.path().join("routes.toml"), table).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args(["check", "-v", "--no-upgrade-notes", "--config"])
        .arg(folder.path().join("dualgauge.toml"))
        .env_clear()
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    let prefix = format!("{}/", folder.path().display());
    let said = said.concat().replace(&prefix, "");
    (output.status.success(), said.trim_end().to_owned())
}

#[test]
fn each_table_of_the_guide_to_routes_is_told_what_stands_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/how-to/write-routes.md")).unwrap();
    let blocks = page.split("\n```").skip(1).step_by(2);
    let mut main = None;
    let mut table: Option<(&str, &str)> = None;
    let mut told = 0;
    for block in blocks {
        let (kind, text) = block.split_once('\n').unwrap();
        match (kind, table) {
            ("toml", None) if text.starts_with("# dualgauge.toml\n") => main = Some(text),
            ("toml" | "toml bad", None) => table = Some((kind, text)),
            ("text", Some((kind, rows))) => {
                let (is_well, said) = checked(main.unwrap(), rows);
                assert_eq!(said, text, "{rows}");
                assert_eq!(is_well, kind == "toml", "{rows}");
                told += 1;
                table = None;
            }
            ("sh", None) => {}
            (kind, _) => panic!("`{kind}` is out of place in this guide: {text}"),
        }
    }
    assert!(told >= 8, "only {told} tables were found");
}

#[test]
fn an_old_route_that_reads_json_rpc_calls_is_refused() {
    let route = |message: &str| {
        format!(
            "[[route]]\nname = 'a'\nrpc = 'a'\nparams = {{ x = '{{x}}' }}\nold = {{ body = {message} }}\n\
             [[route.outcome]]\nold = {{ body = {{ r = '{{r}}' }} }}\nrpc = {{ result = '{{r}}' }}\n"
        )
    };
    let refused = [
        (
            "{ method = 'a', params = { x = '{x}' }, '...' = '{_}' }",
            "of the route `a`",
        ),
        (
            "{ jsonrpc = '2.0', method = 'a', params = { x = '{x}' }, id = '{id}' }",
            "of the route `a`",
        ),
        (
            "{ jsonrpc = '{_}', method = '{_}', params = { x = '{x}' }, id = '{id?}' }",
            "of the route `a`",
        ),
    ];
    for (message, what) in refused {
        let (is_well, said) = checked(MAIN, &route(message));
        assert!(!is_well, "{message}: {said}");
        assert!(said.contains(what), "{message}: {said}");
    }
    let accepted = [
        "{ method = 'a', params = { x = '{x}' }, id = '{id}' }",
        "{ jsonrpc = '1.0', method = 'a', params = { x = '{x}' } }",
        "{ jsonrpc = '2.0', method = 'b', params = { x = '{x}' }, id = '{id}' }",
        "{ jsonrpc = '2.0', method = 'a', params = { x = '{x}' }, auth = 'b', id = '{id}' }",
    ];
    for message in accepted {
        let (is_well, said) = checked(MAIN, &route(message));
        assert!(is_well, "{message}: {said}");
    }
}

#[test]
fn tables_of_published_servers_pass() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tables");
    let mut passed = 0;
    for entry in fs::read_dir(tables).unwrap() {
        let path = entry.unwrap().path();
        let (is_well, said) = checked(MAIN, &fs::read_to_string(&path).unwrap());
        assert!(is_well, "{}:\n{said}", path.display());
        passed += 1;
    }
    assert!(passed >= 6, "only {passed} tables were found");
}

/// Returns a number with a comma before each three digits.
fn grouped(number: &str) -> String {
    let from_end = number.bytes().rev().enumerate();
    let parts = from_end.flat_map(|(at, digit)| {
        let comma = (at > 0 && at % 3 == 0).then_some(',');
        comma.into_iter().chain([char::from(digit)])
    });
    let reversed: Vec<char> = parts.collect();
    reversed.into_iter().rev().collect()
}

#[test]
fn the_page_of_performance_has_the_figures_that_ci_keeps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/explanation/performance.md")).unwrap();
    let (_, section) = page.split_once("\n## Instructions per call\n").unwrap();
    let rows = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> = rows.map(|row| row.split(" | ").nth(2).unwrap()).collect();
    let figures = fs::read_to_string(root.join("benches/proxy/figures.txt")).unwrap();
    let figures = figures.lines().skip(1);
    let kept: Vec<String> = figures
        .map(|line| grouped(line.split_once(' ').unwrap().1))
        .collect();
    assert_eq!(documented, kept, "update the table from figures.txt");
}
