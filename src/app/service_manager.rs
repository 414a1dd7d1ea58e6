//! The service manager, as sd_notify(3) has it: told when the process serves, reloads, is replaced, ends, and lives.
//!
//! Where nobody asks to be told, nothing is sent. What cannot be sent is no reason to stop serving.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use crate::telemetry::clock::monotonic_us;

/// How long a word may take to be sent.
const PATIENCE: Duration = Duration::from_millis(200);

/// Whoever watches over the process, if anybody does.
#[derive(Debug, Default, Clone)]
pub struct ServiceManager {
    socket: Option<Arc<(UnixDatagram, SocketAddr)>>,
    /// How often it wants a sign of life, at least.
    patience: Option<Duration>,
}

impl ServiceManager {
    /// As the environment says.
    #[must_use]
    pub fn new(variables: &[(String, String)]) -> ServiceManager {
        let value = |wanted: &str| {
            let mut found = variables.iter().filter(|(name, _)| name == wanted);
            found.next().map(|(_, value)| value.as_str())
        };
        let socket = value("NOTIFY_SOCKET").and_then(|path| {
            let address = match path.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(path),
            };
            let socket = UnixDatagram::unbound().ok()?;
            // A queue that is full for a moment loses no word; one that stays full holds nobody up.
            socket.set_write_timeout(Some(PATIENCE)).ok()?;
            Some(Arc::new((socket, address.ok()?)))
        });
        let is_meant = value("WATCHDOG_PID").is_none_or(|id| id == process::id().to_string());
        let patience = value("WATCHDOG_USEC").filter(|_| is_meant);
        let patience = patience.and_then(|micros| micros.parse().ok());
        let patience = patience.filter(|micros| *micros > 0);
        ServiceManager {
            patience: patience
                .filter(|_| socket.is_some())
                .map(Duration::from_micros),
            socket,
        }
    }

    /// How often a sign of life is due: twice as often as it must come.
    pub(super) fn beat(&self) -> Option<Duration> {
        self.patience
            .map(|patience| (patience / 2).max(Duration::from_millis(1)))
    }

    pub(super) fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    pub(super) fn serving(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    pub(super) fn reloading(&self) {
        let now = monotonic_us();
        self.say(&format!(
            "RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=reloading"
        ));
    }

    pub(super) fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=draining");
    }

    /// Another process is the service from here on.
    pub(super) fn replaced(&self, process: u32) {
        self.say(&format!("READY=1\nMAINPID={process}"));
    }

    fn say(&self, message: &str) {
        let Some((socket, address)) = self.socket.as_deref() else {
            return;
        };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::debug!(%error, "the service manager could not be told");
        }
    }
}
