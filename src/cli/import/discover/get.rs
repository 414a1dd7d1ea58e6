//! What the commands `mcp` and `rest` ask a server for: a document by GET, or its tools. Used by `import`.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};

use super::{DiscoverError, DiscoverServer, LARGEST, SourceDocument};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::connection::{ConnectionFault, Sender, exchange, within};

/// The method in messages.
const GET: &str = "GET";

impl DiscoverServer {
    /// Lists the tools, unless a signal to stop comes first.
    ///
    /// # Errors
    /// Those of [`DiscoverServer::ask`], and [`DiscoverError::Interrupted`].
    pub(in crate::cli::import) fn ask_for_tools(
        &self,
        limit: Duration,
    ) -> Result<SourceDocument, DiscoverError> {
        let unreachable = |source| DiscoverError::Unreachable(self.name(), source);
        let asking = async {
            let mut terminated = signal(SignalKind::terminate()).map_err(unreachable)?;
            tokio::select! {
                document = self.tools() => document,
                _ = tokio::signal::ctrl_c() => Err(DiscoverError::Interrupted),
                _ = terminated.recv() => Err(DiscoverError::Interrupted),
            }
        };
        let outcome = within(limit, asking).map_err(unreachable)?;
        outcome.unwrap_or_else(|| {
            Err(DiscoverError::Late {
                server: self.name(),
                limit,
            })
        })
    }

    /// Gets the text at the address of the server.
    pub(in crate::cli::import) fn get(&self, limit: Duration) -> Result<String, DiscoverError> {
        let unreachable = |source| DiscoverError::Unreachable(self.name(), source);
        let outcome = within(limit, self.text()).map_err(unreachable)?;
        outcome.unwrap_or_else(|| {
            Err(DiscoverError::Late {
                server: self.name(),
                limit,
            })
        })
    }

    async fn text(&self) -> Result<String, DiscoverError> {
        let mut request = Request::new(Full::new(Bytes::new()));
        let target = self.uri.path_and_query();
        let target = target.map_or("/", |target| target.as_str());
        *request.uri_mut() = target.parse().unwrap_or_default();
        *request.headers_mut() = self.headers.clone();
        let accept = HeaderValue::from_static("application/json, application/yaml, */*");
        request.headers_mut().entry(ACCEPT).or_insert(accept);
        if let Ok(host) = HeaderValue::from_str(&self.authority) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
        let outcome = exchange(&self.connector, async |sender| {
            self.body(sender, request).await
        });
        outcome.await.map_err(|fault| match fault {
            ConnectionFault::Unreachable(source) => DiscoverError::Unreachable(self.name(), source),
            ConnectionFault::Broken(source) => DiscoverError::Broken(self.name(), source),
        })?
    }

    async fn body(
        &self,
        mut sender: Sender,
        request: Request<Full<Bytes>>,
    ) -> Result<String, DiscoverError> {
        let response = sender.send_request(request).await;
        let response = response.map_err(|source| DiscoverError::Broken(self.name(), source))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(DiscoverError::Status {
                method: GET,
                status,
            });
        }
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        let body = body.map_err(|_| DiscoverError::TooLarge(GET))?.to_bytes();
        String::from_utf8(body.to_vec()).map_err(|_| DiscoverError::NotText(self.name()))
    }
}
