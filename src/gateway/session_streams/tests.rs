use futures_util::FutureExt;

use super::*;
use crate::gateway::cancellation::CallerId;

const fn at(way: Way, session: CancelScope<'_>) -> ServedSession<'_> {
    ServedSession { session, way }
}

const ONE: ServedSession<'_> = at(Way::Old, CancelScope::Socket(1));
const OTHER: ServedSession<'_> = at(Way::Old, CancelScope::Socket(2));

fn subscribe(registry: &Arc<SessionStreams>, session: ServedSession<'_>, uri: &str) {
    registry.subscribe(session, uri.to_owned()).unwrap().keep();
}

fn resources(stream: &SessionStream) -> BTreeSet<String> {
    match stream.state() {
        StreamState::Current(wanted) => wanted.resources,
        other @ (StreamState::Replaced | StreamState::Ended) => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_learns_of_its_resources_and_of_its_successor() {
    let registry = Arc::<SessionStreams>::default();
    subscribe(&registry, ONE, "a:b");
    let stream = registry.open(ONE);
    assert_eq!(resources(&stream), BTreeSet::from(["a:b".to_owned()]));
    subscribe(&registry, OTHER, "c:d");
    assert_eq!(stream.changed().now_or_never(), None);
    assert!(registry.unsubscribe(ONE.session, "a:b"));
    assert!(!registry.unsubscribe(ONE.session, "a:b"));
    assert_eq!(stream.changed().now_or_never(), Some(()));
    assert_eq!(resources(&stream), BTreeSet::new());
    let next = registry.open(ONE);
    assert_eq!(stream.changed().now_or_never(), Some(()));
    assert_eq!(stream.state(), StreamState::Replaced);
    drop(stream);
    assert_eq!(resources(&next), BTreeSet::new());
    drop(next);
    assert!(registry.lock().streams.is_empty());
}

#[test]
fn a_new_resource_waits_until_the_stream_includes_it() {
    let registry = Arc::<SessionStreams>::default();
    let stream = registry.open(ONE);
    let new = registry.subscribe(ONE, "a:b".to_owned()).unwrap();
    assert_eq!(new.is_included().now_or_never(), None);
    let StreamState::Current(wanted) = stream.state() else {
        panic!("the stream has ended");
    };
    stream.include(wanted.changes);
    assert_eq!(new.is_included().now_or_never(), Some(()));
    // The server refuses it.
    drop(new);
    assert_eq!(resources(&stream), BTreeSet::new());
    let new = registry.subscribe(ONE, "a:b".to_owned()).unwrap();
    drop(stream);
    assert_eq!(new.is_included().now_or_never(), Some(()));
}

#[test]
fn a_refused_subscription_leaves_an_accepted_one_to_the_same_resource() {
    let registry = Arc::<SessionStreams>::default();
    let stream = registry.open(ONE);
    let refused = registry.subscribe(ONE, "a:b".to_owned()).unwrap();
    let accepted = registry.subscribe(ONE, "a:b".to_owned()).unwrap();
    accepted.keep();
    drop(refused);
    assert_eq!(resources(&stream), BTreeSet::from(["a:b".to_owned()]));
}

/// Returns the names of so many sessions.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// Subscribes each of these sessions of a client, and holds it.
fn hold_all<'a>(
    registry: &Arc<SessionStreams>,
    client: &'a str,
    names: &'a [String],
) -> Vec<SessionStream> {
    let hold = |name: &'a String| {
        let session = CancelScope::Session {
            caller: CallerId {
                name: client,
                key: None,
            },
            name: name.as_bytes(),
        };
        let session = at(Way::Old, session);
        subscribe(registry, session, "a:b");
        registry.hold(session)
    };
    names.iter().filter_map(hold).collect()
}

#[test]
fn held_subscriptions_are_bounded_for_each_client_and_in_all() {
    let registry = Arc::<SessionStreams>::default();
    let names = names(2 * HELD);
    let first = hold_all(&registry, "c", &names);
    assert_eq!(first.len(), HELD_OF_CLIENT);
    assert!(first[0].permit_to_hold().is_none());
    let others: Vec<_> = ["d", "e", "f", "g"]
        .into_iter()
        .map(|client| hold_all(&registry, client, &names[..HELD_OF_CLIENT]))
        .collect();
    let lengths: Vec<_> = others.iter().map(Vec::len).collect();
    assert_eq!(lengths, [HELD_OF_CLIENT, HELD_OF_CLIENT, HELD_OF_CLIENT, 0]);
    drop((first, others));
    assert!(registry.lock().held.is_empty());
    assert_eq!(hold_all(&registry, "h", &names[..1]).len(), 1);
}

#[test]
fn a_session_that_ends_loses_its_stream_and_its_resources() {
    let registry = Arc::<SessionStreams>::default();
    assert!(!registry.end(ONE.session));
    assert!(registry.hold(ONE).is_none());
    subscribe(&registry, ONE, "a:b");
    let held = registry.hold(ONE).unwrap();
    let new = registry.subscribe(ONE, "c:d".to_owned()).unwrap();
    assert_eq!(new.is_included().now_or_never(), None);
    new.keep();
    assert_eq!(held.changed().now_or_never(), Some(()));
    assert!(registry.hold(ONE).is_none());
    assert!(registry.end(ONE.session));
    assert_eq!(held.changed().now_or_never(), Some(()));
    assert_eq!(held.state(), StreamState::Ended);
    assert!(registry.hold(ONE).is_none());
}

#[test]
fn a_session_has_a_stream_and_resources_at_each_server_of_a_pair() {
    let registry = Arc::<SessionStreams>::default();
    let new = at(Way::New, ONE.session);
    let streams = [registry.open(ONE), registry.open(new)];
    let is_used = |stream: &SessionStream| match stream.state() {
        StreamState::Current(wanted) => wanted.is_used,
        other @ (StreamState::Replaced | StreamState::Ended) => panic!("{other:?}"),
    };
    assert_eq!([0, 1].map(|index| is_used(&streams[index])), [true, false]);
    registry.note_use(new);
    assert_eq!(streams[1].changed().now_or_never(), Some(()));
    assert!(is_used(&streams[1]));
    registry.note_use(new);
    assert_eq!(streams[1].changed().now_or_never(), None);
    subscribe(&registry, new, "a:b");
    assert_eq!(resources(&streams[0]), BTreeSet::new());
    assert_eq!(resources(&streams[1]), BTreeSet::from(["a:b".to_owned()]));
    assert!(registry.unsubscribe(ONE.session, "a:b"));
    assert!(registry.end(ONE.session));
    let states = [0, 1].map(|index| streams[index].state());
    assert_eq!(states, [StreamState::Ended, StreamState::Ended]);
}
