//! The sockets that the process was started with: by systemd (sd_listen_fds(3)), or by the process that it replaces.
//!
//! Names tell what they are: `admin` is the admin listener, `predecessor` the way to the process before, everything
//! else takes calls.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;

use listenfd::ListenFd;

use crate::config::load::SOFT_NOFILE;

/// What the admin listener is called.
pub(super) const ADMIN: &str = "admin";
/// What listeners for calls are called.
pub(super) const CALLS: &str = "listen";
/// What the socket is called on which a successor says that it serves.
pub(super) const PREDECESSOR: &str = "predecessor";

/// What was inherited.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    pub(super) calls: Vec<TcpListener>,
    pub(super) admin: Option<TcpListener>,
    pub(super) predecessor: Option<UnixDatagram>,
    /// The soft limit of open files that the first of all predecessors was started with.
    pub(super) open_files: Option<u64>,
}

impl InheritedSockets {
    /// Takes what the environment tells of. It is to be called once, before any thread is started: it removes the
    /// variables, so that no child takes them for its own.
    ///
    /// # Errors
    /// Where something is no such socket.
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

    /// Listeners for an address. Those of a service manager are used whatever they listen on; those of the process
    /// before only where the configuration still says the same.
    pub(super) fn calls_for(&mut self, wanted: SocketAddr) -> io::Result<Vec<TcpListener>> {
        let mut fit = Vec::new();
        for listener in std::mem::take(&mut self.calls) {
            if self.fits(&listener, ("listen.address", wanted))? {
                fit.push(listener);
            }
        }
        Ok(fit)
    }

    /// The same for the admin listener.
    pub(super) fn admin_for(&mut self, wanted: SocketAddr) -> io::Result<Option<TcpListener>> {
        let Some(listener) = self.admin.take() else {
            return Ok(None);
        };
        let fits = self.fits(&listener, ("admin.address", wanted))?;
        Ok(Some(listener).filter(|_| fits))
    }

    fn fits(&self, listener: &TcpListener, wanted: (&str, SocketAddr)) -> io::Result<bool> {
        let (key, wanted) = wanted;
        let given = listener.local_addr()?;
        let port = wanted.port() == 0 || wanted.port() == given.port();
        if port && wanted.ip() == given.ip() {
            return Ok(true);
        }
        let is_replacement = self.predecessor.is_some();
        if is_replacement {
            tracing::warn!(key, %given, %wanted, "the address has changed; the inherited socket is not used");
        } else {
            tracing::warn!(key, %given, %wanted, "the given socket listens elsewhere than the configuration says, and is used");
        }
        Ok(!is_replacement)
    }
}
