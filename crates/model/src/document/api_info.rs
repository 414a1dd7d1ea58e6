//! The properties of an API that its routes do not say: its title, and the credentials of its callers.
//!
//! Used by `app::control::views`, `cli::routes`, `config::compile::local`, `document::openapi` and `document::openrpc`.

use serde_json::{Map, Value, json};

use crate::rollout::{Authentication, Clients, Matcher};

/// The title of a document without a configured one.
pub const TITLE: &str = "dualgauge";

/// The title of an API, and the ways to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiInfo {
    title: String,
    schemes: Vec<SecurityScheme>,
}

/// A way to authenticate, any of which suffices.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SecurityScheme {
    /// An API key in this header.
    ApiKey(String),
    /// A bearer token.
    Bearer(Bearer),
    /// An API key as the password of HTTP Basic.
    Basic,
    /// A client certificate.
    Certificate,
}

/// The accepted bearer tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearer {
    Key,
    Token,
    Either,
}

impl Default for ApiInfo {
    fn default() -> ApiInfo {
        ApiInfo {
            title: TITLE.to_owned(),
            schemes: Vec::new(),
        }
    }
}

impl ApiInfo {
    /// Returns the properties of an API whose callers are these clients.
    #[must_use]
    pub fn of_clients(clients: &Clients) -> ApiInfo {
        ApiInfo {
            schemes: schemes(clients),
            ..ApiInfo::default()
        }
    }

    /// Returns the same properties with another title.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> ApiInfo {
        ApiInfo {
            title: title.into(),
            ..self
        }
    }

    /// Returns the `info` object. Route tables have no version of their own.
    pub(super) fn info(&self) -> Value {
        json!({ "title": self.title, "version": "1" })
    }

    /// Adds the ways to authenticate to an OpenAPI document, if credentials are required.
    pub(super) fn secure(&self, document: &mut Value) {
        if self.schemes.is_empty() {
            return;
        }
        let described = self.schemes.iter().map(SecurityScheme::described);
        let described: Map<String, Value> = described
            .map(|(name, scheme)| (name.to_owned(), scheme))
            .collect();
        let names = self.schemes.iter().map(|scheme| scheme.described().0);
        document["security"] = names.map(|name| json!({ name: [] })).collect();
        document["components"]["securitySchemes"] = described.into();
    }
}

/// Returns the schemes of the clients; none if credentials are not required.
fn schemes(clients: &Clients) -> Vec<SecurityScheme> {
    if clients.authentication() == Authentication::Off {
        return Vec::new();
    }
    let has = |fits: fn(&Matcher) -> bool| clients.all().iter().any(|client| fits(&client.matcher));
    let has_keys = has(|matcher| matches!(matcher, Matcher::ApiKey(_)));
    let has_tokens = has(|matcher| matches!(matcher, Matcher::Claims(_)));
    let forms = clients.api_keys().forms;
    let mut schemes = Vec::new();
    if has_keys {
        schemes.push(SecurityScheme::ApiKey(
            clients.api_key().as_str().to_owned(),
        ));
    }
    match (has_keys && forms.bearer, has_tokens) {
        (true, true) => schemes.push(SecurityScheme::Bearer(Bearer::Either)),
        (true, false) => schemes.push(SecurityScheme::Bearer(Bearer::Key)),
        (false, true) => schemes.push(SecurityScheme::Bearer(Bearer::Token)),
        (false, false) => {}
    }
    if has_keys && forms.basic {
        schemes.push(SecurityScheme::Basic);
    }
    if has(|matcher| matches!(matcher, Matcher::Subject(_))) {
        schemes.push(SecurityScheme::Certificate);
    }
    schemes
}

impl SecurityScheme {
    /// Returns the name and the object of the scheme (OpenAPI 3.1 §4.8.27).
    fn described(&self) -> (&'static str, Value) {
        match self {
            SecurityScheme::ApiKey(header) => (
                "apiKey",
                json!({ "type": "apiKey", "in": "header", "name": header }),
            ),
            SecurityScheme::Bearer(accepted) => {
                let text = match accepted {
                    Bearer::Key => "The API key as a bearer token",
                    Bearer::Token => "A signed token",
                    Bearer::Either => "A signed token, or the API key",
                };
                let scheme = json!({ "type": "http", "scheme": "bearer", "description": text });
                ("bearer", scheme)
            }
            SecurityScheme::Basic => {
                let text = "The API key as the password, with any user name";
                let scheme = json!({ "type": "http", "scheme": "basic", "description": text });
                ("basic", scheme)
            }
            SecurityScheme::Certificate => ("certificate", json!({ "type": "mutualTLS" })),
        }
    }
}
