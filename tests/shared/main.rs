//! The shared store against a real `redis-server` that is killed, stopped, emptied and started again.
//!
//! `.ci/install-redis` installs it; the tests are ignored unless they are asked for (`cargo test -- --ignored`).

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a server that does not do as the test says fails the test"
)]

mod behind_tls;
mod server;

use std::cell::Cell;
use std::error::Error;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dualgauge::store::{
    CommitError, Health, ReplicaReport, Store, StoreError, Unreachable, Versioned,
};
use dualgauge::telemetry::clock::now;
use futures_util::future::join_all;
use server::{Memory, Server, TIMEOUT, open};

const WITHIN: Duration = Duration::from_secs(60);

async fn within<T>(future: impl Future<Output = T>) -> T {
    let what = tokio::time::timeout(WITHIN, Box::pin(future)).await;
    what.expect("it ends in time")
}

fn at(revision: u64, text: &str) -> Versioned {
    Versioned {
        revision,
        text: text.to_owned(),
    }
}

fn report(replica: &str, boot: &str, at: u64) -> ReplicaReport {
    ReplicaReport {
        replica: replica.to_owned(),
        boot: boot.to_owned(),
        at,
        text: format!("{{\"calls\":{at}}}").into(),
    }
}

fn is_away(error: &StoreError) -> bool {
    matches!(error, StoreError::Away { .. })
}

/// Asks again, as an owner does who looks now and then, until the store answers.
async fn read_when_back(store: &mut Store, known: u64) -> Result<Option<Versioned>, StoreError> {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    loop {
        looks.tick().await;
        match store.read(known).await {
            Err(error) if is_away(&error) => {}
            other => return other,
        }
    }
}

/// Adds one to the number that is the state, whatever happens meanwhile; counts the calls that failed.
async fn add_one(store: &mut Store, seen: &mut Versioned, failed: &Cell<u64>) {
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    loop {
        let number: u64 = seen.text.parse().unwrap_or(0);
        // All who have seen the same want to write the same text: only one of them has.
        let text = (number + 1).to_string();
        match store.commit(seen.revision, &text).await {
            Ok(revision) => {
                *seen = Versioned { revision, text };
                return;
            }
            Err(CommitError::Conflict(found)) => *seen = found,
            Err(CommitError::Store(error)) => {
                assert!(is_away(&error), "{error}");
                failed.set(failed.get() + 1);
                looks.tick().await;
            }
        }
    }
}

/// Four replicas add 250 each; tells how many calls have failed on the way.
async fn race(server: &str, done: &AtomicU64) -> u64 {
    let failed = Cell::new(0);
    let writers = (0..4).map(async |_| {
        let mut store = open(server, TIMEOUT).await;
        let mut seen = Versioned::default();
        for _ in 0..250 {
            add_one(&mut store, &mut seen, &failed).await;
            done.fetch_add(1, Ordering::Relaxed);
        }
    });
    within(join_all(writers)).await;
    failed.get()
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn no_increment_of_four_replicas_is_lost_or_made_twice() {
    let server = Server::start(Memory::Lost);
    let failed = race(&server.url(), &AtomicU64::new(0)).await;
    assert_eq!(failed, 0);
    let found = server.store().await.read(0).await.unwrap();
    assert_eq!(found, Some(at(1_000, "1000")));
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn none_is_lost_or_made_twice_when_the_store_restarts_in_the_middle() {
    const KILLS: u64 = 9;
    let mut server = Server::start(Memory::Kept);
    let url = server.url();
    let done = Arc::new(AtomicU64::new(0));
    let seen = done.clone();
    let killer = thread::spawn(move || {
        for kill in 1..=KILLS {
            while seen.load(Ordering::Relaxed) < kill * 1_000 / (KILLS + 1) {
                thread::yield_now();
            }
            assert!(server.run_again());
        }
        server
    });
    let failed = race(&url, &done).await;
    let server = killer.join().unwrap();
    assert!(failed > 0, "no call was interrupted");
    let found = server.store().await.read(0).await.unwrap();
    assert_eq!(found, Some(at(1_000, "1000")));
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_change_by_one_replica_is_seen_by_another() {
    let server = Server::start(Memory::Lost);
    let (mut one, mut other) = (server.store().await, server.store().await);
    assert_eq!(one.read(0).await.unwrap(), None);
    assert_eq!(one.commit(0, "{\"a\":1.10}").await.unwrap(), 1);
    assert_eq!(other.read(0).await.unwrap(), Some(at(1, "{\"a\":1.10}")));
    assert_eq!(other.read(1).await.unwrap(), None);
    let Err(CommitError::Conflict(found)) = other.commit(0, "2").await else {
        panic!("a conflict");
    };
    assert_eq!(found, at(1, "{\"a\":1.10}"));
    assert_eq!((one.health(), other.health()), (Health::Fine, Health::Fine));
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_commit_whose_answer_was_lost_is_found_again() {
    let server = Server::start(Memory::Lost);
    let mut one = open(&server.url(), Duration::from_millis(200)).await;
    let mut other = server.store().await;
    assert_eq!(one.commit(0, "1").await.unwrap(), 1);
    server.signal("STOP");
    let lost = one.commit(1, "2").await;
    assert!(
        matches!(&lost, Err(CommitError::Store(error)) if is_away(error)),
        "{lost:?}"
    );
    server.signal("CONT");
    // The server had it already, and makes it before it notices that nobody listens.
    within(async { while other.read(1).await.unwrap().is_none() {} }).await;
    assert_eq!(other.commit(2, "3").await.unwrap(), 3);
    within(read_when_back(&mut one, 0)).await.unwrap();
    assert_eq!(one.commit(1, "2").await.unwrap(), 2, "it was made");
    assert_eq!(
        one.read(2).await.unwrap(),
        Some(at(3, "3")),
        "and not again"
    );
    let same_text = other.commit(1, "2").await;
    assert!(
        matches!(same_text, Err(CommitError::Conflict(_))),
        "it is the commit of another"
    );
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_store_that_is_away_fails_in_time_and_is_used_again_when_it_is_back() {
    let mut server = Server::start(Memory::Kept);
    let mut store = open(&server.url(), Duration::from_millis(300)).await;
    store.commit(0, "1").await.unwrap();

    server.signal("STOP");
    let began = now();
    let error = store.read(1).await.unwrap_err();
    assert!(now() - began < WITHIN);
    let StoreError::Away { source, .. } = &error else {
        panic!("{error}");
    };
    assert!(matches!(source, Unreachable::Timeout(_)), "{source}");
    let error = store.read(1).await.unwrap_err();
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("the next attempt follows shortly")
    );
    let Health::Away { since, error } = store.health() else {
        panic!("it shows");
    };
    assert!(error.contains("is unavailable: "), "{error}");

    server.kill();
    let mut tries = 0;
    while tries < 20 {
        let error = store.commit(1, "2").await;
        assert!(matches!(error, Err(CommitError::Store(error)) if is_away(&error)));
        tries += 1;
    }
    let Health::Away { since: still, .. } = store.health() else {
        panic!("it still shows");
    };
    assert_eq!(since, still);

    assert!(server.run_again());
    assert_eq!(within(read_when_back(&mut store, 1)).await.unwrap(), None);
    assert_eq!(store.health(), Health::Fine);
    assert_eq!(store.commit(1, "2").await.unwrap(), 2);
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_kept_connection_that_broke_is_replaced_within_the_call() {
    let mut server = Server::start(Memory::Kept);
    let mut store = server.store().await;
    store.commit(0, "1").await.unwrap();
    assert!(server.run_again());
    assert_eq!(store.commit(1, "2").await.unwrap(), 2);
    assert_eq!(store.health(), Health::Fine);
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_store_that_comes_back_empty_has_forgotten_and_is_given_the_state_back() {
    let mut server = Server::start(Memory::Lost);
    let (mut one, mut other) = (server.store().await, server.store().await);
    one.commit(0, "1").await.unwrap();
    let good = at(2, "2");
    one.commit(1, &good.text).await.unwrap();
    assert!(server.run_again());

    let error = within(read_when_back(&mut one, 2)).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Forgot { known: 2, found: 0 }),
        "{error}"
    );
    let error = one.commit(2, "3").await.unwrap_err();
    let forgot = StoreError::Forgot { known: 2, found: 0 }.to_string();
    assert_eq!(error.to_string(), forgot);
    assert_eq!(one.health(), Health::Fine);

    one.restore(&good).await.unwrap();
    assert_eq!(one.read(2).await.unwrap(), None);
    // Who knows less, or comes later, changes nothing.
    other.restore(&at(1, "1")).await.unwrap();
    other.restore(&at(2, "[]")).await.unwrap();
    assert_eq!(other.read(1).await.unwrap(), Some(good));
    assert_eq!(other.commit(2, "3").await.unwrap(), 3);
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_store_that_comes_back_with_an_older_copy_has_forgotten() {
    let mut server = Server::start(Memory::Lost);
    let mut store = server.store().await;
    store.commit(0, "1").await.unwrap();
    server.say(&["SAVE"]).await;
    store.commit(1, "2").await.unwrap();
    assert!(server.run_again());
    let error = within(read_when_back(&mut store, 2)).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Forgot { known: 2, found: 1 }),
        "{error}"
    );
    store.restore(&at(2, "2")).await.unwrap();
    assert_eq!(store.read(1).await.unwrap(), Some(at(2, "2")));
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn two_states_of_one_revision_are_told_apart() {
    let server = Server::start(Memory::Lost);
    let (mut one, mut other) = (server.store().await, server.store().await);
    one.commit(0, "1").await.unwrap();
    one.commit(1, "2").await.unwrap();
    // The server forgets, and somebody who had not seen the second state goes on from the first.
    server.say(&["FLUSHALL"]).await;
    other.restore(&at(1, "1")).await.unwrap();
    assert_eq!(other.commit(1, "[2]").await.unwrap(), 2);
    one.restore(&at(2, "2")).await.unwrap();

    let Err(CommitError::Conflict(found)) = one.commit(2, "3").await else {
        panic!("it goes on from another state");
    };
    assert_eq!(found, at(2, "[2]"));
    assert_eq!(one.read(2).await.unwrap(), None, "it is known now");
    assert_eq!(one.commit(2, "[2,3]").await.unwrap(), 3);

    server.say(&["FLUSHALL"]).await;
    other.restore(&at(3, "[]")).await.unwrap();
    assert_eq!(one.read(3).await.unwrap(), Some(at(3, "[]")));
    assert_eq!(one.read(3).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn half_of_the_state_counts_as_none_and_what_is_foreign_is_named() {
    let server = Server::start(Memory::Lost);
    let mut store = server.store().await;
    store.commit(0, "1").await.unwrap();
    server.say(&["DEL", "{test}:rollout"]).await;
    let error = store.read(1).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Forgot { known: 1, found: 0 }),
        "{error}"
    );
    server
        .say(&[
            "MSET",
            "{test}:rollout",
            "x",
            "{test}:rollout:revision",
            "first",
        ])
        .await;
    let error = store.read(1).await.unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    let Health::Away { error, .. } = store.health() else {
        panic!("it shows");
    };
    assert!(error.contains("`{test}:rollout:revision`"), "{error}");
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn reports_of_all_processes_are_told_and_folded_in_one_step() {
    let server = Server::start(Memory::Lost);
    let (mut one, mut other) = (server.store().await, server.store().await);
    let (gone, here) = (report("a", "gone", 5), report("a", "here", 7));
    let own = report("b/\"é", "here", 6);
    assert_eq!(one.exchange(&gone).await.unwrap().reports, from_ref(&gone));
    one.exchange(&here).await.unwrap();
    let told = other.exchange(&own).await.unwrap();
    assert_eq!(told.archive, Versioned::default());
    assert_eq!(told.reports, [own.clone(), gone.clone(), here.clone()]);

    other.fold(0, "[5]", from_ref(&gone)).await.unwrap();
    let Err(CommitError::Conflict(archive)) = one.fold(0, "[5]", &[gone]).await else {
        panic!("somebody was first");
    };
    assert_eq!(archive, at(1, "[5]"));
    // What was left since is not thrown away by somebody who has not seen it.
    let newer = report("a", "here", 8);
    one.exchange(&newer).await.unwrap();
    let late = other.fold(1, "[12]", &[here]).await;
    assert!(matches!(late, Err(CommitError::Conflict(_))), "{late:?}");
    let told = other.exchange(&own).await.unwrap();
    assert_eq!(
        (told.archive, told.reports),
        (at(1, "[5]"), vec![own, newer])
    );

    one.restore_archive(&at(9, "[]")).await.unwrap();
    server.say(&["FLUSHALL"]).await;
    one.restore_archive(&at(9, "[9]")).await.unwrap();
    let told = one.exchange(&report("a", "here", 9)).await.unwrap();
    assert_eq!((told.archive, told.reports.len()), (at(9, "[9]"), 1));
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_server_on_a_port_is_asked_with_its_password_which_is_never_shown() {
    let (_server, port) = Server::start_on_a_port("o'pen s%same");
    let mut store = open(
        &format!("redis://:o'pen%20s%25same@127.0.0.1:{port}/3"),
        TIMEOUT,
    )
    .await;
    assert_eq!(store.commit(0, "1").await.unwrap(), 1);
    assert_eq!(store.read(0).await.unwrap(), Some(at(1, "1")));

    let mut wrong = open(&format!("valkey://:hunter2@127.0.0.1:{port}"), TIMEOUT).await;
    let error = wrong.read(0).await.unwrap_err();
    let shown = format!("{error} {error:?} {wrong:?} {:?}", wrong.health());
    assert!(
        is_away(&error) && shown.contains(&format!("127.0.0.1:{port}")),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}
