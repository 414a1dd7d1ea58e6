//! The connections of a link to an MCP server.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, Method};

use super::post::PostClient;
use crate::telemetry::clock;
use crate::upstream::HttpUpstream;
use dualgauge_model::mcp::Revision;
use dualgauge_model::pending::{
    AnswerOrder, Backoff, LinkClients, LinkSettings, LogMessages, RequestError, ServerRequests,
};
use dualgauge_model::plan::{
    Authority, Credentials, LinkPlan, McpAuthorization, McpPlan, McpTransport, SecretMap,
    Transport, UpstreamPlan,
};
use dualgauge_net::{Body, MemoryBudget, Tasks};
use dualgauge_patterns::side::Side;
use dualgauge_transport::multiplexing::Multiplexing;

const SECOND: Duration = Duration::from_secs(1);

fn server() -> McpPlan {
    McpPlan {
        headers: SecretMap::default(),
        transport: McpTransport::Streamable,
        authorization: McpAuthorization::Own,
        revision: Revision::Auto,
        message_limit: 1024,
        link: LinkPlan {
            redaction: Arc::default(),
            login: None,
            settings: LinkSettings {
                login: None,
                order: AnswerOrder::Pipelined(1),
                pause: Duration::ZERO,
                queue: 1,
                initialize_params: None,
                revisions: Vec::new(),
                start_timeout: SECOND,
                backoff: Backoff {
                    least: SECOND,
                    most: SECOND,
                    steady: SECOND,
                },
                max_consecutive_timeouts: 0,
                heartbeat: None,
                log_messages: LogMessages::Drop,
                server_requests: ServerRequests::Caller,
                clients: LinkClients::Several,
                depth: 64,
            },
            blocked_methods: Vec::new(),
        },
    }
}

/// An upstream all of whose connections are in use.
fn upstream(queue_timeout: Option<Duration>) -> UpstreamPlan {
    UpstreamPlan {
        more: Vec::new(),
        watch: Default::default(),
        name: "full".to_owned(),
        side: Side::Rpc,
        tls: None,
        transport: Transport::Http,
        authority: Authority::new("127.0.0.1:1".to_owned()),
        path: PathAndQuery::from_static("/mcp"),
        timeout: 60 * SECOND,
        connect_timeout: 5 * SECOND,
        queue_timeout,
        keep_alive: SECOND,
        idle_timeout: SECOND,
        connections: 0,
        queue: 1,
        http2: Multiplexing::Off,
        max_age: None,
        credentials: Credentials::Drop,
        forward: Vec::new(),
        envelope: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_for_a_connection_as_long_as_queue_timeout_says() {
    for (queue_timeout, waits) in [(Some(7), 7), (Some(90), 60), (None, 5)] {
        let tasks = Tasks::default();
        let http = HttpUpstream::new(
            upstream(queue_timeout.map(Duration::from_secs)),
            tasks.clone(),
        );
        let client = PostClient::new(http, tasks, MemoryBudget::new(1024), &server());
        let begun = clock::now();
        let sent = client.send(client.request(Method::POST, HeaderMap::new(), Body::empty()));
        assert!(matches!(sent.await, Err(RequestError::Busy)));
        assert_eq!((clock::now() - begun).as_secs(), waits);
    }
}
