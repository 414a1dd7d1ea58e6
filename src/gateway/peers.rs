//! Connection and call counts by peer, so that no peer uses up the limits of the others.
//!
//! A peer is an IPv4 address or an IPv6 /64 network. A trusted hop is not a peer: its calls count for the client that
//! it names. Law: an entry lives as long as a connection or a call of its peer.
//!
//! Used by `call_context`, `request_line`, `request_origin` and `worker`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::{Rc, Weak};

use dualgauge_model::fairness::may_take;

type Entries = RefCell<HashMap<IpAddr, Weak<Peer>>>;

/// The peers of one worker.
#[derive(Debug, Default)]
pub(super) struct Peers(Rc<Entries>);

/// One peer.
#[derive(Debug)]
pub struct Peer {
    address: IpAddr,
    connections: Cell<usize>,
    calls: Cell<usize>,
    is_logged: Cell<bool>,
    entries: Rc<Entries>,
}

impl Peers {
    /// Returns the entry of the peer at an address.
    pub(super) fn at(&self, address: IpAddr) -> Rc<Peer> {
        let address = network(address);
        let mut entries = self.0.borrow_mut();
        if let Some(peer) = entries.get(&address).and_then(Weak::upgrade) {
            return peer;
        }
        let peer = Rc::new(Peer {
            address,
            connections: Cell::new(0),
            calls: Cell::new(0),
            is_logged: Cell::new(false),
            entries: self.0.clone(),
        });
        entries.insert(address, Rc::downgrade(&peer));
        peer
    }
}

/// Returns the address that identifies a peer. An IPv6 host may use any address of its /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Peer {
    /// Returns true when the peer may open another connection while `used` of `limit` are open.
    pub(super) fn may_connect(&self, limit: usize, used: usize) -> bool {
        let is_allowed = may_take(limit, used, self.connections.get());
        if !is_allowed {
            self.log_refusal("limits.connections");
        }
        is_allowed
    }

    /// Returns true when a call that was just counted may proceed; `used` of `limit` were in progress before it.
    pub(super) fn may_call(&self, limit: usize, used: usize) -> bool {
        let is_allowed = may_take(limit, used, self.calls.get().saturating_sub(1));
        if !is_allowed {
            self.log_refusal("limits.in_flight");
        }
        is_allowed
    }

    pub(super) fn add_connection(&self) {
        self.connections.set(self.connections.get() + 1);
    }

    pub(super) fn remove_connection(&self) {
        self.connections.set(self.connections.get() - 1);
    }

    pub(super) fn add_call(&self) {
        self.calls.set(self.calls.get() + 1);
    }

    pub(super) fn remove_call(&self) {
        self.calls.set(self.calls.get() - 1);
    }

    fn log_refusal(&self, limit: &str) {
        if !self.is_logged.replace(true) {
            let peer = self.address;
            tracing::warn!(%peer, limit, "peer used up its share of a limit that is nearly reached; rejecting its further connections or calls");
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.entries.borrow_mut().remove(&self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_removed_with_its_last_reference() {
        let peers = Peers::default();
        let one = peers.at("192.0.2.1".parse().unwrap());
        let same = peers.at("::ffff:192.0.2.1".parse().unwrap());
        assert!(Rc::ptr_eq(&one, &same));
        drop(one);
        assert_eq!(peers.0.borrow().len(), 1);
        drop(same);
        assert!(peers.0.borrow().is_empty());
    }

    #[test]
    fn the_addresses_of_one_network_are_one_peer() {
        let peers = Peers::default();
        let at = |text: &str| peers.at(text.parse().unwrap());
        let one = at("2001:db8::1");
        assert!(Rc::ptr_eq(&one, &at("2001:db8::ffff:2")));
        assert!(!Rc::ptr_eq(&one, &at("2001:db8:0:1::1")));
    }
}
