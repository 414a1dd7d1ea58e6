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
async fn all_goes_out_to_a_client_that_reads_late_and_the_end_is_last() {
    let (ear, mut hearing) = channel();
    let standing = LinkStats::default();
    let mut outlet = LinkClientQueue::new(ear, &standing);
    (0..50).for_each(|number| outlet.notify(text(number)));
    assert!(!outlet.is_empty());
    let hears = async {
        for number in 0..50 {
            // Not yet too late.
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            let Notification::Message(told, _) = hearing.next().await else {
                panic!("all is told before the end");
            };
            assert_eq!(told, text(number));
        }
        assert!(matches!(hearing.next().await, Notification::Lost(end) if end == loss()));
    };
    tokio::join!(outlet.end(Some(loss())), hears);
    let notices = standing.state("u").notices;
    assert_eq!((notices.told, notices.crowded), (50, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_for_too_long_misses_the_rest_and_is_told_the_end() {
    let (ear, mut hearing) = channel();
    let standing = LinkStats::default();
    let mut outlet = LinkClientQueue::new(ear, &standing);
    (0..50).for_each(|number| outlet.notify(text(number)));
    let since = clock::now();
    outlet.end(Some(loss())).await;
    assert!(clock::now() - since <= PATIENCE + Duration::from_millis(10));
    let mut told = 0;
    while let Notification::Message(..) = hearing.next().await {
        told += 1;
    }
    let notices = standing.state("u").notices;
    assert_eq!((notices.told, notices.crowded), (told, 50 - told));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_holds_nothing_up() {
    let (ear, hearing) = channel();
    let standing = LinkStats::default();
    let mut outlet = LinkClientQueue::new(ear, &standing);
    (0..50).for_each(|number| outlet.notify(text(number)));
    drop(hearing);
    let since = clock::now();
    outlet.end(None).await;
    assert_eq!(clock::now(), since);
    assert!(standing.state("u").notices.nobody > 0);
}
