//! Server information of MCP: the responses to `initialize` and to `server/discover`.
//!
//! Laws: if the server supports the client's version, that is agreed; else the server offers its newest version, and
//! the client accepts or disconnects (MCP 2025-11-25, "Lifecycle", "Version Negotiation").
//!
//! Used by `config`, `mcp`, `routing` and `upstream`.

use serde_json::{Map, Value, json};

use crate::jsonrpc::ErrorObject;
use dualgauge_patterns::json::Json;

/// The revisions with an `initialize` handshake, oldest first.
pub const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revisions without sessions, oldest first.
pub const STATELESS: [&str; 1] = ["2026-07-28"];

/// The member with the server information in revisions without sessions.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// "Invalid params", JSON-RPC 2.0 §5.1.
const INVALID_PARAMS: i64 = -32602;

/// The server information.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServerInfo {
    /// The supported revisions, oldest first; at least one.
    pub versions: Vec<String>,
    /// The capabilities.
    pub capabilities: Map<String, Value>,
    /// Name, version and further information about the server.
    pub server: Map<String, Value>,
    /// Instructions for the model.
    pub instructions: Option<String>,
}

impl McpServerInfo {
    /// Returns the result of `initialize`.
    ///
    /// # Errors
    /// An error object if the params name no version.
    pub fn initialize(&self, params: Option<&Json>) -> Result<Json, ErrorObject> {
        let asked = params.and_then(|params| params.member("protocolVersion")?.text()?.ok());
        let Some(asked) = asked else {
            return Err(ErrorObject {
                code: INVALID_PARAMS,
                message: Json::string("`protocolVersion` is missing or not a string"),
                data: Some(self.supported()),
            });
        };
        let supported_version = self.versions.contains(&asked).then_some(&asked);
        let version = supported_version.or(self.versions.last());
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities,
            "serverInfo": self.server,
        });
        self.with_instructions(&mut result);
        Ok(Json::written(result.to_string()))
    }

    /// Returns the result of `server/discover`. It must not be cached: a reload may change it at the next call.
    #[must_use]
    pub fn discover(&self) -> Json {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": self.versions,
            "capabilities": self.capabilities,
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": { SERVER_INFO: self.server },
        });
        self.with_instructions(&mut result);
        Json::written(result.to_string())
    }

    fn supported(&self) -> Json {
        Json::written(json!({ "supported": self.versions }).to_string())
    }

    fn with_instructions(&self, result: &mut Value) {
        if let Some(instructions) = &self.instructions {
            result["instructions"] = json!(instructions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_info() -> McpServerInfo {
        McpServerInfo {
            versions: HANDSHAKES.map(str::to_owned).to_vec(),
            capabilities: Map::from_iter([("tools".to_owned(), json!({}))]),
            server: Map::from_iter([("name".to_owned(), json!("items"))]),
            instructions: None,
        }
    }

    fn parsed(json: &Json) -> Value {
        serde_json::from_slice(json.as_bytes()).unwrap()
    }

    fn params(text: &'static str) -> Json {
        Json::parse(text.into(), 8).unwrap()
    }

    #[test]
    fn a_supported_version_is_agreed_and_another_gets_the_newest() {
        for (asked, agreed) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1.0", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            let params = Json::written(json!({ "protocolVersion": asked }).to_string());
            let answer = parsed(&server_info().initialize(Some(&params)).unwrap());
            assert_eq!(answer["protocolVersion"], agreed, "{asked}");
            assert_eq!(answer["serverInfo"]["name"], "items");
            assert_eq!(answer["capabilities"], json!({ "tools": {} }));
            assert_eq!(answer.get("instructions"), None);
        }
    }

    #[test]
    fn a_client_that_names_no_version_gets_the_supported_ones() {
        for asked in [
            None,
            Some(params("{}")),
            Some(params(r#"{"protocolVersion":1}"#)),
            Some(params("[]")),
        ] {
            let error = server_info().initialize(asked.as_ref()).unwrap_err();
            assert_eq!(error.code, INVALID_PARAMS);
            assert_eq!(parsed(&error.data.unwrap())["supported"][3], "2025-11-25");
        }
    }

    #[test]
    fn discovery_returns_the_same_and_is_not_cacheable() {
        let info = McpServerInfo {
            instructions: Some("look first".to_owned()),
            ..server_info()
        };
        let answer = parsed(&info.discover());
        assert_eq!(answer["supportedVersions"][0], "2024-11-05");
        assert_eq!(answer["ttlMs"], 0);
        assert_eq!(answer["_meta"][SERVER_INFO]["name"], "items");
        assert_eq!(answer["instructions"], "look first");
    }
}
