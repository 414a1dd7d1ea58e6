mod admin;
mod flag_source;
mod links;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::telemetry::recorder::{RecorderCounts, StopReason};
use dualgauge_model::compare::{Skip, Verdict};
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::failure::{Blame, Reason};
use dualgauge_model::mcp::CallEra;
use dualgauge_model::posted::MessageFault;
use dualgauge_model::rollout::{
    Arming, DecidedBy, Flag, Glob, Kill, Percent, Stage, Way, WithoutKey,
};
use dualgauge_model::series::SeriesRules;
use dualgauge_model::stream::EventResultKind;
use dualgauge_model::time::Timestamp;
use dualgauge_model::token::TokenFault;
use dualgauge_net::{AddressCounts, UpstreamCalls};
use dualgauge_patterns::side::Side;
use dualgauge_transport::wire::FloodReason;
use links::links;

fn flag(name: &str, side: Option<Side>, thousandths: u32) -> FlagState {
    FlagState::from(&Flag {
        name: name.to_owned(),
        client: Glob::new("ios-*"),
        route: Glob::new("*"),
        side,
        stage: Stage::Translate,
        percent: Percent::from_thousandths(thousandths).unwrap(),
        without_key: WithoutKey::Out,
        headers: Vec::new(),
        holdback: Percent::NONE,
        guard: None,
        ramp: None,
        arming: Arming::Armed,
    })
}

pub(super) fn process() -> GlobalMetrics {
    GlobalMetrics {
        reloads_ok: 3,
        reloads_failed: 1,
        now: UNIX_EPOCH + Duration::from_secs(1_900_000_000),
        loaded_at: UNIX_EPOCH + Duration::from_millis(1_770_000_000_250),
        flags: vec![
            flag("ios-first", Some(Side::Rest), 12_500),
            flag("say \"all\"", None, 100_000),
        ],
        trips: vec![GuardTrips {
            flag: "ios-first".to_owned(),
            limit: "failures",
            mode: "act",
            count: 2,
        }],
        rulings: vec![("ios-first".to_owned(), "content")],
        evaluations: admin::evaluations(),
        live_streams: admin::live_streams(),
        kill: Kill::Off,
        is_store_up: true,
        source: Some(flag_source::state()),
        links: links(),
        sunsets: vec![Sunset {
            route: "tools.call".to_owned(),
            side: Side::Rest,
            at: Timestamp::from_unix(1_800_000_000),
        }],
        sessions: SessionCounts {
            started: 9,
            remembered: 4,
        },
        buffered: BufferedBytes {
            used: 512,
            limit: 1_024,
        },
        log_lines_dropped: 7,
        spans_dropped: 8,
        recorder: RecorderCounts {
            recorded: 5,
            dropped: 1,
            bytes: 900,
            stops: [1, 2, 3, 4, 5, 6, 7],
            is_active: true,
        },
        own: ProcessStats {
            cpu: Duration::from_millis(1_500),
            resident: Some(8_192),
            open_fds: Some(12),
            max_fds: Some(1_024),
            started: UNIX_EPOCH + Duration::from_secs(1_770_000_000),
        },
    }
}

/// The page, without the version of the program.
pub(super) fn page(names: &LabelNames, snapshots: &[Snapshot]) -> String {
    let rules = SeriesRules::default();
    page_with(names, snapshots, &rules, &mut ShownSeries::default())
}

/// The page under rules for its series.
pub(super) fn page_with(
    names: &LabelNames,
    snapshots: &[Snapshot],
    rules: &SeriesRules,
    shown: &mut ShownSeries,
) -> String {
    render(names, snapshots, &process(), rules, shown).replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

fn took(total_us: u64, upstream_us: Option<u64>) -> Timing {
    Timing {
        total: Duration::from_micros(total_us),
        upstream: upstream_us.map(Duration::from_micros),
        head: Duration::from_micros(total_us),
    }
}

fn verdict(of: CallLabels, verdict: Verdict) -> VerdictLabels {
    VerdictLabels {
        route: of.route,
        client: of.client,
        side: of.side,
        stage: Stage::Shadow,
        verdict: verdict.as_str(),
    }
}

fn decisions(names: &LabelNames, of: CallLabels, [first, second]: [&mut Shard; 2]) {
    let decided = |by, flag: &str| DecisionLabels {
        client: of.client,
        side: of.side,
        by,
        flag: names.intern(flag),
    };
    first.decided(decided(DecidedBy::Share, "ios-first"));
    second.decided(decided(DecidedBy::Share, "ios-first"));
    second.decided(decided(DecidedBy::Default, "none"));
    second.keyless(names.intern("ios-first"));
}

fn addresses(names: &LabelNames, both: [&mut Shard; 2]) {
    let mut counts = AddressCounts::default();
    (counts.ejections, counts.openings) = (1, 2);
    (counts.repeats, counts.exhausted) = (3, 4);
    (counts.cut, counts.left_out, counts.open) = (5, 1, 1);
    let calls = UpstreamCalls {
        sent: 2,
        waiting: 1,
        limit: 256,
    };
    for shard in both {
        shard.addresses.insert(names.intern("api"), counts);
        shard.upstream_calls.insert(names.intern("api"), calls);
    }
}

fn gauges([first, second]: [&mut Shard; 2]) {
    first.gauges.candidates_in_flight = 2;
    first.gauges.response_streams = 3;
    first.gauges.client_connections = 4;
    first.gauges.pools[Side::Rest as usize] = Pool { open: 1, idle: 1 };
    second.gauges.client_connections = 2;
    second.gauges.calls_in_flight = 1;
    second.gauges.pools[Side::Rpc as usize].open = 3;
    (second.gauges.calls_limit, second.gauges.connections_limit) = (10, 20);
}

/// A page of two workers, with a series in each family.
pub(super) fn two_workers() -> (LabelNames, [Snapshot; 2]) {
    let names = LabelNames::new();
    let labels = CallLabels {
        route: names.intern("tools.call"),
        client: names.intern("ios-app"),
        side: Side::Rest,
        stage: Some(Stage::Translate),
        outcome: Outcome::Success,
        blame: None,
    };
    let failed = CallLabels {
        outcome: Outcome::Failed,
        blame: Some(Blame::Upstream),
        ..labels
    };
    let refused = CallLabels {
        route: LabelId::NONE,
        client: LabelId::NONE,
        side: Side::Rpc,
        stage: Some(Stage::Passthrough),
        outcome: Outcome::Failed,
        blame: Some(Blame::Client),
    };
    let (mut first, mut second) = (Shard::new(), Shard::new());
    first.record(labels, took(1_250, Some(1_200)), None);
    first.record(refused, took(80, None), Some(Reason::MalformedJson));
    decisions(&names, labels, [&mut first, &mut second]);
    first.dropped(labels.route, 2);
    first.event(labels.route, Side::Rest, EventResultKind::Rewritten);
    first.old_messages(labels.route, OldTransport::Batch, 2);
    first.verdict(verdict(labels, Verdict::Match));
    first.verdict(verdict(labels, Verdict::Skipped(Skip::Busy)));
    first.skipped(labels.route, Skip::Busy);
    first.candidate_failed(labels.route, Reason::UpstreamTimeout);
    let time = Duration::from_millis(7);
    first.candidate(labels.route, Side::Rest, Stage::Shadow, time);
    gauges([&mut first, &mut second]);
    addresses(&names, [&mut first, &mut second]);
    first.mismatching = Arc::new(BTreeSet::from([(labels.route, 7), (labels.route, 8)]));
    second.mismatching = Arc::new(BTreeSet::from([(labels.route, 8)]));
    second.record(labels, took(31_000_000, Some(30_000_000)), None);
    second.record(
        failed,
        took(10_000_400, Some(10_000_000)),
        Some(Reason::UpstreamTimeout),
    );
    second.verdict(verdict(labels, Verdict::Match));
    second.dropped(labels.route, 1);
    let prefix = names.intern("/items");
    for (shard, at) in [(&mut first, 1_700), (&mut second, 1_600)] {
        shard.seen(labels, Some(Way::New), Timestamp::from_unix(at));
        shard.unrouted(prefix, Timestamp::from_unix(at));
        let call = McpCall {
            era: CallEra::from_words("stateless", "2026-07-28").unwrap(),
            program: None,
        };
        shard.mcp_call(labels.client, call, Timestamp::from_unix(at));
    }
    second.refused_connection();
    (names, [first.snapshot(), second.snapshot()])
}

#[test]
fn the_whole_page_of_two_workers() {
    let (names, snapshots) = two_workers();
    insta::assert_snapshot!(page(&names, &snapshots));
}

#[test]
fn a_page_with_every_label_has_every_family() {
    let (names, snapshots) = two_workers();
    let page = page(&names, &snapshots);
    for family in family::ALL {
        let head = format!(
            "# HELP {} {}\n# TYPE {} ",
            family.name, family.help, family.name
        );
        assert!(page.contains(&head), "{}", family.name);
    }
}

/// The arrays of counts are indexed by enum values.
#[test]
fn enums_are_numbered_in_the_order_of_their_tables() {
    for (index, side) in Side::ALL.into_iter().enumerate() {
        assert_eq!(side as usize, index);
    }
    for (index, stage) in Stage::ALL.into_iter().enumerate() {
        assert_eq!(stage as usize, index);
    }
    for (index, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, index);
    }
}

#[test]
fn a_name_keeps_its_id_over_reloads() {
    let names = LabelNames::new();
    let first = names.intern("tools.call");
    assert_ne!(names.intern("tools.list"), first);
    assert_eq!(names.intern("tools.call"), first);
    assert_eq!(names.intern("none"), LabelId::NONE);
}

#[test]
fn a_call_that_reached_no_upstream_has_no_upstream_time_and_no_overhead() {
    let names = LabelNames::new();
    let mut shard = Shard::new();
    let labels = CallLabels {
        route: LabelId::NONE,
        client: LabelId::NONE,
        side: Side::Rest,
        stage: Some(Stage::Retired),
        outcome: Outcome::Failed,
        blame: Some(Blame::Client),
    };
    shard.record(labels, took(5, None), Some(Reason::Retired));
    let page = page(&names, &[shard.snapshot()]);
    assert!(page.contains("dualgauge_call_duration_seconds_count{"));
    assert!(!page.contains("dualgauge_upstream_duration_seconds"));
    assert!(!page.contains("dualgauge_overhead_seconds"));
}

#[test]
fn snapshots_go_to_other_threads() {
    fn sent<T: Send + Clone + 'static>() {}
    fn shared<T: Send + Sync>() {}
    sent::<Snapshot>();
    shared::<LabelNames>();
}

const VERDICTS: [Verdict; 3] = [
    Verdict::Mismatch,
    Verdict::BothFailed,
    Verdict::Skipped(Skip::Drain),
];

/// One counted event.
#[derive(Debug, Clone, Copy)]
enum Event {
    Call(CallLabels, Timing, Option<Reason>),
    Dropped(LabelId, u64),
    Verdict(VerdictLabels),
    Skipped(LabelId, Skip),
    CandidateFailed(LabelId, Reason),
    Candidate(LabelId, Duration),
    Refused,
    Unverified(TokenFault),
    Handshake,
}

fn feed(shard: &mut Shard, event: Event) {
    match event {
        Event::Call(labels, timing, failure) => shard.record(labels, timing, failure),
        Event::Dropped(route, members) => shard.dropped(route, members),
        Event::Verdict(labels) => shard.verdict(labels),
        Event::Skipped(route, why) => shard.skipped(route, why),
        Event::CandidateFailed(route, reason) => shard.candidate_failed(route, reason),
        Event::Candidate(route, took) => shard.candidate(route, Side::Rpc, Stage::Verify, took),
        Event::Refused => shard.refused_connection(),
        Event::Unverified(fault) => shard.unverified_token(fault),
        Event::Handshake => shard.failed_handshake(),
    }
}

/// The names that the events below use.
fn known() -> (LabelNames, Vec<LabelId>) {
    let names = LabelNames::new();
    let ids = ["tools.call", "agent.run", "ios-app"].map(|name| names.intern(name));
    (names, [&[LabelId::NONE], &ids[..]].concat())
}

fn labels() -> impl Strategy<Value = CallLabels> {
    let id = || prop::sample::select(known().1);
    let blame = prop::sample::select(vec![
        None,
        Some(Blame::Client),
        Some(Blame::Upstream),
        Some(Blame::Proxy),
    ]);
    let side = prop::sample::select(&Side::ALL[..]);
    let stage = prop::option::of(prop::sample::select(&Stage::ALL[..]));
    let outcome = prop::sample::select(&Outcome::ALL[..]);
    (id(), id(), side, stage, outcome, blame).prop_map(
        |(route, client, side, stage, outcome, blame)| CallLabels {
            route,
            client,
            side,
            stage,
            outcome,
            blame,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let nanoseconds = || prop_oneof![0..5_000_000_u64, 0..40_000_000_000_u64, Just(u64::MAX)];
    let timing =
        (nanoseconds(), prop::option::of(nanoseconds())).prop_map(|(total, upstream)| Timing {
            total: Duration::from_nanos(total),
            upstream: upstream.map(Duration::from_nanos),
            head: Duration::from_nanos(total),
        });
    let reason = prop::option::of(prop::sample::select(&Reason::ALL[..]));
    prop_oneof![
        8 => (labels(), timing, reason).prop_map(|(labels, timing, reason)| Event::Call(labels, timing, reason)),
        1 => (prop::sample::select(known().1), 0..9_u64).prop_map(|(route, n)| Event::Dropped(route, n)),
        1 => (labels(), prop::sample::select(&VERDICTS[..]))
            .prop_map(|(labels, of)| Event::Verdict(verdict(labels, of))),
        1 => (prop::sample::select(known().1), prop::sample::select(&Reason::ALL[..]))
            .prop_map(|(route, reason)| Event::CandidateFailed(route, reason)),
        1 => (prop::sample::select(known().1), prop::sample::select(&Skip::ALL[..]))
            .prop_map(|(route, why)| Event::Skipped(route, why)),
        1 => (prop::sample::select(known().1), nanoseconds())
            .prop_map(|(route, took)| Event::Candidate(route, Duration::from_nanos(took))),
        1 => Just(Event::Refused),
        1 => prop::sample::select(&TokenFault::ALL[..]).prop_map(Event::Unverified),
        1 => Just(Event::Handshake),
    ]
}

/// The values of a label anywhere on a page.
fn values(page: &str, label: &str) -> BTreeSet<String> {
    let start = format!("{label}=\"");
    let series = page.lines().filter(|line| !line.starts_with('#'));
    series
        .flat_map(|line| line.split(['{', ',']))
        .filter_map(|pair| pair.strip_prefix(&start))
        .map(|rest| rest.split('"').next().unwrap_or_default().to_owned())
        .collect()
}

proptest! {
    #[test]
    fn the_sum_of_shards_equals_one_shard_with_all_events(
        events in prop::collection::vec((0..3_usize, event()), 0..40),
    ) {
        let mut workers = [Shard::new(), Shard::new(), Shard::new()];
        let mut alone = Shard::new();
        for (worker, event) in events {
            feed(&mut workers[worker], event);
            feed(&mut alone, event);
        }
        let snapshots = workers.map(|shard| shard.snapshot());
        prop_assert_eq!(Snapshot::sum(&snapshots), alone.snapshot());
        let names = known().0;
        prop_assert_eq!(page(&names, &snapshots), page(&names, &[alone.snapshot()]));
    }

    #[test]
    fn label_sets_are_closed(events in prop::collection::vec(event(), 0..20)) {
        let mut shard = Shard::new();
        events.into_iter().for_each(|event| feed(&mut shard, event));
        let page = page(&known().0, &[shard.snapshot()]);
        let calls: String = page
            .lines()
            .filter(|line| !line.starts_with("dualgauge_flag_percent"))
            .flat_map(|line| [line, "\n"])
            .collect();
        let names = ["none", "tools.call", "agent.run", "ios-app"];
        let reasons = Reason::ALL.map(|reason| reason.row().label);
        let allowed: [(&str, Vec<&str>); 8] = [
            ("verdict", Verdict::WORDS.into()),
            ("route", names.into()),
            ("client", names.into()),
            ("side", Side::ALL.map(Side::as_str).into()),
            (
                "stage",
                [&["none"][..], &Stage::ALL.map(Stage::as_str)].concat(),
            ),
            ("outcome", Outcome::ALL.map(Outcome::as_str).into()),
            ("blame", vec!["none", "client", "upstream", "proxy"]),
            (
                "reason",
                [
                    &reasons[..],
                    &Skip::ALL.map(Skip::as_str),
                    &TokenFault::ALL.map(TokenFault::as_str),
                    &FloodReason::ALL.map(FloodReason::as_str),
                    &MessageFault::ALL.map(MessageFault::as_str),
                    &StopReason::ALL.map(StopReason::as_str),
                ]
                .concat(),
            ),
        ];
        for (label, allowed) in allowed {
            for value in values(&calls, label) {
                prop_assert!(allowed.contains(&value.as_str()), "{} = {}", label, value);
            }
        }
    }

    /// Prometheus requires that counts never decrease from bucket to bucket, and that the last one is the total.
    #[test]
    fn buckets_are_cumulative(events in prop::collection::vec(event(), 0..20)) {
        let mut shard = Shard::new();
        events.into_iter().for_each(|event| feed(&mut shard, event));
        let page = page(&known().0, &[shard.snapshot()]);
        let lines: BTreeSet<&str> = page.lines().collect();
        let mut under = 0.0;
        let mut histograms = 0;
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap();
            if series.contains("le=\"") {
                prop_assert!(value >= under, "{}", line);
                under = if series.contains("le=\"+Inf\"") { 0.0 } else { value };
            }
            if series.contains("le=\"+Inf\"") {
                let count = series.replace("_bucket{", "_count{").replace(",le=\"+Inf\"", "");
                prop_assert!(lines.contains(&*format!("{count} {value}")), "{}", count);
                histograms += 1;
            }
        }
        prop_assert!(histograms > 0 || !page.contains("_bucket"));
    }
}
