//! Tools of an MCP server over HTTP with SSE (MCP 2024-11-05): an event stream, and a POST for each message to the server.
//!
//! Later revisions describe how a client recognises such a server (MCP 2025-11-25, "Backwards Compatibility"). The
//! server rejects `initialize` by its status, and GET opens an event stream whose first event is `endpoint`.
//!
//! Used by `import::discover`.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::tools::{all_pages, greeting};
use super::{ConnectionFault, DiscoverAnswer, DiscoverError, DiscoverServer, GET, SourceDocument};
use crate::cli::connection::{exchange, within};
use crate::cli::import::json;
use crate::cli::import::limits::LARGEST;
use crate::cli::import::message::error_of;
use dualgauge_model::import::DocumentKind;
use dualgauge_model::mcp::{StreamUrl, endpoint_of_event, endpoint_target};
use dualgauge_model::sse::{EVENT_STREAM, MESSAGE, RawEvent, SseReader, StreamPiece};

/// The event stream of a server, and the target of messages to it.
struct EventStream<'a> {
    server: &'a DiscoverServer,
    body: Incoming,
    reader: SseReader,
    endpoint: Uri,
    next_id: u64,
}

/// The reason why a server over HTTP with SSE did not list its tools.
#[derive(Debug)]
pub(super) enum SseFault {
    /// The server opened no event stream.
    Closed(DiscoverError),
    /// The server failed after it had named its endpoint.
    Open(DiscoverError),
}

impl SseFault {
    /// Returns the fault for people, after the server refused a call over Streamable HTTP.
    pub(super) fn after(self, refusal: DiscoverError) -> DiscoverError {
        let has_stream = |status: StatusCode| {
            status.is_server_error()
                || [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
        };
        match self {
            SseFault::Open(own) => own,
            SseFault::Closed(DiscoverError::NoRpc(_)) => refusal,
            SseFault::Closed(DiscoverError::Status { status, .. }) if !has_stream(status) => {
                refusal
            }
            SseFault::Closed(own) => DiscoverError::Neither(Box::new(refusal), Box::new(own)),
        }
    }
}

impl DiscoverServer {
    /// Returns true if the server speaks HTTP with SSE. A server that cannot be reached does not.
    pub(in crate::cli::import) fn speaks_sse(&self, limit: Duration) -> bool {
        let asking = async {
            self.rejects_initialize().await && self.over_sse(async |_| Ok(())).await.is_ok()
        };
        matches!(within(limit, asking), Ok(Some(true)))
    }

    /// Returns true if the server rejects `initialize` by a status that names the client as the cause.
    async fn rejects_initialize(&self) -> bool {
        match self.call("initialize", greeting(), &self.headers).await {
            Err(DiscoverError::Status { status, .. }) => status.is_client_error(),
            Ok(_) | Err(_) => false,
        }
    }

    /// Lists the tools of a server over HTTP with SSE.
    pub(super) async fn tools_over_sse(&self) -> Result<SourceDocument, SseFault> {
        let tools = self.over_sse(async |mut stream| {
            stream.call("initialize", greeting()).await?;
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            stream.send("notifications/initialized", &note).await?;
            let first = stream.call("tools/list", json!({})).await?;
            all_pages(first, async |params| {
                stream.call("tools/list", params).await
            })
            .await
        });
        Ok(SourceDocument {
            name: format!("`tools/list` of {} (HTTP with SSE)", self.name()),
            kind: DocumentKind::Tools,
            document: tools.await?,
        })
    }

    /// Opens the event stream, and passes it to `then`.
    async fn over_sse<T>(
        &self,
        then: impl AsyncFnOnce(EventStream<'_>) -> Result<T, DiscoverError>,
    ) -> Result<T, SseFault> {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = self.target();
        *request.headers_mut() = self.headers.clone();
        let accept = HeaderValue::from_static(EVENT_STREAM);
        request.headers_mut().insert(ACCEPT, accept);
        self.add_host(&mut request);
        let outcome = exchange(&self.connector, async |mut sender| {
            let response = sender.send_request(request).await;
            let broken = |source| DiscoverError::Broken(self.name(), source);
            let response = response.map_err(broken).map_err(SseFault::Closed)?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(SseFault::Closed(DiscoverError::Status {
                    server: self.name(),
                    method: GET,
                    status,
                }));
            }
            let mut stream = EventStream {
                server: self,
                body: response.into_body(),
                reader: SseReader::new(LARGEST),
                endpoint: Uri::default(),
                next_id: 1,
            };
            stream.read_endpoint().await?;
            then(stream).await.map_err(SseFault::Open)
        });
        let closed = |fault| SseFault::Closed(self.fault(fault));
        outcome.await.map_err(closed)?
    }

    pub(super) fn add_host(&self, request: &mut Request<Full<Bytes>>) {
        if let Ok(host) = HeaderValue::from_str(&self.authority) {
            request.headers_mut().entry(HOST).or_insert(host);
        }
    }

    pub(super) fn fault(&self, fault: ConnectionFault) -> DiscoverError {
        match fault {
            ConnectionFault::Unreachable(source) => DiscoverError::Unreachable(self.name(), source),
            ConnectionFault::Broken(source) => DiscoverError::Broken(self.name(), source),
        }
    }
}

impl EventStream<'_> {
    /// Reads the stream up to the `endpoint` event, which must be the first.
    async fn read_endpoint(&mut self) -> Result<(), SseFault> {
        let event = self.event(GET).await.map_err(SseFault::Closed)?;
        let endpoint = endpoint_of_event(&event);
        let endpoint = endpoint.ok_or(SseFault::Closed(DiscoverError::NoRpc(GET)))?;
        let stream = StreamUrl {
            scheme: self.server.uri.scheme_str().unwrap_or("http"),
            authority: &self.server.authority,
            path: self.server.uri.path(),
        };
        // Messages carry the headers of the command, so they stay with the origin.
        let refused = |source| DiscoverError::Endpoint(self.server.name(), source);
        let target = endpoint_target(&endpoint, stream).map_err(refused);
        self.endpoint = Uri::from(target.map_err(SseFault::Open)?);
        Ok(())
    }

    /// Returns the next event.
    async fn event(&mut self, method: &'static str) -> Result<Bytes, DiscoverError> {
        loop {
            match self.reader.next() {
                Some(StreamPiece::Event(event)) => return Ok(event),
                Some(StreamPiece::Oversize) => return Err(DiscoverError::TooLarge(method)),
                Some(
                    StreamPiece::Between(_) | StreamPiece::Feed(_) | StreamPiece::Unfinished(_),
                ) => continue,
                None => {}
            }
            let Some(frame) = self.body.frame().await else {
                return Err(DiscoverError::NoRpc(method));
            };
            let broken = |source| DiscoverError::Broken(self.server.name(), source);
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                self.reader.feed(&data);
            }
        }
    }

    /// Sends a request, and returns the response from the stream.
    async fn call(
        &mut self,
        method: &'static str,
        params: Value,
    ) -> Result<DiscoverAnswer, DiscoverError> {
        let id = self.next_id;
        self.next_id += 1;
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(method, &call).await?;
        loop {
            let event = self.event(method).await?;
            let Some(block) = RawEvent::read(&event) else {
                continue;
            };
            let data = block.data().filter(|_| block.event() == MESSAGE);
            let Some(Ok(mut message)) = data.map(|data| json::parse(&data)) else {
                continue;
            };
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            if let Some(error) = error_of(&message) {
                return Err(DiscoverError::Refused { method, error });
            }
            return Ok(DiscoverAnswer {
                result: message["result"].take(),
                size: event.len(),
                session: None,
            });
        }
    }

    /// Posts a message on a connection of its own.
    async fn send(&self, method: &'static str, message: &Value) -> Result<(), DiscoverError> {
        let server = self.server;
        let mut request = Request::new(Full::new(Bytes::from(message.to_string())));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        *request.headers_mut() = server.headers.clone();
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json);
        server.add_host(&mut request);
        let sent = exchange(&server.connector, async |mut sender| {
            let response = sender.send_request(request).await;
            response.map(|response| response.status())
        });
        let status = sent.await.map_err(|fault| server.fault(fault))?;
        let status = status.map_err(|source| DiscoverError::Broken(server.name(), source))?;
        match status.is_success() {
            true => Ok(()),
            false => Err(DiscoverError::Status {
                server: server.name(),
                method,
                status,
            }),
        }
    }
}
