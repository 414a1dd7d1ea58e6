//! The documented defaults are those of the code: setting a default does not change the plan, setting another value
//! does.

use std::fs;
use std::path::Path;

use super::Fixture;
use crate::config::compile::compile;
use crate::config::flags::parse_flags;

const REST: &str = "[upstream.old]\nside = 'rest'\nurls = ['http://127.0.0.1:1', 'http://127.0.0.1:2']\nhealth = { path = '/' }\n\
    breaker = {}\n";
const RPC: &str = "[upstream.old]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n";
const SERVED: &str =
    "[upstream.old]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n[rpc]\nwebsocket = true\n";
const CARD: &str = "[upstream.old]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n[rpc]\nagent_card = '/card'\n[listen]\n\
    public_url = 'https://agent.example'\n";
const ROUTED: &str = "[upstream.old]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n[[route]]\nname = 'a'\nrest = 'GET /a'\n\
    rpc = 'tools/call'\n";
const CHILD: &str = "[upstream.old]\nside = 'rpc'\ncommand = ['a']\n";
const PIPELINED: &str = "[upstream.old]\nside = 'rpc'\ncommand = ['a']\nmode = 'pipelined'\n";
const SOCKET: &str = "[upstream.old]\nside = 'rpc'\nurl = 'ws://127.0.0.1:3/'\n";
const OWN_SOCKETS: &str =
    "[upstream.old]\nside = 'rpc'\nurl = 'ws://127.0.0.1:3/'\nsharing = 'client'\n";
const MCP: &str =
    "[upstream.old]\nside = 'rpc'\nurl = 'http://127.0.0.1:5/mcp'\nprotocol = 'mcp'\n";
const FLAG: &str = "[[flag]]\nname = 'f'\nside = 'rest'\nstage = 'translate'\n";
const FLAG_OF_ONE: &str =
    "[[flag]]\nname = 'f'\nclient = 'a'\nside = 'rest'\nstage = 'translate'\n";
const GUARDED: &str = "[[flag]]\nname = 'f'\nside = 'rest'\nstage = 'translate'\nguard = {}\n";

/// Where flags act.
const GROUND: &str = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n[upstream.new]\nside = 'rpc'\n\
    url = 'http://127.0.0.1:2/rpc'\n[[client]]\nname = 'a'\nmatch = { header = { x-a = '*' } }\nkey = { header = 'x-b' }\n\
    [[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";

/// A table of a page: its heading, the prefix of its keys, and the configurations for its keys.
struct Documented {
    page: &'static str,
    heading: &'static str,
    prefix: &'static str,
    mains: &'static [&'static str],
}

const TABLES: [Documented; 6] = [
    Documented {
        page: "reference/configuration.md",
        heading: "## Main file",
        prefix: "",
        mains: &[REST, RPC, SERVED, CARD, SOCKET, ROUTED],
    },
    Documented {
        page: "reference/configuration.md",
        heading: "## Flags",
        prefix: "flag[0].",
        mains: &[FLAG, FLAG_OF_ONE],
    },
    Documented {
        page: "explanation/guard.md",
        heading: "| key of `guard`",
        prefix: "flag[0].guard.",
        mains: &[GUARDED],
    },
    Documented {
        page: "reference/stdio.md",
        heading: "| key",
        prefix: "upstream.old.",
        mains: &[CHILD, PIPELINED],
    },
    Documented {
        page: "reference/websocket.md",
        heading: "| key",
        prefix: "upstream.old.",
        mains: &[SOCKET, OWN_SOCKETS],
    },
    Documented {
        page: "reference/mcp.md",
        heading: "| key",
        prefix: "upstream.old.",
        mains: &[MCP, RPC],
    },
];

/// Keys that are not in a plan, since they are read at the start of the process; the last two have no effect with one
/// upstream, or without a route.
const ELSEWHERE: [&str; 11] = [
    "include",
    "listen.",
    "admin.",
    "log.",
    "trace.",
    "record.",
    "rollout.state",
    "rollout.store.",
    "rollout.source.",
    "upstream.old.default",
    "deprecated.",
];

/// Returns the texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the keys of a table with an explicit default, each with its default as TOML.
fn defaults(table: &Documented) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs").join(table.page)).unwrap();
    let (_, behind) = page.split_once(table.heading).unwrap();
    let (section, _) = behind.split_once("\n## ").unwrap_or((behind, ""));
    let lines = section.lines().skip_while(|line| !line.starts_with("| `"));
    // A heading of the second level may have several tables.
    let is_section = table.heading.starts_with("## ");
    let lines = lines.take_while(|line| is_section || line.starts_with("| "));
    let mut found = Vec::new();
    for line in lines.filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_start_matches("| ").split(" | ");
        let (keys, cell) = (quoted(cells.next().unwrap()), cells.next().unwrap());
        let defaults = quoted(cell);
        let first = keys[0].replace("upstream.NAME.", "upstream.old.");
        for (place, key) in keys.iter().enumerate() {
            let key = match (key.strip_prefix('.'), first.rsplit_once('.')) {
                (Some(last), Some((table, _))) => format!("{table}.{last}"),
                _ => key.replace("upstream.NAME.", "upstream.old."),
            };
            let value = match defaults.len() {
                1 => defaults[0],
                several if several == keys.len() => defaults[place],
                _ => continue,
            };
            if !["|", "that of", "revision"]
                .iter()
                .any(|words| cell.starts_with(words))
            {
                found.push((format!("{}{key}", table.prefix), value.to_owned()));
            }
        }
    }
    found
}

/// Returns the plan of a configuration with this key, or its problems.
fn plan(main: &str, key: &str, value: Option<&str>) -> Result<String, String> {
    let mut text: toml::Value = toml::Value::Table(main.parse().unwrap());
    if let Some(value) = value {
        let value: toml::Table = format!("value = {value}").parse().unwrap();
        super::documented::put(&mut text, key, value["value"].clone());
    }
    let text = toml::to_string(&text).unwrap();
    let (main, flags) = if key.starts_with("flag[") {
        (GROUND.to_owned(), text)
    } else {
        (text, String::new())
    };
    let flags = parse_flags(Path::new("flags.toml"), &flags).map_err(|all| all.to_string())?;
    let config = Fixture::new(&main).load().map_err(|all| all.to_string())?;
    let plan = compile(&config, &flags).map_err(|all| all.to_string())?;
    Ok(format!("{plan:?}"))
}

/// Values other than the default; the first accepted one is used.
fn others(default: &str) -> Vec<String> {
    if let Ok(number) = default.parse::<u64>() {
        return vec![
            (number + 1).to_string(),
            number.saturating_sub(1).to_string(),
            number.saturating_sub(2).to_string(),
        ];
    }
    if let Ok(number) = default.parse::<i64>() {
        return vec![(number - 1).to_string()];
    }
    if let Ok(number) = default.parse::<f64>() {
        return vec![format!("{:.3}", number * 1.5)];
    }
    let words = [
        "11s",
        "7m",
        "77KiB",
        "drop",
        "mcp",
        "none",
        "client",
        "pipelined",
        "in",
        "reject",
        "auto",
        "2025-11-25",
        "a",
        "rpc",
        "off",
        "always-200",
        "broadcast",
        "sse",
        "decline",
        "content-length",
    ];
    let words = words.map(|word| format!("'{word}'"));
    let more = [
        "true",
        "false",
        "0.25",
        "[]",
        "['/other']",
        "['x']",
        "['1.0']",
        "{ x-a = 'b' }",
        "{ A = 'b' }",
    ];
    let more = more.map(str::to_owned);
    words
        .into_iter()
        .chain(more)
        .filter(|other| other.trim_matches('\'') != default.trim_matches('"'))
        .collect()
}

/// Returns whether the value is the default of the key in this configuration, and another value is not.
fn holds(main: &str, key: &str, default: &str) -> bool {
    let without = plan(main, key, None).unwrap();
    let changes = |other: &String| plan(main, key, Some(other)).is_ok_and(|plan| plan != without);
    plan(main, key, Some(default)).is_ok_and(|plan| plan == without)
        && others(default).iter().any(changes)
}

#[test]
fn a_default_of_the_documentation_is_the_default() {
    let (mut held, mut faults) = (0, Vec::new());
    for table in TABLES {
        for (key, default) in defaults(&table) {
            if ELSEWHERE.iter().any(|start| key.starts_with(start)) {
                continue;
            }
            let mut mains = table.mains.iter();
            if !mains.any(|main| holds(main, &key, &default)) {
                let reported = plan(table.mains[0], &key, Some(&default)).err();
                let reported = reported.unwrap_or_else(|| {
                    format!("{default} is not the default, or nothing else is taken")
                });
                faults.push(format!("{} {key}: {reported}", table.page));
            }
            held += 1;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(held > 90, "only {held} defaults were held to the code");
}
