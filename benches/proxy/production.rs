//! The configuration that the proxy is measured with: what production has on, and as many routes, flags and clients as said.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::work::Kind;

/// How much there is of everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Routes; the last one is called.
    pub(crate) routes: usize,
    /// Flags; the last two, or the only one, are those of the calls that are measured.
    pub(crate) flags: usize,
    /// Clients that have a name; the last one calls.
    pub(crate) clients: usize,
    /// Threads of the proxy.
    pub(crate) workers: usize,
    /// Percent of the calls that are shadowed; none where absent.
    pub(crate) shadow: Option<u32>,
    /// Percent of the calls that are recorded; none where absent.
    pub(crate) recorded: Option<u32>,
    /// True if recordings have bodies.
    pub(crate) bodies: bool,
}

impl Extent {
    /// That of production.
    pub(crate) const PRODUCTION: Extent = Extent {
        routes: 200,
        flags: 50,
        clients: 100,
        workers: 1,
        shadow: None,
        recorded: None,
        bodies: false,
    };

    /// That of production, with a recording of one call in a hundred.
    pub(crate) const RECORDED: Extent = Extent {
        recorded: Some(1),
        ..Extent::PRODUCTION
    };

    /// The same with the bodies of these calls.
    pub(crate) const RECORDED_BODIES: Extent = Extent {
        bodies: true,
        ..Extent::RECORDED
    };
}

/// Writes the files of one kind of work into a folder, and says where the configuration is. `listen` and `upstream`
/// are `host:port`, or what a harness replaces by them.
pub(crate) fn write(
    folder: &Path,
    extent: &Extent,
    kind: Kind,
    (listen, upstream): (&str, &str),
) -> io::Result<PathBuf> {
    let flags = flags_in(&fs::canonicalize(folder)?, kind);
    fs::write(&flags, flags_of(extent, kind))?;
    let mut text = format!(
        "[listen]\naddress = \"{listen}\"\nworkers = {}\n\n[admin]\naddress = \"127.0.0.1:0\"\n\n\
         [upstream.old]\nside = \"rest\"\nurl = \"http://{upstream}\"\n\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{upstream}/rpc\"\n\n\
         [log]\nformat = \"json\"\nlevel = \"info\"\n\n\
         [rollout]\nstate = \"state/\"\nflags = \"{}\"\n\n",
        extent.workers,
        flags.display(),
    );
    if let Some(percent) = extent.shadow {
        let _ = write!(text, "[rollout.candidates]\nsample = {percent}\n\n");
    }
    if let Some(percent) = extent.recorded {
        let _ = write!(
            text,
            "[record]\ndirectory = \"recordings/\"\nsample = {percent}\nbodies = {}\n\n",
            extent.bodies
        );
    }
    clients(&mut text, extent.clients);
    routes(&mut text, extent, kind);
    let path = folder.join(format!("{}.toml", kind.name()));
    fs::write(&path, text)?;
    Ok(path)
}

fn clients(text: &mut String, count: usize) {
    for number in 1..count {
        let _ = write!(
            text,
            "[[client]]\nname = \"client-{number}\"\nmatch = {{ header = {{ x-client-id = \"client-{number}\" }} }}\n\
             key = {{ header = \"x-device-id\" }}\n\n"
        );
    }
    text.push_str(
        "[[client]]\nname = \"bench\"\nmatch = { user_agent = \"bench-load/*\" }\nkey = \"address\"\n\n",
    );
}

/// A tool as `dualgauge mcp` drafts it.
const TOOL: &str = r#"[[route]]
name = "tools.call"
rest = "POST /forecasts/{place}?days={days:integer}"
rpc = "tools/call"
body = { remark = "{remark:string?}" }
params = { name = "forecast", arguments = { place = "{place}", days = "{days}", remark = "{remark}" } }
result = "tool"
title = "Forecast"
schema.validate = false
schema.params = '{"properties":{"arguments":{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer"},"remark":{"type":"string"}},"required":["place","days"]}}}'
schema.result = '{"type":"object"}'
"#;

fn routes(text: &mut String, extent: &Extent, kind: Kind) {
    for number in 1..extent.routes {
        let area = number / 5;
        let (rest, rpc) = match number % 5 {
            0 => (format!("GET /api/v1/area{area}/items"), "list"),
            1 => (format!("GET /api/v1/area{area}/items/{{id}}"), "get"),
            2 => (format!("POST /api/v1/area{area}/items"), "create"),
            3 => (format!("DELETE /api/v1/area{area}/items/{{id}}"), "delete"),
            _ => (
                format!("GET /api/v1/area{area}/find?q={{query}}&limit={{limit:integer=50}}"),
                "find",
            ),
        };
        let _ = write!(
            text,
            "[[route]]\nname = \"route.{number}\"\nrest = \"{rest}\"\nrpc = \"area{area}/{rpc}\"\n\n"
        );
    }
    text.push_str(match kind {
        Kind::Pass | Kind::RestToRpc | Kind::RpcToRest => {
            "[[route]]\nname = \"tools.call\"\nrest = \"POST /mcp/v1/tools/call\"\nrpc = \"tools/call\"\n"
        }
        Kind::ToolToRest => TOOL,
    });
    if extent.shadow.is_some() {
        // Only what may be done twice has candidates, and a POST says so itself.
        text.push_str("effect = \"safe\"\n");
    }
}

/// Writes one more flag, so that the files are read again.
pub(crate) fn change(folder: &Path, kind: Kind) -> io::Result<()> {
    let mut flags = fs::OpenOptions::new()
        .append(true)
        .open(flags_in(folder, kind))?;
    let late = "[[flag]]\nname = \"late\"\nclient = \"client-1\"\nroute = \"route.1\"\nstage = \"passthrough\"\n";
    io::Write::write_all(&mut flags, late.as_bytes())
}

/// The file of the flags.
fn flags_in(folder: &Path, kind: Kind) -> PathBuf {
    folder.join(format!("{}.flags.toml", kind.name()))
}

fn flags_of(extent: &Extent, kind: Kind) -> String {
    let mut text = String::new();
    for number in 0..extent.flags.saturating_sub(2) {
        let client = match extent.clients - 1 {
            0 => "bench".to_owned(),
            others => format!("client-{}", 1 + number % others),
        };
        let _ = write!(
            text,
            "[[flag]]\nname = \"flag-{number}\"\nclient = \"{client}\"\nroute = \"route.{}\"\n\
             side = \"rest\"\nstage = \"translate\"\npercent = 25\n\n",
            1 + number % (extent.routes - 1).max(1),
        );
    }
    let plain = if extent.shadow.is_some() {
        "shadow"
    } else {
        "passthrough"
    };
    let stage = |translated| if translated { "translate" } else { plain };
    let own = [
        ("rest", stage(kind == Kind::RestToRpc)),
        ("rpc", stage(kind.is_rpc())),
    ];
    let called = if kind.is_rpc() { "rpc" } else { "rest" };
    for (side, stage) in own {
        if extent.flags < own.len() && side != called {
            continue;
        }
        let _ = write!(
            text,
            "[[flag]]\nname = \"bench-{side}\"\nclient = \"bench\"\nroute = \"tools.call\"\nside = \"{side}\"\n\
             stage = \"{stage}\"\n\n"
        );
    }
    text
}
