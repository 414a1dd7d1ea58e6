use super::*;
use crate::upstream::link::{LostBy, Notification, channel};

fn text(number: usize) -> Bytes {
    // Sixteen of them fill the room.
    let mut text = vec![b' '; 64 * 1024];
    text.splice(..0, number.to_string().into_bytes());
    text.into()
}

fn loss() -> LinkLost {
    LinkLost {
        upstream: "u".to_owned(),
        through: LostBy::Server,
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_reader_gets_everything_and_the_end_last() {
    let (notifier, mut receiver) = channel();
    let stats = LinkStats::default();
    let mut queue = LinkClientQueue::new(notifier, &stats);
    (0..50).for_each(|number| queue.notify(text(number)));
    assert!(queue.deadline().is_some());
    let hears = async {
        for number in 0..50 {
            // Not yet too late.
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            let Notification::Message(told, _) = receiver.next().await else {
                panic!("all is told before the end");
            };
            assert_eq!(told, text(number));
        }
        assert!(matches!(receiver.next().await, Notification::Lost(end) if end == loss()));
    };
    tokio::join!(queue.end(Some(loss())), hears);
    let notices = stats.state("u").notices;
    assert_eq!((notices.told, notices.crowded), (50, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_for_too_long_gets_only_the_end() {
    let (notifier, mut receiver) = channel();
    let stats = LinkStats::default();
    let mut queue = LinkClientQueue::new(notifier, &stats);
    (0..50).for_each(|number| queue.notify(text(number)));
    let since = clock::now();
    queue.end(Some(loss())).await;
    assert!(clock::now() - since <= PATIENCE + Duration::from_millis(10));
    let mut told = 0;
    while let Notification::Message(..) = receiver.next().await {
        told += 1;
    }
    let notices = stats.state("u").notices;
    assert_eq!((notices.told, notices.crowded), (told, 50 - told));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_holds_nothing_up() {
    let (notifier, receiver) = channel();
    let stats = LinkStats::default();
    let mut queue = LinkClientQueue::new(notifier, &stats);
    (0..50).for_each(|number| queue.notify(text(number)));
    drop(receiver);
    let since = clock::now();
    queue.end(None).await;
    assert_eq!(clock::now(), since);
    assert!(stats.state("u").notices.nobody > 0);
}
