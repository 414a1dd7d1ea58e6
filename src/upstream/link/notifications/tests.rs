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
    ear: NotificationSender,
    hearing: NotificationReceiver,
    sent: Vec<Sent>,
    doors: std::collections::VecDeque<(u64, oneshot::Receiver<SequencedReply>)>,
    had: Vec<Sent>,
}

impl Scene {
    fn told(tidings: Notification) -> Sent {
        let Notification::Message(text, _) = tidings else {
            panic!("no link is lost");
        };
        Sent::Told(std::str::from_utf8(&text).unwrap().parse().unwrap())
    }

    fn take(&mut self) {
        let Some((number, mut door)) = self.doors.pop_front() else {
            return;
        };
        self.ear.on_taken(&door.try_recv().unwrap());
        while let Some(tidings) = self.hearing.pending_before() {
            self.had.push(Scene::told(tidings));
        }
        self.had.push(Sent::Answer(number));
    }

    fn step(&mut self, step: Step) {
        let number = self.sent.len() as u64;
        match step {
            Step::Tell => {
                assert_eq!(
                    self.ear.notify(number.to_string().into()),
                    Delivery::Delivered
                );
                self.sent.push(Sent::Told(number));
            }
            Step::Answer => {
                let (reply, door) = oneshot::channel();
                answer(reply, Some(&self.ear), Ok(LinkReply::Sent));
                self.doors.push_back((number, door));
                self.sent.push(Sent::Answer(number));
            }
            Step::Take => self.take(),
            Step::Leave => {
                if let Some((number, mut door)) = self.doors.pop_back() {
                    door.close();
                    self.ear.on_taken(&door.try_recv().unwrap());
                    self.sent.retain(|sent| *sent != Sent::Answer(number));
                    // A number is not used twice.
                    self.sent.insert(0, Sent::Answer(u64::MAX));
                    self.had.insert(0, Sent::Answer(u64::MAX));
                }
            }
            Step::Hear => {
                if let Some(tidings) = self.hearing.next().now_or_never() {
                    self.had.push(Scene::told(tidings));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_client_has_all_in_the_order_in_which_it_went_out(steps in steps()) {
        let (ear, hearing) = channel();
        let mut scene = Scene {
            ear,
            hearing,
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
        while let Some(tidings) = scene.hearing.next().now_or_never() {
            scene.had.push(Scene::told(tidings));
        }
        prop_assert_eq!(scene.had, scene.sent);
    }
}

#[test]
fn what_waits_is_bounded_by_count_and_by_bytes_until_the_client_has_it() {
    let (ear, mut hearing) = channel();
    for _ in 0..SHARED {
        assert_eq!(ear.notify(Bytes::from_static(b"x")), Delivery::Delivered);
    }
    assert_eq!(ear.notify(Bytes::from_static(b"x")), Delivery::QueueFull);
    assert!(ear.start_missing());
    assert!(!ear.start_missing());
    let held = hearing.next().now_or_never();
    // It has been handed out, and is not written yet.
    assert_eq!(ear.notify(Bytes::from_static(b"x")), Delivery::QueueFull);
    drop(held);
    assert_eq!(ear.notify(Bytes::from_static(b"x")), Delivery::Delivered);
    while hearing.next().now_or_never().is_some() {}
    // What is longer than all the room takes all of it.
    let long = Bytes::from(vec![b'x'; 2 * UNIT * SHARED]);
    assert_eq!(ear.notify(long), Delivery::Delivered);
    assert!(ear.start_missing());
    assert_eq!(ear.notify(Bytes::from_static(b"x")), Delivery::QueueFull);
    drop(hearing);
    assert_eq!(ear.notify(Bytes::from_static(b"x")), Delivery::NoSubscriber);
}
