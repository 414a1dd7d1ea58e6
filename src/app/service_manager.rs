//! Notifications to the service manager by sd_notify(3): ready, reloading, replaced, stopping, and the watchdog.
//!
//! Without a service manager nothing is sent. A failure to send does not stop the process.
//!
//! Used by `run`, `signals` and `cli::run`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use crate::telemetry::clock::monotonic_us;

/// The time limit of sending a notification.
const PATIENCE: Duration = Duration::from_millis(200);

/// The connection to the service manager, if there is one.
#[derive(Debug, Default, Clone)]
pub struct ServiceManager {
    socket: Option<Arc<(UnixDatagram, SocketAddr)>>,
    /// The watchdog interval within which a notification must arrive.
    patience: Option<Duration>,
}

impl ServiceManager {
    /// Reads the settings from the environment.
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
            // A full queue delays a notification briefly; one that stays full must not block the process.
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

    /// Returns the interval of watchdog notifications: half of the required one.
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

    /// Announces that another process is the service from here on.
    pub(super) fn replaced(&self, process: u32) {
        self.say(&format!("READY=1\nMAINPID={process}"));
    }

    fn say(&self, message: &str) {
        let Some((socket, address)) = self.socket.as_deref() else {
            return;
        };
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::debug!(%error, "the service manager cannot be notified");
        }
    }
}
