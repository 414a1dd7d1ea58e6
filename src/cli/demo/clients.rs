//! The built-in clients of the demo, and the output that the operator of a migration would see.
//!
//! `reports` is in `shadow`: the rewrite describes one tool differently, and the comparison finds that. Half of the
//! devices of `mobile` are translated: the rewrite goes down for a while, and the guard of that flag rolls it back. The
//! demo reads both from the admin API and prints them.
//!
//! Used by `demo`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::sync::watch;

use crate::app::bound_addresses::BoundAddresses;
use crate::cli::admin::{AdminArguments, AdminClient};
use crate::cli::connection::{exchange, within};
use dualgauge_net::Connector;
use dualgauge_net::tls_config::Alpn;
use dualgauge_sample::Outage;

/// The pause between two calls.
const PAUSE: Duration = Duration::from_millis(50);
/// Timeout of a call.
const LIMIT: Duration = Duration::from_secs(5);
/// The number of calls between two reads of the admin API.
const CALLS_PER_LOOK: u32 = 20;
/// The call before which the rewrite goes down.
const OUTAGE_BEGINS: u32 = 120;
/// The number of calls after which the clients stop.
const MOST_CALLS: u32 = 2000;
/// The number of devices of `mobile`.
const DEVICES: u32 = 40;

/// The thread of the clients. It stops when this value is dropped.
pub(super) struct Clients {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Clients {
    /// Starts the clients.
    pub(super) fn start(
        addresses: BoundAddresses,
        outage: watch::Sender<Outage>,
    ) -> io::Result<Clients> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("clients".to_owned())
            .spawn(move || {
                Story::new(addresses, outage).tell(&stopped);
            })?;
        Ok(Clients {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The progress of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chapter {
    /// Both servers respond.
    Calm,
    /// The rewrite is down.
    Outage,
    /// The flag was rolled back.
    RolledBack,
}

struct Story {
    connector: Connector,
    listen: SocketAddr,
    admin: SocketAddr,
    outage: watch::Sender<Outage>,
    chapter: Chapter,
    /// True once the difference was printed.
    is_different: bool,
}

impl Story {
    fn new(addresses: BoundAddresses, outage: watch::Sender<Outage>) -> Story {
        Story {
            connector: Connector::new(&addresses.listen.to_string(), None, Alpn::Http),
            listen: addresses.listen,
            admin: addresses.admin,
            outage,
            chapter: Chapter::Calm,
            is_different: false,
        }
    }

    /// Makes calls until the demo ends, and prints the results.
    fn tell(mut self, stopped: &mpsc::Receiver<()>) {
        say(
            "clients  `reports` (shadow) and `mobile` (50 % translated, guarded) make 20 calls a second for two minutes",
        );
        for number in 0..MOST_CALLS {
            if stopped.recv_timeout(PAUSE) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            if number == OUTAGE_BEGINS {
                say("outage   the new server stops responding");
                self.chapter = Chapter::Outage;
                self.outage.send_replace(Outage::On);
            }
            self.call(number);
            if number % CALLS_PER_LOOK == 0 {
                self.look();
            }
        }
    }

    /// Makes one call and ignores its response.
    fn call(&self, number: u32) {
        let (client, path, body) = match number % 2 {
            0 => ("reports", "/mcp/v1/tools/list", ""),
            _ => (
                "mobile",
                "/mcp/v1/tools/call",
                r#"{"name":"query_records","arguments":{"table_name":"users"}}"#,
            ),
        };
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, self.listen.to_string())
            .header(CONTENT_TYPE, "application/json")
            .header("x-client-id", client)
            .header("x-device-id", format!("device-{}", number / 2 % DEVICES))
            .body(Full::new(Bytes::from_static(body.as_bytes())));
        let Ok(request) = request else {
            return;
        };
        let call = exchange(&self.connector, async |mut sender| {
            let response = sender.send_request(request).await?;
            response.into_body().collect().await.map(drop)
        });
        // Failures are part of the demo.
        let _ = within(LIMIT, call);
    }

    /// Reads the admin API, and prints news.
    fn look(&mut self) {
        let url = format!("http://{}", self.admin);
        let Ok(admin) = AdminClient::new(&AdminArguments::at(&url, None)) else {
            return;
        };
        if !self.is_different
            && let Ok(mismatches) = admin.get("/api/v1/mismatches")
            && let Some(found) = difference(&mismatches)
        {
            self.is_different = true;
            say(&format!(
                "shadow   {found}; see `dualgauge mismatches --admin {url}`"
            ));
        }
        if self.chapter == Chapter::Outage
            && let Ok(flag) = admin.get("/api/v1/flags/mobile")
            && let Some(why) = tripped(&flag)
        {
            self.chapter = Chapter::RolledBack;
            self.outage.send_replace(Outage::Over);
            say(&format!(
                "guard    flag `mobile` rolled back to passthrough: {why}"
            ));
            say(&format!(
                "outage   over; the flag stays back until `dualgauge flags rearm mobile --admin {url}`"
            ));
        }
    }
}

/// Returns the first difference of the admin API's report.
fn difference(mismatches: &Value) -> Option<String> {
    let routes = mismatches.get("routes")?.as_array()?;
    routes.iter().find_map(|route| {
        let field = route.get("fields")?.as_array()?.first()?;
        Some(format!(
            "the new server's response to `{}` differs at `{}`",
            route.get("route")?.as_str()?,
            field.get("field")?.as_str()?,
        ))
    })
}

/// Returns why a flag was rolled back.
fn tripped(flag: &Value) -> Option<String> {
    let why = flag.get("tripped")?.get("reason")?.as_str()?;
    Some(why.to_owned())
}

/// Prints a line. A closed output does not stop the demo.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
