//! The sockets that the process was started with, by systemd (sd_listen_fds(3)) or by the process that it replaces.
//!
//! Their names tell their use: `admin` is the admin listener, `predecessor` the connection to the previous process, and
//! all others accept calls.
//!
//! Used by `hot_restart`, `open_files`, `run` and `cli`.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;

use listenfd::ListenFd;

use crate::config::load::SOFT_NOFILE;

/// The name of the admin listener.
pub(super) const ADMIN: &str = "admin";
/// The name of listeners for calls.
pub(super) const CALLS: &str = "listen";
/// The name of the socket on which a successor reports that it serves.
pub(super) const PREDECESSOR: &str = "predecessor";

/// The inherited sockets and settings.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub(super) calls: Vec<TcpListener>,
    pub(super) admin: Option<TcpListener>,
    pub(super) predecessor: Option<UnixDatagram>,
    /// The soft limit of open files that the first process of the chain was started with.
    pub(super) open_files: Option<u64>,
}

impl InheritedSockets {
    /// Takes the sockets that the environment announces. Must be called once, before any thread is started: it removes
    /// the variables, so that children do not use them.
    ///
    /// # Errors
    /// Returns an error if a file descriptor is not such a socket.
    pub fn take(variables: &[(String, String)]) -> io::Result<InheritedSockets> {
        let mut given = ListenFd::from_env();
        let names = variables.iter().find(|(name, _)| name == "LISTEN_FDNAMES");
        let mut names = names.map_or("", |(_, names)| names).split(':');
        let open_files = variables.iter().find(|(name, _)| name == SOFT_NOFILE);
        let mut inherited = InheritedSockets {
            open_files: open_files.and_then(|(_, limit)| limit.parse().ok()),
            ..InheritedSockets::default()
        };
        for place in 0..given.len() {
            match names.next().unwrap_or_default() {
                ADMIN => inherited.admin = given.take_tcp_listener(place)?,
                PREDECESSOR => inherited.predecessor = given.take_unix_datagram(place)?,
                _ => inherited.calls.extend(given.take_tcp_listener(place)?),
            }
        }
        Ok(inherited)
    }

    /// Returns the inherited listeners for calls. Those of a service manager are used whatever their address; those of
    /// the predecessor only if the configured address is still the same.
    pub(super) fn calls_for(&mut self, wanted: SocketAddr) -> io::Result<Vec<TcpListener>> {
        let mut fit = Vec::new();
        for listener in std::mem::take(&mut self.calls) {
            if self.fits(&listener, "listen.address", wanted)? {
                fit.push(listener);
            }
        }
        Ok(fit)
    }

    /// Returns the inherited admin listener, by the same rules.
    pub(super) fn admin_for(&mut self, wanted: SocketAddr) -> io::Result<Option<TcpListener>> {
        let Some(listener) = self.admin.take() else {
            return Ok(None);
        };
        let fits = self.fits(&listener, "admin.address", wanted)?;
        Ok(Some(listener).filter(|_| fits))
    }

    fn fits(&self, listener: &TcpListener, key: &str, wanted: SocketAddr) -> io::Result<bool> {
        let given = listener.local_addr()?;
        let port = wanted.port() == 0 || wanted.port() == given.port();
        if port && wanted.ip() == given.ip() {
            return Ok(true);
        }
        let is_replacement = self.predecessor.is_some();
        if is_replacement {
            tracing::warn!(key, %given, %wanted, "the address has changed; the inherited socket is not used");
        } else {
            tracing::warn!(key, %given, %wanted, "the inherited socket listens on an address other than the configured one, and is used");
        }
        Ok(!is_replacement)
    }
}
