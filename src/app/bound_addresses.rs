//! The addresses that a run listens on. Used by `run`, `signals`, `startup_summary` and `cli`.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::hot_restart::PassedSockets;
use super::workers::Workers;
use dualgauge_model::plan::Plan;

/// The addresses that a run listens on.
#[derive(Debug, Clone, Copy)]
pub struct BoundAddresses {
    /// The address for calls.
    pub listen: SocketAddr,
    /// The scheme for calls.
    pub scheme: Scheme,
    /// The address of the admin listener.
    pub admin: SocketAddr,
}

/// The scheme for calls: `http`, or `https` with TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl BoundAddresses {
    /// Returns the addresses of the workers and of the admin listener.
    pub(super) fn new(
        workers: &Workers,
        sockets: &PassedSockets,
        plan: &Plan,
    ) -> io::Result<BoundAddresses> {
        Ok(BoundAddresses {
            listen: workers.address(),
            scheme: match &plan.tls {
                None => Scheme::Http,
                Some(_) => Scheme::Https,
            },
            admin: sockets.admin.local_addr()?,
        })
    }

    /// Returns an address at which this machine reaches the listener for calls.
    #[must_use]
    pub fn reachable(&self) -> SocketAddr {
        let mut address = self.listen;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address
    }

    /// Returns the URL of the listener for calls, without a path.
    pub(super) fn base(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        format!("{scheme}://{}", self.listen)
    }
}

impl fmt::Display for BoundAddresses {
    /// Writes one line for people and scripts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serving {}, admin http://{}", self.base(), self.admin)
    }
}
