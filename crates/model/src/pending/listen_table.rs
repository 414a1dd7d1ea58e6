//! Subscriptions of stateless clients that the link emulates before a server with sessions: filters, and the resources
//! that the server must be subscribed to.
//!
//! Laws: a resource is subscribed to when its first listener comes, and no longer when its last one goes; a notification
//! reaches exactly the listeners whose filter names it; the number of resources is bounded.
//!
//! Used by `pending`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Ticket;
use crate::jsonrpc::RequestId;

/// The maximum number of resources of one listener.
const MOST_OF_ONE: usize = 256;
/// The maximum number of resources of all listeners of a link.
const MOST: usize = 4096;
/// The maximum length of a URI in bytes.
const LONGEST: usize = 2048;

/// The lists whose changes a listener may ask for: their member of the filter, and of the capabilities of a server.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "tools"),
    ("promptsListChanged", "prompts"),
    ("resourcesListChanged", "resources"),
];

/// The kinds of notifications that a listener asks for, or that a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListenFilter {
    lists: [bool; 3],
    resources: BTreeSet<String>,
}

impl ListenFilter {
    /// Reads the filter in the params of `subscriptions/listen`. Unknown kinds are ignored, as far as the server may.
    pub(super) fn of_params(params: &Value) -> ListenFilter {
        let asked = &params["notifications"];
        let resources = asked["resourceSubscriptions"].as_array();
        let resources = resources.into_iter().flatten().filter_map(Value::as_str);
        let resources = resources.filter(|uri| uri.len() <= LONGEST);
        ListenFilter {
            lists: LISTS.map(|(name, _)| asked[name] == true),
            resources: resources.take(MOST_OF_ONE).map(str::to_owned).collect(),
        }
    }

    /// Drops what a server with these capabilities does not send.
    pub(super) fn limit_to(&mut self, capabilities: &Value) {
        for (list, (_, group)) in self.lists.iter_mut().zip(LISTS) {
            *list &= capabilities[group]["listChanged"] == true;
        }
        if capabilities["resources"]["subscribe"] != true {
            self.resources.clear();
        }
    }

    /// Returns the filter as the acknowledgement of a subscription states it.
    pub(super) fn to_json(&self) -> Value {
        let mut all = json!({});
        for (list, (name, _)) in self.lists.iter().zip(LISTS) {
            if *list {
                all[name] = true.into();
            }
        }
        if !self.resources.is_empty() {
            all["resourceSubscriptions"] = self.resources.iter().cloned().collect();
        }
        all
    }

    fn takes(&self, event: &ListenEvent<'_>) -> bool {
        match event {
            ListenEvent::List(group) => {
                let mut lists = self.lists.iter().zip(LISTS);
                lists.any(|(list, (_, known))| *list && known == *group)
            }
            // An update may concern a part of the resource (MCP 2025-11-25, "Resource Updated Notification").
            ListenEvent::Resource(uri) => self.resources.iter().any(|of| {
                let part = uri.strip_prefix(of.as_str());
                part.is_some_and(|part| {
                    part.is_empty() || part.starts_with('/') || of.ends_with('/')
                })
            }),
        }
    }
}

/// A notification that listeners may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenEvent<'a> {
    /// The list of this group has changed.
    List(&'a str),
    /// The resource with this URI has changed.
    Resource(&'a str),
}

/// A listener, with the id that its client chose.
#[derive(Debug)]
struct Listener {
    client: RequestId,
    filter: ListenFilter,
}

/// The listeners of a link.
#[derive(Debug, Default)]
pub(super) struct ListenTable {
    listeners: BTreeMap<Ticket, Listener>,
    /// The number of listeners of each resource.
    references: BTreeMap<String, usize>,
}

impl ListenTable {
    pub(super) fn len(&self) -> usize {
        self.listeners.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Adds a listener. Returns the filter that is honoured, and the resources to subscribe to.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        client: RequestId,
        mut filter: ListenFilter,
    ) -> (ListenFilter, Vec<String>) {
        let mut first = Vec::new();
        let references = &mut self.references;
        filter.resources.retain(|uri| {
            if let Some(count) = references.get_mut(uri) {
                *count += 1;
                return true;
            }
            let has_room = references.len() < MOST;
            if has_room {
                references.insert(uri.clone(), 1);
                first.push(uri.clone());
            }
            has_room
        });
        let honoured = filter.clone();
        self.listeners.insert(ticket, Listener { client, filter });
        (honoured, first)
    }

    /// Removes a listener. Returns the resources that no other one needs, or `None` if there is no such listener.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Vec<String>> {
        let listener = self.listeners.remove(&ticket)?;
        let resources = listener.filter.resources.into_iter();
        let last = resources.filter(|uri| {
            let count = self.references.get_mut(uri);
            let left = count.map_or(0, |count| {
                *count -= 1;
                *count
            });
            left == 0 && self.references.remove(uri).is_some()
        });
        Some(last.collect())
    }

    /// Removes all listeners, because the server forgets its subscriptions with the link.
    pub(super) fn clear(&mut self) -> Vec<Ticket> {
        self.references.clear();
        std::mem::take(&mut self.listeners).into_keys().collect()
    }

    /// Returns the listeners that a notification is for, with the ids that their clients chose.
    pub(super) fn recipients(&self, event: &ListenEvent<'_>) -> Vec<(Ticket, RequestId)> {
        let listeners = self.listeners.iter();
        let listeners = listeners.filter(|(_, listener)| listener.filter.takes(event));
        listeners
            .map(|(ticket, listener)| (*ticket, listener.client.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(value: &Value) -> ListenFilter {
        ListenFilter::of_params(&json!({ "notifications": value }))
    }

    fn id(number: u64) -> RequestId {
        RequestId::from_number(number)
    }

    #[test]
    fn a_filter_is_limited_to_what_the_server_sends() {
        let asked = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": 1,
            "resourceSubscriptions": ["a:b", 7], "later": true });
        let whole = filter(&asked);
        let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"] });
        assert_eq!(whole.to_json(), wanted);
        let mut some = whole.clone();
        some.limit_to(
            &json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } }),
        );
        let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
        assert_eq!(some.to_json(), wanted);
        some.limit_to(&json!({}));
        assert_eq!(some.to_json(), json!({}));
        for poor in [json!(null), json!([]), json!({ "notifications": 1 })] {
            assert_eq!(ListenFilter::of_params(&poor), ListenFilter::default());
        }
    }

    #[test]
    fn an_update_reaches_listeners_of_the_resource_and_of_what_contains_it() {
        let mut table = ListenTable::default();
        let of = |uri: &str| filter(&json!({ "resourceSubscriptions": [uri] }));
        table.add(Ticket(1), id(1), of("file:///a"));
        table.add(Ticket(2), id(2), of("file:///a/b"));
        table.add(
            Ticket(3),
            id(3),
            filter(&json!({ "toolsListChanged": true })),
        );
        let to = |event| {
            let recipients = table.recipients(&event);
            recipients
                .into_iter()
                .map(|(ticket, _)| ticket.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(to(ListenEvent::Resource("file:///a")), [1]);
        assert_eq!(to(ListenEvent::Resource("file:///a/b")), [1, 2]);
        assert_eq!(to(ListenEvent::Resource("file:///ab")), [0; 0]);
        assert_eq!(to(ListenEvent::List("tools")), [3]);
        assert_eq!(to(ListenEvent::List("prompts")), [0; 0]);
    }

    #[test]
    fn the_number_and_length_of_resources_are_bounded() {
        let many: Vec<String> = (0..300).map(|number| format!("a:{number}")).collect();
        let one = filter(&json!({ "resourceSubscriptions": many }));
        assert_eq!(one.resources.len(), MOST_OF_ONE);
        let long = format!("a:{}", "b".repeat(LONGEST));
        assert_eq!(
            filter(&json!({ "resourceSubscriptions": [long] }))
                .resources
                .len(),
            0
        );
        let mut table = ListenTable::default();
        let mut subscribed = 0;
        for ticket in 0..20 {
            let own: Vec<String> = (0..MOST_OF_ONE)
                .map(|number| format!("a:{ticket}/{number}"))
                .collect();
            let own = filter(&json!({ "resourceSubscriptions": own }));
            let (honoured, first) = table.add(Ticket(ticket), id(ticket), own);
            assert_eq!(honoured.resources.len(), first.len());
            subscribed += first.len();
        }
        assert_eq!(subscribed, MOST);
        for ticket in 0..20 {
            subscribed -= table.remove(Ticket(ticket)).unwrap().len();
        }
        assert_eq!((subscribed, table.references.len()), (0, 0));
    }

    proptest! {
        /// The server is subscribed to exactly the resources that some listener needs.
        #[test]
        fn subscriptions_follow_the_listeners(
            steps in prop::collection::vec((0_u64..6, prop::collection::btree_set(0_u8..5, 0..4)), 1..60)
        ) {
            let mut table = ListenTable::default();
            let mut needed: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
            let mut subscribed: BTreeSet<String> = BTreeSet::new();
            for (ticket, resources) in steps {
                if needed.remove(&ticket).is_some() {
                    for uri in table.remove(Ticket(ticket)).unwrap() {
                        prop_assert!(subscribed.remove(&uri));
                    }
                } else {
                    prop_assert!(table.remove(Ticket(ticket)).is_none());
                    let uris: Vec<String> = resources.iter().map(|number| format!("a:{number}")).collect();
                    let asked = filter(&json!({ "resourceSubscriptions": uris }));
                    let (honoured, first) = table.add(Ticket(ticket), id(ticket), asked.clone());
                    prop_assert_eq!(honoured, asked);
                    for uri in first {
                        prop_assert!(subscribed.insert(uri));
                    }
                    needed.insert(ticket, resources);
                }
                let wanted: BTreeSet<String> = needed.values().flatten().map(|number| format!("a:{number}")).collect();
                prop_assert_eq!(&subscribed, &wanted);
                for number in 0..5 {
                    let uri = format!("a:{number}");
                    let got = table.recipients(&ListenEvent::Resource(&uri));
                    let got: Vec<u64> = got.into_iter().map(|(ticket, _)| ticket.0).collect();
                    let wanted = needed.iter().filter(|(_, resources)| resources.contains(&number));
                    prop_assert_eq!(got, wanted.map(|(ticket, _)| *ticket).collect::<Vec<_>>());
                }
            }
        }
    }
}
