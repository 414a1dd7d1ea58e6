//! The list of tools of a server for the command `rest`, which a signal can stop. Used by `import`.

use std::collections::BTreeSet;
use std::time::Duration;

use http::header::HeaderValue;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::{DiscoverAnswer, DiscoverError, DiscoverServer, MOST_PAGES, SourceDocument};
use crate::cli::import::limits::LARGEST;
use dualgauge_model::import::{DocumentKind, printable};

/// The MCP revision that is offered; a server replies with the one it speaks.
const MCP: &str = "2025-06-18";
/// The stateless revision.
const STATELESS: &str = "2026-07-28";
/// The member of `_meta` with the server information in stateless revisions.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The longest name of a server that is shown.
const LONGEST_NAME: usize = 100;

impl DiscoverServer {
    /// Lists the tools and returns them with the name of the server, unless a signal to stop or a loss comes first.
    ///
    /// # Errors
    /// Those of [`DiscoverServer::ask`], [`DiscoverError::Interrupted`] and [`DiscoverError::Lost`].
    pub(in crate::cli::import) fn ask_for_tools(
        &self,
        limit: Duration,
        loss: impl Future<Output = String>,
    ) -> Result<(SourceDocument, Option<String>), DiscoverError> {
        let unreachable = |source| DiscoverError::Unreachable(self.name(), source);
        let asking = async {
            let mut terminated = signal(SignalKind::terminate()).map_err(unreachable)?;
            tokio::select! {
                listed = self.named_tools() => listed,
                loss = loss => Err(DiscoverError::Lost(loss)),
                _ = tokio::signal::ctrl_c() => Err(DiscoverError::Interrupted),
                _ = terminated.recv() => Err(DiscoverError::Interrupted),
            }
        };
        self.in_time(limit, asking)
    }

    async fn named_tools(&self) -> Result<(SourceDocument, Option<String>), DiscoverError> {
        let document = match self.stateless("tools/list", json!({})).await {
            Ok(first) => {
                let next = async |params| self.stateless("tools/list", params).await;
                let document = all_pages(first, next).await?;
                self.given("tools/list", DocumentKind::Tools, document)
            }
            Err(fault) if fault.is_refusal() => self.tools().await?,
            Err(fault) => return Err(fault),
        };
        // A server without a name has tools all the same.
        let discovered = self.stateless("server/discover", json!({})).await;
        let name = discovered.ok().and_then(|answer| {
            let server = answer.result.get("_meta")?.get(SERVER_INFO)?;
            let names = ["title", "name"].into_iter();
            let mut names = names.filter_map(|member| server.get(member)?.as_str());
            let name = names.find(|name| !name.trim().is_empty())?;
            Some(printable(name).chars().take(LONGEST_NAME).collect())
        });
        Ok((document, name))
    }
}

impl DiscoverServer {
    /// Sends a call of the stateless revision. The proxy, which serves it for any server, counts it as no call with a
    /// handshake.
    async fn stateless(
        &self,
        method: &'static str,
        mut params: Value,
    ) -> Result<DiscoverAnswer, DiscoverError> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": own_name(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut headers = self.headers.clone();
        headers.insert("mcp-protocol-version", HeaderValue::from_static(STATELESS));
        headers.insert("mcp-method", HeaderValue::from_static(method));
        self.call(method, params, &headers).await
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
        "clientInfo": own_name(),
    })
}

/// Returns the name and version of this program, as MCP declares them.
fn own_name() -> Value {
    json!({ "name": "dualgauge", "version": env!("CARGO_PKG_VERSION") })
}
