//! taplo, the language server behind editors of TOML, with the schemas that files name in their first line.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{DUALGAUGE, Ended, ROOT, files, python_tool, run, succeed};

fn lint(paths: &[impl AsRef<Path>]) -> Ended {
    let mut taplo = python_tool("taplo");
    taplo.args(["lint", "--no-auto-config", "--colors", "never"]);
    run(taplo.args(paths.iter().map(AsRef::as_ref)))
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn taplo_finds_nothing_in_shipped_configurations() {
    let root = Path::new(ROOT);
    let mut shipped = files(&root.join("config"), "toml");
    shipped.extend(files(&root.join("deploy"), "toml"));
    assert!(shipped.len() > 40, "{shipped:?}");
    let linted = lint(&shipped);
    assert!(linted.is_success, "{}", linted.text);
    let total = format!("total={}", shipped.len());
    assert!(linted.text.contains(&total), "{}", linted.text);
}

/// Mistakes: the kind of file, its text, and a part of the message.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("dualgauge", "[limts]\nbody = '1MiB'\n", "limts"),
    (
        "dualgauge",
        "[listen]\nadress = '127.0.0.1:8080'\n",
        "adress",
    ),
    ("dualgauge", "[limits]\nbody = true\n", "true"),
    ("dualgauge", "[listen]\nworkers = 'many'\n", "many"),
    (
        "dualgauge",
        "[upstream.a]\nurl = 'http://a'\n",
        "\"side\" is a required property",
    ),
    (
        "dualgauge",
        "[upstream.a]\nside = 'soap'\nurl = 'http://a'\n",
        "soap",
    ),
    ("dualgauge", "unrouted = 'drop'\n", "drop"),
    (
        "dualgauge",
        "[[client]]\nname = 'a'\nmatch = { agent = 'a' }\n",
        "agent",
    ),
    ("routes", "[limits]\nbody = '1MiB'\n", "limits"),
    (
        "routes",
        "[[route]]\nrest = 'GET /a'\nrpc = 'a'\n",
        "\"name\" is a required property",
    ),
    (
        "routes",
        "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\neffect = 'none'\n",
        "none",
    ),
    (
        "routes",
        "[[route]]\nname = 7\nrest = 'GET /a'\nrpc = 'a'\n",
        "7",
    ),
    (
        "flags",
        "[[flag]]\nname = 'a'\n",
        "\"stage\" is a required property",
    ),
    (
        "flags",
        "[[flag]]\nname = 'a'\nstage = 'translated'\n",
        "translated",
    ),
    (
        "flags",
        "[[flag]]\nname = 'a'\nstage = 'shadow'\npercent = 'half'\n",
        "half",
    ),
    (
        "flags",
        "[[flags]]\nname = 'a'\nstage = 'shadow'\n",
        "flags",
    ),
];

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn taplo_finds_planted_mistakes_in_a_written_kit() {
    let folder = tempfile::tempdir().unwrap();
    let mut kit = Command::new(DUALGAUGE);
    succeed(kit.args(["kit", "a2a", "--write"]).arg(folder.path()));
    let written = lint(&files(folder.path(), "toml"));
    assert!(written.is_success, "{}", written.text);
    for (kind, text, part) in MISTAKES {
        let file = folder.path().join(format!("{kind}.toml"));
        fs::write(&file, format!("#:schema ./{kind}.schema.json\n{text}")).unwrap();
        let linted = lint(&[file]);
        let mut lines = linted.text.lines();
        let is_found = lines.any(|line| line.starts_with("error: ") && line.contains(part));
        assert!(is_found && !linted.is_success, "{text}\n{}", linted.text);
    }
}
