//! The route file with tools, written as TOML. Used by `import::tools`.

use serde_json::{Map, Value};

use super::texts::limited;
use crate::import::refs::{shown, text};
use crate::import::table::Table;
use crate::import::write::{comment, quoted, write_routes, write_schemas};

/// The MCP server that the local replies announce.
pub(super) struct AnnouncedServer {
    name: String,
    title: Option<String>,
    version: Option<String>,
    instructions: Option<String>,
}

impl AnnouncedServer {
    /// Returns the server of the first document that has a title.
    pub(super) fn new<'d>(
        name: Option<&str>,
        documents: impl Iterator<Item = &'d Value>,
    ) -> AnnouncedServer {
        let infos = documents.filter_map(|document| document.get("info"));
        let info = infos.into_iter().next().unwrap_or(&Value::Null);
        let title = text(info, "title")
            .map(shown)
            .filter(|title| !title.is_empty());
        let own = name.map(shown).or_else(|| title.clone());
        AnnouncedServer {
            name: own.unwrap_or_else(|| "dualgauge".to_owned()),
            title: title.filter(|_| name.is_some()),
            version: text(info, "version")
                .map(shown)
                .filter(|version| !version.is_empty()),
            instructions: limited(info, "description"),
        }
    }

    fn write(&self, out: &mut String) {
        let mut members = vec![format!("name = {}", quoted(&self.name))];
        members.extend(
            self.title
                .iter()
                .map(|title| format!("title = {}", quoted(title))),
        );
        members.extend(
            self.version
                .iter()
                .map(|version| format!("version = {}", quoted(version))),
        );
        let server = format!("server = {{ {} }}\n", members.join(", "));
        for (method, answer) in [
            ("initialize", "initialize"),
            ("server/discover", "discover"),
        ] {
            out.push_str(&format!(
                "\n[[local]]\nrpc = \"{method}\"\nanswer = \"{answer}\"\n"
            ));
            out.push_str(&server);
            if let Some(instructions) = &self.instructions {
                out.push_str(&format!("instructions = {}\n", quoted(instructions)));
            }
        }
        out.push_str(REPLIES);
    }
}

/// The replies of every MCP server without a stream of its own.
const REPLIES: &str = r#"
[[local]]
rpc = "tools/list"
answer = "tools"

[[local]]
rpc = "ping"
answer = { result = {} }

[[local]]
rpc = "notifications/*"
answer = "none"

[[local]]
rest = "GET /mcp"
answer = { status = 405, headers = { allow = "POST" } }

[[local]]
rest = "DELETE /mcp"
answer = { status = 405, headers = { allow = "POST" } }
"#;

/// Renders a whole route file.
pub(super) fn write(
    names: &[&str],
    server: &AnnouncedServer,
    table: &Table,
    shared: &Map<String, Value>,
) -> String {
    let mut out = String::new();
    let mut line = |words: &str| comment(words, &mut out);
    line("Tools for MCP clients, drafted by dualgauge from");
    for name in names {
        line(&format!("  {}", shown(name)));
    }
    line("");
    line(
        "The configuration with the REST upstream names this file in `include`; `dualgauge check` checks both.",
    );
    for note in &table.notes {
        line(&format!("look: {note}"));
    }
    server.write(&mut out);
    write_routes(table, &mut out);
    write_schemas(shared, &mut out);
    out
}
