//! The resources that clients with sessions subscribe to (MCP 2025-11-25, "Subscriptions").
//!
//! Laws: sessions and resources are bounded; beyond its capacity, the table forgets the session that subscribed first.
//!
//! Used by `mcp` and `gateway`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

use serde_json::json;

use crate::jsonrpc::{LISTEN, RequestTemplate};
use dualgauge_patterns::rope::Rope;

/// The maximum number of resources of one session.
const MOST: usize = 256;
/// The maximum length of a URI in bytes.
const LONGEST: usize = 2048;

/// The resources of sessions.
#[derive(Debug)]
pub struct SessionResources<K> {
    capacity: usize,
    resources: HashMap<K, BTreeSet<String>>,
    /// The sessions in the order in which they came.
    order: VecDeque<K>,
}

impl<K: Copy + Eq + Hash> SessionResources<K> {
    /// Creates a table without sessions.
    #[must_use]
    pub fn new(capacity: usize) -> SessionResources<K> {
        SessionResources {
            capacity,
            resources: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Adds a resource to a session. Returns false if it has too many, or the URI is too long.
    pub fn subscribe(&mut self, session: K, uri: String) -> bool {
        if !self.resources.contains_key(&session) {
            self.order.push_back(session);
            if self.order.len() > self.capacity
                && let Some(first) = self.order.pop_front()
            {
                self.resources.remove(&first);
            }
        }
        let own = self.resources.entry(session).or_default();
        let has_room = own.len() < MOST && uri.len() <= LONGEST;
        own.contains(&uri) || (has_room && own.insert(uri))
    }

    /// Removes a resource from a session. Returns false if it was not subscribed to.
    pub fn unsubscribe(&mut self, session: &K, uri: &str) -> bool {
        let own = self.resources.get_mut(session);
        own.is_some_and(|own| own.remove(uri))
    }

    /// Returns the resources of a session.
    #[must_use]
    pub fn get(&self, session: &K) -> BTreeSet<String> {
        self.resources.get(session).cloned().unwrap_or_default()
    }
}

/// Returns the request that subscribes to these resources and to all changes of lists.
#[must_use]
pub fn listen_request(resources: &BTreeSet<String>) -> RequestTemplate {
    let mut filter = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
    });
    if !resources.is_empty() {
        filter["resourceSubscriptions"] = resources.iter().cloned().collect();
    }
    let params = json!({ "notifications": filter }).to_string();
    RequestTemplate::new(LISTEN, Rope::from(bytes::Bytes::from(params)), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_resources_that_it_subscribed_to() {
        let mut table = SessionResources::new(2);
        assert!(table.subscribe(1, "a:b".to_owned()));
        assert!(table.subscribe(1, "a:b".to_owned()));
        assert!(table.subscribe(1, "c:d".to_owned()));
        assert!(table.unsubscribe(&1, "a:b"));
        assert!(!table.unsubscribe(&1, "a:b"));
        assert!(!table.unsubscribe(&2, "c:d"));
        assert_eq!(table.get(&1), BTreeSet::from(["c:d".to_owned()]));
        assert_eq!(table.get(&2), BTreeSet::new());
    }

    #[test]
    fn sessions_and_resources_are_bounded() {
        let mut table = SessionResources::new(2);
        assert!(!table.subscribe(0, "x".repeat(LONGEST + 1)));
        for number in 0..MOST {
            assert!(table.subscribe(0, number.to_string()));
        }
        assert!(!table.subscribe(0, "more".to_owned()));
        assert!(table.subscribe(0, "7".to_owned()));
        for session in 1..=2 {
            assert!(table.subscribe(session, "a".to_owned()));
        }
        assert_eq!(table.get(&0).len(), 0);
        assert_eq!(table.get(&2).len(), 1);
        assert_eq!((table.order.len(), table.resources.len()), (2, 2));
    }

    #[test]
    fn the_request_names_the_lists_and_the_resources() {
        let read = |resources: &[&str]| {
            let resources = resources.iter().map(|uri| (*uri).to_owned()).collect();
            let request = listen_request(&resources).with_id(1);
            let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
            request["params"]["notifications"]["resourceSubscriptions"].clone()
        };
        assert_eq!(read(&["a:b"]), json!(["a:b"]));
        assert_eq!(read(&[]), json!(null));
    }
}
