use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::jsonrpc::RequestTemplate;
use crate::mcp::InputCapabilities;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

mod dice;
mod id_subscription_law;
mod simulation;
mod stories;

/// The common settings of all tests.
fn settings(order: AnswerOrder) -> LinkSettings {
    LinkSettings {
        order,
        pause: Duration::ZERO,
        queue: 8,
        initialize_params: None,
        login: None,
        revisions: Vec::new(),
        start_timeout: seconds(5),
        backoff: Backoff {
            least: Duration::from_millis(100),
            most: seconds(30),
            steady: seconds(10),
        },
        max_consecutive_timeouts: 0,
        heartbeat: None,
        log_messages: LogMessages::Drop,
        server_requests: ServerRequests::Caller,
        clients: LinkClients::Several,
        depth: 64,
    }
}

fn initialize_params() -> Option<Json> {
    Json::parse(Bytes::from_static(b"{\"v\":1}"), 4).ok()
}

fn login() -> LoginCall {
    login_of(LoginOwner::Proxy)
}

fn login_of(whose: LoginOwner) -> LoginCall {
    LoginCall {
        method: "log_in".to_owned(),
        params: Bytes::from_static(b"[\"s3cret\"]"),
        whose,
        expect: None,
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn call(ticket: u64) -> Outbound {
    let params = Rope::from(Bytes::from(format!("[{ticket}]")));
    Outbound::Call(RequestTemplate::new("do", params, &[]))
}

fn request(ticket: u64, message: Outbound) -> Request {
    Request {
        ticket: Ticket(ticket),
        message,
        start_by: seconds(5),
        deadline: seconds(10),
        repeat: RetryRule::Never,
        rank: Priority::Client,
        input: InputCapabilities::default(),
    }
}
