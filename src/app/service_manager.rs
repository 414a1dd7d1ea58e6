//! Notifications to the service manager by sd_notify(3): ready, reloading, replaced, stopping, and the watchdog.
//!
//! `sd-notify` reads the watchdog settings and formats the messages. It can send neither to an abstract socket nor within
//! a time limit, so this module sends them. Without a service manager nothing is sent. A failure to send does not stop
//! the process.
//!
//! Used by `run`, `signals` and `cli::run`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;

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
        let path = variables.iter().find(|(name, _)| name == "NOTIFY_SOCKET");
        let socket = path.and_then(|(_, path)| {
            let address = match path.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(path),
            };
            let socket = UnixDatagram::unbound().ok()?;
            // A full queue delays a notification briefly; one that stays full must not block the process.
            socket.set_write_timeout(Some(PATIENCE)).ok()?;
            Some(Arc::new((socket, address.ok()?)))
        });
        let patience = sd_notify::watchdog_enabled();
        ServiceManager {
            patience: patience.filter(|patience| socket.is_some() && !patience.is_zero()),
            socket,
        }
    }

    /// Returns the interval of watchdog notifications: half of the required one.
    pub(super) fn beat(&self) -> Option<Duration> {
        self.patience
            .map(|patience| (patience / 2).max(Duration::from_millis(1)))
    }

    pub(super) fn alive(&self) {
        self.say([NotifyState::Watchdog]);
    }

    pub(super) fn serving(&self, status: &str) {
        self.say([NotifyState::Ready, NotifyState::Status(status)]);
    }

    pub(super) fn reloading(&self) {
        // Reading this clock does not fail.
        let now = NotifyState::monotonic_usec_now().ok();
        let states = [NotifyState::Reloading].into_iter().chain(now);
        self.say(states.chain([NotifyState::Status("reloading")]));
    }

    pub(super) fn stopping(&self) {
        self.say([NotifyState::Stopping, NotifyState::Status("draining")]);
    }

    /// Announces that another process is the service from here on.
    pub(super) fn replaced(&self, process: u32) {
        self.say([NotifyState::Ready, NotifyState::MainPid(process)]);
    }

    fn say<'s>(&self, states: impl IntoIterator<Item = NotifyState<'s>>) {
        let Some((socket, address)) = self.socket.as_deref() else {
            return;
        };
        let lines: Vec<_> = states.into_iter().map(|state| state.to_string()).collect();
        let message = lines.join("\n");
        if let Err(error) = socket.send_to_addr(message.as_bytes(), address) {
            tracing::debug!(%error, "the service manager cannot be notified");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_an_abstract_socket() {
        let name = format!("dualgauge-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let manager = ServiceManager::new(&[("NOTIFY_SOCKET".to_owned(), format!("@{name}"))]);
        let received = || {
            let mut space = [0; 128];
            let length = socket.recv(&mut space).unwrap();
            String::from_utf8(space[..length].to_vec()).unwrap()
        };
        manager.serving("serving");
        assert_eq!(received(), "READY=1\nSTATUS=serving");
        manager.replaced(7);
        assert_eq!(received(), "READY=1\nMAINPID=7");
        manager.reloading();
        let message = received();
        let lines: Vec<_> = message.lines().collect();
        assert_eq!((lines[0], lines[2]), ("RELOADING=1", "STATUS=reloading"));
        let since: u64 = lines[1]
            .strip_prefix("MONOTONIC_USEC=")
            .unwrap()
            .parse()
            .unwrap();
        assert!(since > 0);
    }
}
