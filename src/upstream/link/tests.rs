//! An owner on a clock that only waits when everything else does, with a server that a test speaks for.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use http::uri::PathAndQuery;
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, yield_now};
use tokio::time::timeout;

use super::*;
use crate::telemetry::metrics::LinkState;
use dualgauge_model::jsonrpc::RequestTemplate;
use dualgauge_model::pending::{
    AnswerOrder, Backoff, LinkClients, LinkSettings, LogMessages, Outbound, Priority, RequestError,
    RetryRule, ServerRequests,
};
use dualgauge_model::plan::{Authority, Credentials, Transport as Spoken, UpstreamPlan};
use dualgauge_model::redact::Redaction;
use dualgauge_net::Tasks;
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;
use dualgauge_transport::multiplexing::Multiplexing;

const SECOND: Duration = Duration::from_secs(1);

/// One end of a link: what is written to it, and what it says.
type Peer = (mpsc::Receiver<Bytes>, mpsc::Sender<Event>);

/// A server whose links are handed to the test, one after another.
#[derive(Clone)]
struct Fake(Rc<RefCell<Vec<Peer>>>, mpsc::Sender<()>, Arc<Redaction>);

struct FakeLink {
    writes: mpsc::Sender<Bytes>,
    events: mpsc::Receiver<Event>,
    written: bool,
}

impl Transport for Fake {
    type Link = FakeLink;

    fn redaction(&self) -> &Redaction {
        &self.2
    }

    async fn open(&self) -> Result<FakeLink, String> {
        let (writes, written) = mpsc::channel(8);
        let (events, incoming) = mpsc::channel(8);
        self.0.borrow_mut().push((written, events));
        let _ = self.1.send(()).await;
        Ok(FakeLink {
            writes,
            events: incoming,
            written: false,
        })
    }
}

impl Link for FakeLink {
    async fn event(&mut self) -> Event {
        if std::mem::take(&mut self.written) {
            return Event::Written;
        }
        match self.events.recv().await {
            Some(event) => event,
            None => Event::Lost("the test has hung up".to_owned()),
        }
    }

    fn write(&mut self, message: Bytes) {
        self.written = true;
        self.writes.try_send(message).unwrap();
    }

    fn ping(&mut self) {}

    async fn close(self) {}
}

fn plan() -> UpstreamPlan {
    UpstreamPlan {
        more: Vec::new(),
        watch: Default::default(),
        name: "fake".to_owned(),
        side: Side::Rpc,
        tls: None,
        transport: Spoken::Http,
        authority: Authority::new(String::new()),
        path: PathAndQuery::from_static("/"),
        timeout: SECOND,
        connect_timeout: SECOND,
        queue_timeout: None,
        keep_alive: SECOND,
        idle_timeout: SECOND,
        connections: 1,
        queue: 0,
        http2: Multiplexing::Off,
        max_age: None,
        credentials: Credentials::Drop,
        forward: Vec::new(),
        envelope: Vec::new(),
    }
}

fn settings() -> LinkSettings {
    LinkSettings {
        order: AnswerOrder::Serial,
        pause: Duration::ZERO,
        queue: 4,
        login: None,
        initialize_params: None,
        revisions: Vec::new(),
        start_timeout: SECOND,
        backoff: Backoff {
            least: SECOND,
            most: SECOND,
            steady: SECOND,
        },
        max_consecutive_timeouts: 0,
        heartbeat: None,
        log_messages: LogMessages::Drop,
        server_requests: ServerRequests::Caller,
        clients: LinkClients::Several,
        depth: 64,
    }
}

/// What a test has of an owner that runs.
struct Driven {
    server: Rc<LinkUpstream>,
    peers: Rc<RefCell<Vec<Peer>>>,
    opened: mpsc::Receiver<()>,
    stats: Arc<LinkStats>,
}

impl Driven {
    async fn peer(&mut self) -> Peer {
        self.opened.recv().await.unwrap();
        self.peers.borrow_mut().remove(0)
    }

    fn state(&self) -> LinkState {
        self.stats.state("fake")
    }

    /// A call is asked, and answered so much later, by a server that stays. It lies in the inbox when the owner begins.
    async fn serves(&mut self, later: Duration) -> Peer {
        let server = self.server.clone();
        let reply = server.request(call(), SECOND + later, RetryRule::Never);
        let served = async {
            let (mut written, events) = self.peer().await;
            let question = written.recv().await.unwrap();
            assert!(question.starts_with(br#"{"jsonrpc":"2.0","id":1,"#));
            tokio::time::sleep(later).await;
            let answer = Bytes::from_static(br#"{"id":1,"result":2}"#);
            events.send(Event::Message(answer)).await.unwrap();
            (written, events)
        };
        let (result, peer) = tokio::join!(reply, served);
        assert!(matches!(result, Ok(LinkReply::Answer(1, _))), "{result:?}");
        peer
    }
}

/// Runs a test beside an owner, which ends when the test has let go of its server.
async fn with_driven_link(test: impl AsyncFnOnce(Driven)) {
    beside_one(|inbox| inbox, test).await;
}

/// Runs a test beside a link task whose inbox `kind` makes.
async fn beside_one(
    kind: impl FnOnce(RequestReceiver) -> RequestReceiver,
    test: impl AsyncFnOnce(Driven),
) {
    let work = async {
        let (handle, inbox) = open(4);
        let inbox = kind(inbox);
        let peers = Rc::<RefCell<Vec<Peer>>>::default();
        let (sender, opened) = mpsc::channel(8);
        let fake = Fake(peers.clone(), sender, Arc::default());
        let stats = Arc::<LinkStats>::default();
        let shared = stats.clone();
        let tasks = Tasks::default();
        tasks.start(async move { run_link("fake", fake, settings(), inbox, &shared).await });
        test(Driven {
            server: LinkUpstream::new(plan(), handle, Priority::Client),
            peers,
            opened,
            stats: stats.clone(),
        })
        .await;
        tasks.idle().await;
        let left = stats.state("fake");
        assert_eq!((left.ready, left.in_flight, left.queued), (0, 0, 0));
    };
    let local = LocalSet::new();
    let ended = timeout(Duration::from_secs(600), local.run_until(work)).await;
    ended.unwrap();
}

fn call() -> Outbound {
    let params = Rope::from(Bytes::from_static(b"[]"));
    Outbound::Call(RequestTemplate::new("do", params, &[]))
}

#[tokio::test(start_paused = true)]
async fn an_answer_finds_its_caller() {
    with_driven_link(async |mut driven: Driven| {
        driven.serves(Duration::ZERO).await;
    })
    .await;
}

/// Looks how many calls are in flight when it is woken.
struct Looks {
    stats: Arc<LinkStats>,
    found: AtomicU64,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let found = self.stats.state("fake").in_flight;
        self.found.store(found, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_reply_is_counted_as_answered() {
    with_driven_link(async |mut driven: Driven| {
        let (mut written, events) = driven.peer().await;
        let looks = Arc::new(Looks {
            stats: driven.stats.clone(),
            found: AtomicU64::new(u64::MAX),
        });
        let waker = Waker::from(looks.clone());
        let mut reply = pin!(driven.server.request(call(), SECOND, RetryRule::Never));
        let polled = reply.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        written.recv().await.unwrap();
        let answer = Bytes::from_static(br#"{"id":1,"result":2}"#);
        events.send(Event::Message(answer)).await.unwrap();
        for _ in 0..8 {
            yield_now().await;
        }
        assert_eq!(looks.found.load(Ordering::Relaxed), 0);
        assert!(reply.await.is_ok());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_frees_its_turn() {
    with_driven_link(async |mut driven: Driven| {
        let (mut written, events) = driven.peer().await;
        let waits = driven.server.request(call(), 60 * SECOND, RetryRule::Never);
        let abandoned = async {
            written.recv().await.unwrap();
            assert_eq!(driven.state().in_flight, 1);
        };
        tokio::select! {
            _ = waits => panic!("nobody has answered"),
            () = abandoned => {}
        }
        let reply = driven.server.request(call(), SECOND, RetryRule::Never);
        let served = async {
            assert!(
                written
                    .recv()
                    .await
                    .unwrap()
                    .starts_with(br#"{"jsonrpc":"2.0","id":2,"#)
            );
            for text in [r#"{"id":1,"result":"late"}"#, r#"{"id":2,"result":2}"#] {
                events.send(Event::Message(text.into())).await.unwrap();
            }
        };
        let (result, ()) = tokio::join!(reply, served);
        assert!(matches!(result, Ok(LinkReply::Answer(2, _))), "{result:?}");
        assert_eq!(driven.state().counts.late, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_link_that_breaks_fails_its_call_at_once_and_another_follows() {
    with_driven_link(async |mut driven: Driven| {
        let (mut written, events) = driven.peer().await;
        let reply = driven.server.request(call(), 60 * SECOND, RetryRule::Never);
        let breaks = async {
            written.recv().await.unwrap();
            drop(events);
        };
        let (result, ()) = tokio::join!(reply, breaks);
        assert!(matches!(result, Err(RequestError::Cut)), "{result:?}");
        driven.peer().await;
        assert_eq!(driven.state().counts.opened, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_allowed() {
    with_driven_link(async |mut driven: Driven| {
        let (_written, _say) = driven.peer().await;
        let begun = crate::telemetry::clock::now();
        let first = driven.server.request(call(), 3 * SECOND, RetryRule::Never);
        let second = driven.server.request(call(), 3 * SECOND, RetryRule::Never);
        let (first, second) = tokio::join!(first, second);
        assert!(matches!(first, Err(RequestError::Late)), "{first:?}");
        assert!(matches!(second, Err(RequestError::Busy)), "{second:?}");
        let took = crate::telemetry::clock::now() - begun;
        assert!(took <= 3 * SECOND + Duration::from_millis(5), "{took:?}");
        let many = (0..80).map(|_| driven.server.request(call(), SECOND, RetryRule::Never));
        let many = futures_util::future::join_all(many).await;
        let busy = many
            .iter()
            .filter(|result| matches!(result, Err(RequestError::Busy)));
        assert!(busy.count() >= 75);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_first_call_is_cancelled_at_once_receives_notifications_for_all() {
    with_driven_link(async |mut driven: Driven| {
        let (mut written, events) = driven.peer().await;
        let (notifier, mut heard) = channel();
        let links = ClientLinks::default();
        links.set_notifications(notifier);
        let ask = || {
            let asker = Requester {
                links: Some(&links),
                ..Requester::default()
            };
            let what = (call(), RetryRule::Never);
            driven.server.request_for(asker, what.0, what.1, SECOND)
        };
        // The owner, on the same thread, comes to see it when nobody waits for it any more.
        assert!(ask().now_or_never().is_none());
        let served = async {
            written.recv().await.unwrap();
            let answer = Bytes::from_static(br#"{"id":1,"result":2}"#);
            events.send(Event::Message(answer)).await.unwrap();
        };
        let (result, ()) = tokio::join!(ask(), served);
        assert!(matches!(result, Ok(LinkReply::Answer(1, _))), "{result:?}");
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        events.send(Event::Message(changed.into())).await.unwrap();
        match heard.next().await {
            Notification::Message(text, _) => assert_eq!(text, changed),
            Notification::Lost(loss) => panic!("{loss:?}"),
        }
    })
    .await;
}

#[test]
fn a_client_that_only_listens_has_a_link_and_gets_another_when_it_has_ended() {
    let bounds = LinkLimits {
        most: 1,
        idle: SECOND,
        queue: 4,
    };
    let (opener, mut launches) = opener(bounds, LinkSlots::default());
    let server = LinkUpstream::new(plan(), LinkSharing::PerClient(opener), Priority::Client);
    let (notifier, _heard) = channel();
    let links = ClientLinks::default();
    links.set_notifications(notifier);
    server.listen(&links, &HeaderMap::new());
    let first = launches.try_recv().unwrap();
    server.listen(&links, &HeaderMap::new());
    assert!(launches.try_recv().is_err(), "it is there");
    // Another client finds no place before that.
    let (notifier, _heard) = channel();
    let other = ClientLinks::default();
    other.set_notifications(notifier);
    server.listen(&other, &HeaderMap::new());
    assert!(launches.try_recv().is_err(), "there is no place");
    drop(first);
    server.listen(&other, &HeaderMap::new());
    let second = launches.try_recv().unwrap();
    server.listen(&links, &HeaderMap::new());
    assert!(launches.try_recv().is_err(), "there is no place");
    drop(second);
    server.listen(&links, &HeaderMap::new());
    assert!(launches.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_while_an_unused_link_ends_is_served() {
    for _ in 0..32 {
        let unused_at_once = |inbox: RequestReceiver| inbox.for_client(None, Duration::ZERO);
        beside_one(unused_at_once, async |mut driven: Driven| {
            driven.serves(Duration::ZERO).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_is_unused_from_its_last_answer_on() {
    let unused_after_a_second = |inbox: RequestReceiver| inbox.for_client(None, SECOND);
    beside_one(unused_after_a_second, async |mut driven: Driven| {
        let _open = driven.serves(5 * SECOND).await;
        tokio::time::sleep(SECOND / 2).await;
        assert_eq!(driven.state().ready, 1);
        tokio::time::sleep(SECOND).await;
        assert_eq!(driven.state().ready, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_retired_link_opens_no_other_when_it_is_lost() {
    let over = watch::Sender::new(false);
    let until = over.subscribe();
    beside_one(
        move |inbox| inbox.ending_with(until),
        async |mut driven: Driven| {
            let server = driven.server.clone();
            let (mut written, events) = driven.peer().await;
            let reply = server.request(call(), 60 * SECOND, RetryRule::Once);
            let drops = async {
                written.recv().await.unwrap();
                over.send_replace(true);
                tokio::time::sleep(SECOND).await;
                drop(events);
            };
            let (result, ()) = tokio::join!(reply, drops);
            assert!(matches!(result, Err(RequestError::Cut)), "{result:?}");
            let another = timeout(60 * SECOND, driven.opened.recv()).await;
            assert!(!matches!(another, Ok(Some(()))));
        },
    )
    .await;
}
