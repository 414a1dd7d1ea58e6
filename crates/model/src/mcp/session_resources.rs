//! The resources that clients with sessions subscribe to (MCP 2025-11-25, "Subscriptions").
//!
//! Laws: sessions and resources are bounded; a session without resources takes no place; beyond its capacity, the table forgets the session that subscribed first.
//!
//! Used by `mcp` and `gateway`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    resources: HashMap<K, Session>,
    /// The sessions by their numbers.
    order: BTreeMap<u64, K>,
    /// The number of the next session.
    next: u64,
}

/// The resources of one session: at least one.
#[derive(Debug)]
struct Session {
    /// The number of the session, in the order in which sessions came.
    number: u64,
    uris: BTreeSet<String>,
}

/// The result of [`SessionResources::subscribe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribed<K> {
    /// The change of the session's resources.
    pub change: ResourceChange,
    /// The session that is forgotten for it.
    pub forgotten: Option<K>,
}

/// The change of the resources of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceChange {
    /// The resource is new.
    Added,
    /// The session had the resource already.
    Known,
    /// The session has too many resources, or the URI is too long.
    Refused,
}

impl<K: Copy + Eq + Hash> SessionResources<K> {
    /// Creates a table without sessions.
    #[must_use]
    pub fn new(capacity: usize) -> SessionResources<K> {
        SessionResources {
            capacity,
            resources: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// Adds a resource to a session.
    pub fn subscribe(&mut self, session: K, uri: String) -> Subscribed<K> {
        let of = |change, forgotten| Subscribed { change, forgotten };
        let own = self.resources.get_mut(&session);
        if own.as_ref().is_some_and(|own| own.uris.contains(&uri)) {
            return of(ResourceChange::Known, None);
        }
        let count = own.as_ref().map_or(0, |own| own.uris.len());
        if count >= MOST || uri.len() > LONGEST {
            return of(ResourceChange::Refused, None);
        }
        let forgotten = match own {
            Some(own) => {
                own.uris.insert(uri);
                None
            }
            None => self.begin(session, uri),
        };
        of(ResourceChange::Added, forgotten)
    }

    /// Adds a session with its first resource. Returns the session that is forgotten for it.
    fn begin(&mut self, session: K, uri: String) -> Option<K> {
        let number = self.next;
        self.next += 1;
        let uris = BTreeSet::from([uri]);
        self.resources.insert(session, Session { number, uris });
        self.order.insert(number, session);
        let is_full = self.order.len() > self.capacity;
        let (_, first) = is_full.then(|| self.order.pop_first()).flatten()?;
        self.resources.remove(&first);
        Some(first)
    }

    /// Removes a session. Returns false if it has no resources.
    pub fn end(&mut self, session: &K) -> bool {
        let own = self.resources.remove(session);
        own.is_some_and(|own| self.order.remove(&own.number).is_some())
    }

    /// Removes a resource from a session. Returns false if it was not subscribed to.
    pub fn unsubscribe(&mut self, session: &K, uri: &str) -> bool {
        let Some(own) = self.resources.get_mut(session) else {
            return false;
        };
        let was_there = own.uris.remove(uri);
        if own.uris.is_empty() {
            self.end(session);
        }
        was_there
    }

    /// Returns the resources of a session.
    #[must_use]
    pub fn get(&self, session: &K) -> BTreeSet<String> {
        let own = self.resources.get(session);
        own.map_or_else(BTreeSet::new, |own| own.uris.clone())
    }
}

/// The lists whose changes a subscription of a session names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListChanges {
    /// All lists.
    All,
    /// None: the client receives such changes in another way, or not at all.
    None,
}

/// Returns the request that subscribes to these resources, and to changes of lists.
#[must_use]
pub fn listen_request(resources: &BTreeSet<String>, lists: ListChanges) -> RequestTemplate {
    let mut filter = match lists {
        ListChanges::All => json!({
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourcesListChanged": true,
        }),
        ListChanges::None => json!({}),
    };
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
        let mut subscribe = |uri: &str| table.subscribe(1, uri.to_owned()).change;
        assert_eq!(subscribe("a:b"), ResourceChange::Added);
        assert_eq!(subscribe("a:b"), ResourceChange::Known);
        assert_eq!(subscribe("c:d"), ResourceChange::Added);
        assert!(table.unsubscribe(&1, "a:b"));
        assert!(!table.unsubscribe(&1, "a:b"));
        assert!(!table.unsubscribe(&2, "c:d"));
        assert_eq!(table.get(&1), BTreeSet::from(["c:d".to_owned()]));
        assert_eq!(table.get(&2), BTreeSet::new());
        assert!(table.end(&1) && !table.end(&1));
        assert_eq!(table.get(&1), BTreeSet::new());
        assert!(table.order.is_empty());
    }

    #[test]
    fn sessions_and_resources_are_bounded() {
        let mut table = SessionResources::new(2);
        let mut subscribe = |session, uri: String| table.subscribe(session, uri);
        let refused = subscribe(0, "x".repeat(LONGEST + 1)).change;
        assert_eq!(refused, ResourceChange::Refused);
        for number in 0..MOST {
            let added = subscribe(0, number.to_string());
            assert_eq!(added.change, ResourceChange::Added);
        }
        let refused = subscribe(0, "more".to_owned()).change;
        assert_eq!(refused, ResourceChange::Refused);
        let known = subscribe(0, "7".to_owned()).change;
        assert_eq!(known, ResourceChange::Known);
        for (session, forgotten) in [(1, None), (2, Some(0))] {
            let added = subscribe(session, "a".to_owned());
            assert_eq!(added.forgotten, forgotten);
        }
        assert_eq!(table.get(&0).len(), 0);
        assert_eq!(table.get(&2).len(), 1);
        assert_eq!((table.order.len(), table.resources.len()), (2, 2));
    }

    #[test]
    fn a_session_without_resources_takes_no_place() {
        let mut table = SessionResources::new(1);
        let known = table.subscribe(0, "a:b".to_owned());
        assert_eq!(known.change, ResourceChange::Added);
        // A refused resource forgets no other session.
        let refused = table.subscribe(1, "x".repeat(LONGEST + 1));
        let nothing = Subscribed {
            change: ResourceChange::Refused,
            forgotten: None,
        };
        assert_eq!(refused, nothing);
        assert_eq!(table.get(&0).len(), 1);
        // The last resource of a session takes the session with it.
        assert!(table.unsubscribe(&0, "a:b"));
        assert_eq!((table.order.len(), table.resources.len()), (0, 0));
        let other = table.subscribe(2, "c:d".to_owned());
        assert_eq!(other.forgotten, None);
    }

    #[test]
    fn the_request_names_the_lists_and_the_resources() {
        let read = |resources: &[&str], lists| {
            let resources = resources.iter().map(|uri| (*uri).to_owned()).collect();
            let request = listen_request(&resources, lists).with_id(1);
            let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
            request["params"]["notifications"].clone()
        };
        let both = read(&["a:b"], ListChanges::All);
        assert_eq!(both["resourceSubscriptions"], json!(["a:b"]));
        assert_eq!(both["promptsListChanged"], true);
        let lists = read(&[], ListChanges::All);
        assert_eq!(lists["resourceSubscriptions"], json!(null));
        let resources = read(&["a:b"], ListChanges::None);
        assert_eq!(resources, json!({ "resourceSubscriptions": ["a:b"] }));
    }
}
