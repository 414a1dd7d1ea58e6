//! The list of tools of a server for the command `rest`, which a signal can stop. Used by `import`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::{DiscoverAnswer, DiscoverError, DiscoverServer, LARGEST, MOST_PAGES, SourceDocument};
use dualgauge_model::import::printable;

/// The MCP revision that is offered; a server replies with the one it speaks.
const MCP: &str = "2025-06-18";
/// The longest name of a server that is shown.
const LONGEST_NAME: usize = 100;

impl DiscoverServer {
    /// Lists the tools and returns them with the name of the server, unless a signal to stop comes first.
    ///
    /// # Errors
    /// Those of [`DiscoverServer::ask`], and [`DiscoverError::Interrupted`].
    pub(in crate::cli::import) fn ask_for_tools(
        &self,
        limit: Duration,
    ) -> Result<(SourceDocument, Option<String>), DiscoverError> {
        let unreachable = |source| DiscoverError::Unreachable(self.name(), source);
        let asking = async {
            let mut terminated = signal(SignalKind::terminate()).map_err(unreachable)?;
            tokio::select! {
                listed = self.named_tools() => listed,
                _ = tokio::signal::ctrl_c() => Err(DiscoverError::Interrupted),
                _ = terminated.recv() => Err(DiscoverError::Interrupted),
            }
        };
        self.in_time(limit, asking)
    }

    async fn named_tools(&self) -> Result<(SourceDocument, Option<String>), DiscoverError> {
        let document = self.tools().await?;
        // A server without a name has tools all the same.
        let greeting = self.call("initialize", greeting(), &self.headers).await;
        let name = greeting.ok().and_then(|answer| {
            let server = answer.result.get("serverInfo")?;
            let names = ["title", "name"].into_iter();
            let mut names = names.filter_map(|member| server.get(member)?.as_str());
            let name = names.find(|name| !name.trim().is_empty())?;
            Some(printable(name).chars().take(LONGEST_NAME).collect())
        });
        Ok((document, name))
    }
}

/// Collects the pages of a list of tools into one document. `next` asks for the page with the given params.
pub(super) async fn all_pages(
    mut answer: DiscoverAnswer,
    mut next: impl AsyncFnMut(Value) -> Result<DiscoverAnswer, DiscoverError>,
) -> Result<Value, DiscoverError> {
    let mut tools = Vec::new();
    let mut cursors = BTreeSet::new();
    let mut size = answer.size;
    while cursors.len() < MOST_PAGES {
        let page = answer.result.get_mut("tools").map(Value::take);
        let Some(Value::Array(page)) = page else {
            return Err(DiscoverError::NoRpc("tools/list"));
        };
        tools.extend(page);
        let cursor = answer.result.get("nextCursor").and_then(Value::as_str);
        let cursor = cursor.filter(|cursor| !cursor.is_empty());
        // A repeated cursor would lead to the same pages again.
        let cursor = cursor.map(str::to_owned);
        let Some(cursor) = cursor.filter(|cursor| cursors.insert(cursor.clone())) else {
            return Ok(json!({ "tools": tools }));
        };
        answer = next(json!({ "cursor": cursor })).await?;
        size += answer.size;
        if size > LARGEST {
            return Err(DiscoverError::TooLargeTogether);
        }
    }
    Err(DiscoverError::TooManyPages)
}

/// Returns the params of `initialize`.
pub(in crate::cli::import) fn greeting() -> Value {
    json!({
        "protocolVersion": MCP,
        "capabilities": {},
        "clientInfo": { "name": "dualgauge", "version": env!("CARGO_PKG_VERSION") },
    })
}
