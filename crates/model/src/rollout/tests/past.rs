//! What an open session keeps of what flags were.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A rollout, and what was before it.
struct Timeline {
    past: FlagHistory,
    now: Rollout,
}

impl Timeline {
    fn of(flags: Vec<Flag>) -> Timeline {
        Timeline {
            past: FlagHistory::new(GRACE),
            now: rollout(flags),
        }
    }

    /// Other flags are in force from a second on, which is the number of their plan as well.
    fn become_at(&mut self, flags: Vec<Flag>, at: ProcessTime) {
        let next = rollout(flags);
        let generation = Generation(at.as_secs());
        let start = PlanStart { generation, at };
        self.past = next.history_after(&self.past, &self.now.flags, start);
        self.now = next;
    }

    /// The decision for a session that began then, now.
    fn decide(&self, key: &str, began: ProcessTime, now: ProcessTime) -> Decision {
        self.decide_for(Some(key), began, now)
    }

    fn decide_for(&self, key: Option<&str>, began: ProcessTime, now: ProcessTime) -> Decision {
        self.now.decide(&CallFacts {
            caller: caller("other", key),
            route: "r",
            side: Side::Rest,
            headers: &HeaderMap::new(),
            session: Some(SessionStart {
                past: &self.past,
                began: Generation(began.as_secs()),
                now,
            }),
        })
    }
}

const GRACE: Duration = Duration::from_secs(900);

fn share(stage: Stage, percent: u32) -> Flag {
    Flag {
        percent: Percent::from_thousandths(percent * 1_000).unwrap(),
        ..flag("f", stage)
    }
}

#[test]
fn a_session_keeps_its_decision_until_the_grace_has_passed() {
    let mut line = Timeline::of(vec![share(Stage::Translate, 0)]);
    line.become_at(vec![share(Stage::Translate, 100)], 10 * SECOND);
    let stage = |began, now| line.decide("k", began, now).stage;
    assert_eq!(stage(9 * SECOND, 11 * SECOND), Stage::Passthrough);
    assert_eq!(stage(10 * SECOND, 11 * SECOND), Stage::Translate);
    assert_eq!(stage(9 * SECOND, 909 * SECOND), Stage::Passthrough);
    assert_eq!(stage(9 * SECOND, 910 * SECOND), Stage::Translate);
}

#[test]
fn the_reason_says_that_a_session_is_why() {
    let mut line = Timeline::of(vec![share(Stage::Translate, 100)]);
    line.become_at(vec![share(Stage::Translate, 0)], 10 * SECOND);
    let decision = line.decide("k", SECOND, 11 * SECOND);
    assert_eq!(
        (decision.stage, decision.why),
        (Stage::Translate, DecisionReason::Session(0))
    );
    assert_eq!(
        line.now.describe(decision.why),
        "flag f as the session began"
    );
    assert_eq!(
        line.decide("k", 10 * SECOND, 11 * SECOND).why,
        DecisionReason::Default
    );
}

#[test]
fn a_trip_acts_on_open_sessions_and_re_arming_does_not_take_them_back() {
    let armed = || vec![share(Stage::Translate, 100)];
    let mut tripped = armed();
    tripped[0].arming = Arming::Tripped;
    let mut line = Timeline::of(armed());
    line.become_at(tripped, 10 * SECOND);
    assert_eq!(
        line.decide("k", SECOND, 11 * SECOND).why,
        DecisionReason::Default
    );
    line.become_at(armed(), 20 * SECOND);
    assert_eq!(
        line.decide("k", SECOND, 21 * SECOND).why,
        DecisionReason::Default
    );
    assert_eq!(
        line.decide("k", 12 * SECOND, 21 * SECOND).why,
        DecisionReason::Default
    );
    assert_eq!(
        line.decide("k", 20 * SECOND, 21 * SECOND).why,
        DecisionReason::Flag(0)
    );
}

#[test]
fn a_new_flag_takes_no_open_session_and_an_edit_of_what_a_flag_covers_acts_at_once() {
    let mut line = Timeline::of(vec![]);
    line.become_at(vec![share(Stage::Translate, 100)], 10 * SECOND);
    assert_eq!(
        line.decide("k", SECOND, 11 * SECOND).why,
        DecisionReason::Default
    );
    let mut wider = share(Stage::Retired, 100);
    wider.side = Some(Side::Rest);
    line.become_at(vec![wider], 20 * SECOND);
    assert_eq!(
        line.decide("k", SECOND, 21 * SECOND).why,
        DecisionReason::Flag(0)
    );
}

#[test]
fn a_new_or_re_armed_flag_takes_no_open_session_without_a_key_either() {
    let keyless = || Flag {
        without_key: WithoutKey::In,
        ..share(Stage::Translate, 1)
    };
    let mut line = Timeline::of(vec![]);
    line.become_at(vec![keyless()], 10 * SECOND);
    let why = |line: &Timeline, began| line.decide_for(None, began, 100 * SECOND).why;
    assert_eq!(why(&line, SECOND), DecisionReason::Default);
    assert_eq!(why(&line, 10 * SECOND), DecisionReason::Keyless(0));
    let mut tripped = keyless();
    tripped.arming = Arming::Tripped;
    line.become_at(vec![tripped], 20 * SECOND);
    line.become_at(vec![keyless()], 30 * SECOND);
    assert_eq!(why(&line, 10 * SECOND), DecisionReason::Default);
    assert_eq!(why(&line, 30 * SECOND), DecisionReason::Keyless(0));
}

#[test]
fn a_session_may_move_while_an_earlier_decision_may_be_in_force() {
    let may_move = |line: &Timeline, now| {
        let headers = HeaderMap::new();
        let requester = Requester::new(caller("other", None), &headers);
        line.now
            .session_may_move(&line.past, now, Side::Rest, requester)
    };
    for (before, after, expected) in [
        (
            share(Stage::Translate, 10),
            share(Stage::Translate, 0),
            true,
        ),
        (share(Stage::Retired, 10), share(Stage::Shadow, 100), true),
        (share(Stage::Shadow, 10), share(Stage::Shadow, 0), false),
        (share(Stage::Translate, 0), share(Stage::Shadow, 0), false),
    ] {
        let mut line = Timeline::of(vec![before]);
        assert!(!may_move(&line, 9 * SECOND));
        line.become_at(vec![after.clone()], 10 * SECOND);
        assert_eq!(may_move(&line, 11 * SECOND), expected, "{after:?}");
        assert!(!may_move(&line, 910 * SECOND));
    }
    let mut line = Timeline::of(vec![share(Stage::Translate, 10)]);
    let mut tripped = share(Stage::Translate, 10);
    tripped.arming = Arming::Tripped;
    line.become_at(vec![tripped], 10 * SECOND);
    assert!(!may_move(&line, 11 * SECOND));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut line = Timeline::of(vec![share(Stage::Translate, 0)]);
    for second in 1..1_000 {
        let flags = vec![share(Stage::Translate, second % 100)];
        line.become_at(flags, second * SECOND);
    }
    let text = format!("{:?}", line.past);
    assert!(text.matches("until").count() <= 32, "{text}");
}

proptest! {
    /// Whatever people do to stages and percentages, a session is decided for as when it began.
    #[test]
    fn a_session_is_decided_for_as_when_it_began(
        changes in prop::collection::vec((0_u32..=100, any::<bool>()), 1..30),
        key in "[a-z]{1,8}",
        at in 0_usize..30,
    ) {
        let flags = |(percent, retired): (u32, bool)| {
            let stage = if retired { Stage::Retired } else { Stage::Translate };
            let mut other = share(Stage::Shadow, 100 - percent);
            other.name = "g".into();
            vec![share(stage, percent), other]
        };
        let mut line = Timeline::of(flags(changes[0]));
        let mut decisions = Vec::new();
        for (second, change) in (1..).zip(&changes) {
            line.become_at(flags(*change), second * SECOND);
            decisions.push(decide(&line.now, caller("other", Some(&key)), "r", Side::Rest));
        }
        let at = at % decisions.len();
        let began = (at as u32 + 1) * SECOND;
        let decision = line.decide(&key, began, changes.len() as u32 * SECOND);
        prop_assert_eq!(decision.stage, decisions[at].stage);
        prop_assert_eq!(decision.why.flag(), decisions[at].why.flag());
    }
}
