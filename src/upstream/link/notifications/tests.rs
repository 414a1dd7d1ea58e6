use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Tell,
    Answer,
    /// The client takes the first answer that it has not taken.
    Take,
    /// It goes away from the last call instead, out of turn.
    Leave,
    Hear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Tell),
        Just(Step::Answer),
        Just(Step::Take),
        Just(Step::Leave),
        Just(Step::Hear)
    ];
    prop::collection::vec(step, 0..60)
}

/// What went out, in order: the number of something told, or of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Told(u64),
    Answer(u64),
}

struct Scene {
    notifier: NotificationSender,
    receiver: NotificationReceiver,
    sent: Vec<Sent>,
    doors: std::collections::VecDeque<(u64, oneshot::Receiver<SequencedReply>)>,
    had: Vec<Sent>,
}

impl Scene {
    fn from_notification(notification: Notification) -> Sent {
        let Notification::Message(text, _) = notification else {
            panic!("no link is lost");
        };
        Sent::Told(std::str::from_utf8(&text).unwrap().parse().unwrap())
    }

    fn take(&mut self) {
        let Some((number, mut slot)) = self.doors.pop_front() else {
            return;
        };
        slot.try_recv().unwrap().mark_received();
        while let Some(notification) = self.receiver.pending_before() {
            self.had.push(Scene::from_notification(notification));
        }
        self.had.push(Sent::Answer(number));
    }

    fn step(&mut self, step: Step) {
        let number = self.sent.len() as u64;
        match step {
            Step::Tell => {
                assert_eq!(
                    self.notifier.notify(number.to_string().into()),
                    Delivery::Delivered
                );
                self.sent.push(Sent::Told(number));
            }
            Step::Answer => {
                let (reply, slot) = oneshot::channel();
                answer(reply, Some(&self.notifier), Ok(LinkReply::Sent));
                self.doors.push_back((number, slot));
                self.sent.push(Sent::Answer(number));
            }
            Step::Take => self.take(),
            Step::Leave => {
                if let Some((number, mut slot)) = self.doors.pop_back() {
                    slot.close();
                    slot.try_recv().unwrap().mark_received();
                    self.sent.retain(|sent| *sent != Sent::Answer(number));
                    // A number is not used twice.
                    self.sent.insert(0, Sent::Answer(u64::MAX));
                    self.had.insert(0, Sent::Answer(u64::MAX));
                }
            }
            Step::Hear => {
                if let Some(notification) = self.receiver.next().now_or_never() {
                    self.had.push(Scene::from_notification(notification));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_client_has_all_in_the_order_in_which_it_went_out(steps in steps()) {
        let (notifier, receiver) = channel();
        let mut scene = Scene {
            notifier,
            receiver,
            sent: Vec::new(),
            doors: Default::default(),
            had: Vec::new(),
        };
        for step in steps {
            scene.step(step);
            prop_assert_eq!(&scene.had[..], &scene.sent[..scene.had.len()]);
        }
        while !scene.doors.is_empty() {
            scene.take();
        }
        while let Some(notification) = scene.receiver.next().now_or_never() {
            scene.had.push(Scene::from_notification(notification));
        }
        prop_assert_eq!(scene.had, scene.sent);
    }
}

#[test]
fn queued_notifications_are_limited_by_count_and_by_bytes() {
    let (notifier, mut receiver) = channel();
    for _ in 0..SHARED {
        assert_eq!(
            notifier.notify(Bytes::from_static(b"x")),
            Delivery::Delivered
        );
    }
    assert_eq!(
        notifier.notify(Bytes::from_static(b"x")),
        Delivery::QueueFull
    );
    assert!(notifier.is_first_drop());
    assert!(!notifier.is_first_drop());
    let held = receiver.next().now_or_never();
    // It has been handed out, and is not written yet.
    assert_eq!(
        notifier.notify(Bytes::from_static(b"x")),
        Delivery::QueueFull
    );
    drop(held);
    assert_eq!(
        notifier.notify(Bytes::from_static(b"x")),
        Delivery::Delivered
    );
    while receiver.next().now_or_never().is_some() {}
    // What is longer than all the room takes all of it.
    let long = Bytes::from(vec![b'x'; 2 * UNIT * SHARED]);
    assert_eq!(notifier.notify(long), Delivery::Delivered);
    assert!(notifier.is_first_drop());
    assert_eq!(
        notifier.notify(Bytes::from_static(b"x")),
        Delivery::QueueFull
    );
    drop(receiver);
    assert_eq!(
        notifier.notify(Bytes::from_static(b"x")),
        Delivery::NoSubscriber
    );
}
