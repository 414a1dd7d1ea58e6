//! The resources that clients with sessions subscribe to (MCP 2025-11-25, "Subscriptions").
//!
//! A resource is pending until the server has answered its subscription. Laws: sessions and resources are bounded; a
//! session without resources takes no place; a resource goes when all its subscriptions were refused, and stays if one
//! was accepted; beyond its capacity, the table forgets the session whose first resource was accepted first, and only
//! an accepted subscription makes it do so.
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
    sessions: HashMap<K, Session>,
    /// The sessions that have an accepted resource, by their numbers.
    order: BTreeMap<u64, K>,
    /// The next number of a session or a resource.
    next: u64,
}

/// The resources of one session: at least one.
#[derive(Debug, Default)]
struct Session {
    /// The number of the session in the order of first accepted resources; `None` while all are pending.
    number: Option<u64>,
    resources: BTreeMap<String, Resource>,
}

/// A resource of a session.
#[derive(Debug)]
struct Resource {
    id: ResourceId,
    /// The number of subscriptions that the server has not answered yet.
    pending: usize,
    /// True if the server has accepted a subscription.
    is_accepted: bool,
}

/// The number of a resource of a session. A resource that is removed and added again has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceId(u64);

/// The result of [`SessionResources::subscribe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceChange {
    /// The resource is new.
    Added(ResourceId),
    /// The session had the resource already.
    Known(ResourceId),
    /// The session has too many resources, or the URI is too long.
    Refused,
}

/// The server's answer to a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionAnswer {
    /// The server has accepted it.
    Accepted,
    /// The server has refused it, or did not answer.
    Refused,
}

/// The result of [`SessionResources::settle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled<K> {
    /// All resources stay.
    Unchanged,
    /// The resource is removed.
    Removed,
    /// The resource stays, and this session is forgotten for it.
    Forgotten(K),
}

impl<K: Copy + Eq + Hash> SessionResources<K> {
    /// Creates a table without sessions.
    #[must_use]
    pub fn new(capacity: usize) -> SessionResources<K> {
        SessionResources {
            capacity,
            sessions: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// Adds a resource to a session. [`SessionResources::settle`] must follow, unless it is refused.
    pub fn subscribe(&mut self, session: K, uri: String) -> ResourceChange {
        let own = self.sessions.get_mut(&session);
        let known = own.and_then(|own| own.resources.get_mut(&uri));
        if let Some(known) = known {
            known.pending += 1;
            return ResourceChange::Known(known.id);
        }
        let own = self.sessions.get(&session);
        let count = own.map_or(0, |own| own.resources.len());
        if count >= MOST || uri.len() > LONGEST {
            return ResourceChange::Refused;
        }
        let id = ResourceId(self.next_number());
        let resource = Resource {
            id,
            pending: 1,
            is_accepted: false,
        };
        let own = self.sessions.entry(session).or_default();
        own.resources.insert(uri, resource);
        ResourceChange::Added(id)
    }

    /// Records the server's answer to a subscription. Ignores a resource that was removed in the meantime.
    pub fn settle(
        &mut self,
        session: K,
        uri: &str,
        id: ResourceId,
        answer: SubscriptionAnswer,
    ) -> Settled<K> {
        let Some(own) = self.sessions.get_mut(&session) else {
            return Settled::Unchanged;
        };
        let resource = own.resources.get_mut(uri);
        let Some(resource) = resource.filter(|resource| resource.id == id) else {
            return Settled::Unchanged;
        };
        resource.pending = resource.pending.saturating_sub(1);
        resource.is_accepted |= answer == SubscriptionAnswer::Accepted;
        if !resource.is_accepted && resource.pending == 0 {
            self.unsubscribe(&session, uri);
            return Settled::Removed;
        }
        if !resource.is_accepted || own.number.is_some() {
            return Settled::Unchanged;
        }
        let forgotten = self.enter(session);
        forgotten.map_or(Settled::Unchanged, Settled::Forgotten)
    }

    /// Puts a session with its first accepted resource in order. Returns the session that is forgotten for it.
    fn enter(&mut self, session: K) -> Option<K> {
        let number = self.next_number();
        self.sessions.get_mut(&session)?.number = Some(number);
        self.order.insert(number, session);
        let is_full = self.order.len() > self.capacity;
        let (_, first) = is_full.then(|| self.order.pop_first()).flatten()?;
        self.sessions.remove(&first);
        Some(first)
    }

    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Removes a session. Returns false if it has no resources.
    pub fn end(&mut self, session: &K) -> bool {
        let Some(own) = self.sessions.remove(session) else {
            return false;
        };
        if let Some(number) = own.number {
            self.order.remove(&number);
        }
        true
    }

    /// Removes a resource from a session. Returns false if it was not subscribed to.
    pub fn unsubscribe(&mut self, session: &K, uri: &str) -> bool {
        let Some(own) = self.sessions.get_mut(session) else {
            return false;
        };
        let was_there = own.resources.remove(uri).is_some();
        if own.resources.is_empty() {
            self.end(session);
        }
        was_there
    }

    /// Returns the resources of a session.
    #[must_use]
    pub fn get(&self, session: &K) -> BTreeSet<String> {
        let own = self.sessions.get(session);
        own.map_or_else(BTreeSet::new, |own| own.resources.keys().cloned().collect())
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

    use SubscriptionAnswer::{Accepted, Refused};

    type Table = SessionResources<u64>;

    /// Subscribes a session to a resource.
    fn subscribe(table: &mut Table, session: u64, uri: &str) -> ResourceId {
        match table.subscribe(session, uri.to_owned()) {
            ResourceChange::Added(id) | ResourceChange::Known(id) => id,
            ResourceChange::Refused => panic!("the session {session} has too many resources"),
        }
    }

    /// Subscribes a session to a resource, which the server accepts.
    fn accept(table: &mut Table, session: u64, uri: &str) -> Settled<u64> {
        let id = subscribe(table, session, uri);
        table.settle(session, uri, id, Accepted)
    }

    #[test]
    fn a_session_has_the_resources_that_it_subscribed_to() {
        let mut table = Table::new(2);
        assert_eq!(accept(&mut table, 1, "a:b"), Settled::Unchanged);
        let again = table.subscribe(1, "a:b".to_owned());
        assert!(matches!(again, ResourceChange::Known(_)), "{again:?}");
        assert_eq!(accept(&mut table, 1, "c:d"), Settled::Unchanged);
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
        let mut table = Table::new(2);
        let refused = table.subscribe(0, "x".repeat(LONGEST + 1));
        assert_eq!(refused, ResourceChange::Refused);
        for number in 0..MOST {
            accept(&mut table, 0, &number.to_string());
        }
        let refused = table.subscribe(0, "more".to_owned());
        assert_eq!(refused, ResourceChange::Refused);
        subscribe(&mut table, 0, "7");
        assert_eq!(accept(&mut table, 1, "a"), Settled::Unchanged);
        assert_eq!(accept(&mut table, 2, "a"), Settled::Forgotten(0));
        assert_eq!(table.get(&0).len(), 0);
        assert_eq!(table.get(&2).len(), 1);
        assert_eq!((table.order.len(), table.sessions.len()), (2, 2));
    }

    #[test]
    fn a_session_without_resources_takes_no_place() {
        let mut table = Table::new(1);
        accept(&mut table, 0, "a:b");
        let refused = table.subscribe(1, "x".repeat(LONGEST + 1));
        assert_eq!(refused, ResourceChange::Refused);
        assert_eq!(table.get(&0).len(), 1);
        // The last resource of a session takes the session with it.
        assert!(table.unsubscribe(&0, "a:b"));
        assert_eq!((table.order.len(), table.sessions.len()), (0, 0));
        assert_eq!(accept(&mut table, 2, "c:d"), Settled::Unchanged);
    }

    #[test]
    fn a_subscription_that_the_server_refuses_forgets_no_session() {
        let mut table = Table::new(1);
        accept(&mut table, 0, "a:b");
        for session in 1..10 {
            let id = subscribe(&mut table, session, "a:b");
            let settled = table.settle(session, "a:b", id, Refused);
            assert_eq!(settled, Settled::Removed);
        }
        assert_eq!(table.get(&0).len(), 1);
        assert_eq!((table.order.len(), table.sessions.len()), (1, 1));
    }

    #[test]
    fn of_parallel_subscriptions_to_a_resource_one_must_be_accepted() {
        let expected = |answers: [SubscriptionAnswer; 2]| answers.contains(&Accepted);
        for answers in [
            [Accepted, Refused],
            [Refused, Accepted],
            [Refused, Refused],
            [Accepted, Accepted],
        ] {
            let mut table = Table::new(1);
            let ids = [(); 2].map(|()| subscribe(&mut table, 0, "a:b"));
            for (id, answer) in ids.into_iter().zip(answers) {
                assert_eq!(table.get(&0).len(), 1);
                table.settle(0, "a:b", id, answer);
            }
            let is_kept = !table.get(&0).is_empty();
            assert_eq!(is_kept, expected(answers), "{answers:?}");
        }
    }

    #[test]
    fn an_answer_to_an_earlier_subscription_removes_no_later_one() {
        let mut table = Table::new(1);
        let earlier = subscribe(&mut table, 0, "a:b");
        assert!(table.unsubscribe(&0, "a:b"));
        let later = subscribe(&mut table, 0, "a:b");
        let settled = table.settle(0, "a:b", earlier, Refused);
        assert_eq!(settled, Settled::Unchanged);
        assert_eq!(table.get(&0).len(), 1);
        assert_eq!(table.settle(0, "a:b", later, Refused), Settled::Removed);
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
