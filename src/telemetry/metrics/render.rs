//! Rendering of the page that Prometheus scrapes, from the sum of all shards and the configured names.
//!
//! Used by `app::run`.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use prometheus::core::{Collector, Desc};
use prometheus::proto;
use prometheus::{Registry, TextEncoder};

use super::addresses;
use super::family::{self, Family};
use super::flag_source::FlagSourceState;
use super::global::{
    BufferedBytes, FlagState, GlobalMetrics, LinkState, LiveStreamCounts, SessionCounts,
};
use super::labels::{LabelNames, RenderedTexts};
use super::named;
use super::process_stats;
use super::protobuf::{counter, gauge, histogram, metric_family};
use super::series::ShownSeries;
use super::shard::{Gauges, Pool, ShardCounts, Snapshot};
use super::upstream_calls;
use crate::telemetry::recorder::{RecorderCounts, StopReason};
use dualgauge_model::agent_card::CardNaming;
use dualgauge_model::compare::StreamBound;
use dualgauge_model::failure::Reason;
use dualgauge_model::frame::Undelivered;
use dualgauge_model::mcp::{BridgeAction, ResourceNaming, SessionEvent, SuspensionEvent};
use dualgauge_model::posted::{Handling, MessageFault};
use dualgauge_model::rollout::{Arming, CredentialFault, Kill, Stage};
use dualgauge_model::series::SeriesRules;
use dualgauge_model::token::TokenFault;
use dualgauge_model::websocket::EventSocketStep;
use dualgauge_patterns::side::Side;
use dualgauge_transport::wire::FloodReason;

/// Renders the metrics page as [`super::TEXT_FORMAT`], with families sorted by name and series by labels.
#[must_use]
pub fn render(
    names: &LabelNames,
    snapshots: &[Snapshot],
    process: &GlobalMetrics,
    rules: &SeriesRules,
    shown: &mut ShownSeries,
) -> String {
    let texts = RenderedTexts::new(names);
    let sum = Snapshot::sum(snapshots);
    shown.begin(rules);
    let mut families = named::families(&texts, &sum, process, shown);
    families.extend(shown.families());
    families.extend(proxy_families(&sum.counts));
    families.extend(mcp_families(&sum.counts));
    families.extend(gauge_families(&sum.gauges));
    families.extend(addresses::families(&texts, &sum.addresses));
    families.extend(upstream_calls::families(&texts, &sum.upstream_calls));
    families.extend(link_families(&process.links));
    families.extend(subscription_families(&process.links));
    families.extend(process_families(process));
    families.extend(live_stream_families(process.live_streams));
    if let Some(source) = &process.source {
        families.extend(source_families(source, process.now));
    }
    families.extend(recorder_families(&process.recorder));
    families.extend(process_stats::families(&process.own));
    // Only an invalid family table fails here, and a test renders all families.
    encode(families).unwrap_or_else(|error| format!("# no metrics: {error}\n"))
}

/// Encodes the families. The registry checks the family table, sorts it, and omits families without series.
fn encode(families: Vec<proto::MetricFamily>) -> prometheus::Result<String> {
    let descs = family::ALL
        .into_iter()
        .map(desc)
        .collect::<Result<_, _>>()?;
    let families = Mutex::new(families);
    let registry = Registry::new();
    registry.register(Box::new(Described { families, descs }))?;
    TextEncoder::new().encode_to_string(&registry.gather())
}

fn desc(family: &Family) -> prometheus::Result<Desc> {
    let labels = family.labels.iter().map(|&label| label.to_owned());
    Desc::new(
        family.name.to_owned(),
        family.help.to_owned(),
        labels.collect(),
        HashMap::new(),
    )
}

/// The families of one scrape, with the descriptions that the registry needs beforehand.
struct Described {
    /// Moved out when collected: they are large, and collected once.
    families: Mutex<Vec<proto::MetricFamily>>,
    descs: Vec<Desc>,
}

impl Collector for Described {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<proto::MetricFamily> {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *families)
    }
}

/// Returns the families about the credentials of callers.
fn credential_families(counts: &ShardCounts) -> [proto::MetricFamily; 2] {
    let tokens = TokenFault::ALL.iter().map(|fault| {
        let count = counts.unverified_tokens[*fault as usize];
        counter(&family::UNVERIFIED_TOKENS, &[fault.as_str()], count)
    });
    let unauthenticated = CredentialFault::ALL.map(|fault| {
        let count = counts.unauthenticated[fault as usize];
        counter(&family::UNAUTHENTICATED, &[fault.as_str()], count)
    });
    [
        metric_family(&family::UNAUTHENTICATED, unauthenticated.into()),
        metric_family(&family::UNVERIFIED_TOKENS, tokens.collect()),
    ]
}

/// Returns the families of the proxy itself. Failure counters start at zero, because a rate ignores the first value of
/// a new series.
fn proxy_families(counts: &ShardCounts) -> Vec<proto::MetricFamily> {
    let (mut overhead, mut failures) = (Vec::new(), Vec::new());
    for side in Side::ALL {
        for stage in Stage::ALL {
            let counted = &counts.overhead[side as usize][stage as usize];
            if counted.count() > 0 {
                let labels = [side.as_str(), stage.as_str()];
                overhead.push(histogram(&family::OVERHEAD, &labels, counted));
            }
        }
        for reason in Reason::ALL {
            let row = reason.row();
            failures.push(counter(
                &family::FAILURES,
                &[row.label, row.blame.as_str(), side.as_str()],
                counts.failures[side as usize][reason as usize],
            ));
        }
    }
    let refused = counter(
        &family::REFUSED_CONNECTIONS,
        &[],
        counts.refused_connections,
    );
    let handshakes = counter(&family::FAILED_HANDSHAKES, &[], counts.failed_handshakes);
    let cut = FloodReason::ALL.map(|why| {
        let count = counts.cut_connections[why as usize];
        counter(&family::CUT_CONNECTIONS, &[why.as_str()], count)
    });
    let partial = StreamBound::ALL.map(|bound| {
        let count = counts.partial_comparisons[bound as usize];
        counter(&family::PARTIAL_COMPARISONS, &[bound.as_str()], count)
    });
    let [unauthenticated, tokens] = credential_families(counts);
    let strays = Undelivered::ALL.map(|why| {
        let count = counts.strays[why as usize];
        counter(&family::SOCKET_STRAYS, &[why.as_str()], count)
    });
    let invalid = MessageFault::ALL.iter().flat_map(|fault| {
        Handling::ALL.map(|action| {
            let count = counts.invalid_messages[*fault as usize][action as usize];
            let labels = [fault.as_str(), action.as_str()];
            counter(&family::INVALID_MESSAGES, &labels, count)
        })
    });
    vec![
        metric_family(&family::OVERHEAD, overhead),
        metric_family(&family::FAILURES, failures),
        metric_family(&family::REFUSED_CONNECTIONS, vec![refused]),
        metric_family(&family::FAILED_HANDSHAKES, vec![handshakes]),
        metric_family(&family::CUT_CONNECTIONS, cut.into()),
        unauthenticated,
        tokens,
        metric_family(&family::PARTIAL_COMPARISONS, partial.into()),
        metric_family(&family::SOCKET_STRAYS, strays.into()),
        metric_family(&family::INVALID_MESSAGES, invalid.collect()),
    ]
}

/// Returns the families of what the proxy does between clients and servers of MCP, and for those of A2A.
fn mcp_families(counts: &ShardCounts) -> Vec<proto::MetricFamily> {
    let bridged = BridgeAction::ALL.map(|action| {
        let count = counts.bridged[action as usize];
        counter(&family::ERA_BRIDGE, &[action.as_str()], count)
    });
    let named = ResourceNaming::ALL.map(|naming| {
        let count = counts.named_resources[naming as usize];
        counter(&family::RESOURCE_METADATA, &[naming.as_str()], count)
    });
    let cards = CardNaming::ALL.map(|naming| {
        let count = counts.agent_cards[naming as usize];
        counter(&family::AGENT_CARDS, &[naming.as_str()], count)
    });
    let sockets = EventSocketStep::ALL.map(|step| {
        let count = counts.event_sockets[step as usize];
        counter(&family::EVENT_SOCKETS, &[step.as_str()], count)
    });
    let sessions = SessionEvent::ALL.map(|event| {
        let count = counts.event_sessions[event as usize];
        counter(&family::EVENT_SESSIONS, &[event.as_str()], count)
    });
    let suspended = SuspensionEvent::ALL.map(|event| {
        let count = counts.suspended_calls[event as usize];
        counter(&family::SUSPENDED_CALLS, &[event.as_str()], count)
    });
    vec![
        metric_family(&family::ERA_BRIDGE, bridged.into()),
        metric_family(&family::RESOURCE_METADATA, named.into()),
        metric_family(&family::AGENT_CARDS, cards.into()),
        metric_family(&family::EVENT_SOCKETS, sockets.into()),
        metric_family(&family::EVENT_SESSIONS, sessions.into()),
        metric_family(&family::SUSPENDED_CALLS, suspended.into()),
    ]
}

fn gauge_families(gauges: &Gauges) -> Vec<proto::MetricFamily> {
    let unlabelled =
        |family, value: u64| metric_family(family, vec![gauge(family, &[], value as f64)]);
    let pools = |family, count: fn(&Pool) -> u64| {
        let series = Side::ALL.map(|side| {
            let value = count(&gauges.pools[side as usize]);
            gauge(family, &[side.as_str()], value as f64)
        });
        metric_family(family, series.into())
    };
    vec![
        unlabelled(&family::CLIENT_CONNECTIONS, gauges.client_connections),
        unlabelled(&family::CALLS_IN_FLIGHT, gauges.calls_in_flight),
        unlabelled(&family::CANDIDATES_IN_FLIGHT, gauges.candidates_in_flight),
        unlabelled(&family::RESPONSE_STREAMS, gauges.response_streams),
        unlabelled(&family::CALLS_LIMIT, gauges.calls_limit),
        unlabelled(&family::CONNECTIONS_LIMIT, gauges.connections_limit),
        pools(&family::UPSTREAM_CONNECTIONS, |pool| pool.open),
        pools(&family::UPSTREAM_IDLE, |pool| pool.idle),
    ]
}

fn link_families(links: &[LinkState]) -> Vec<proto::MetricFamily> {
    let (mut up, mut calls, mut starts, mut strays) = (vec![], vec![], vec![], vec![]);
    let (mut notifications, mut logins) = (vec![], vec![]);
    for link in links {
        let upstream = link.upstream.as_str();
        let is_up = f64::from(u8::from(link.is_up));
        if !link.is_idle {
            up.push(gauge(&family::LINK_UP, &[upstream], is_up));
        }
        for (state, count) in [("written", link.in_flight), ("waiting", link.queued)] {
            calls.push(gauge(&family::LINK_CALLS, &[upstream, state], count as f64));
        }
        let counts = &link.counts;
        starts.push(counter(&family::LINK_STARTS, &[upstream], counts.opened));
        for (kind, count) in [
            ("late", counts.late),
            ("foreign", counts.foreign),
            ("skipped", counts.skipped),
            ("declined", counts.declined),
            ("notified", counts.notified),
        ] {
            strays.push(counter(&family::LINK_STRAYS, &[upstream, kind], count));
        }
        for (result, count) in [
            ("ok", counts.logins.ok),
            ("refused", counts.logins.refused),
            ("timeout", counts.logins.timeout),
            ("cut", counts.logins.cut),
        ] {
            logins.push(counter(&family::LINK_LOGINS, &[upstream, result], count));
        }
        let notices = &link.notices;
        for (fate, count) in [
            ("told", notices.told),
            ("crowded", notices.crowded),
            ("nobody", notices.nobody),
        ] {
            let labels = [upstream, fate];
            notifications.push(counter(&family::LINK_NOTIFICATIONS, &labels, count));
        }
    }
    vec![
        metric_family(&family::LINK_UP, up),
        metric_family(&family::LINK_CALLS, calls),
        metric_family(&family::LINK_STARTS, starts),
        metric_family(&family::LINK_STRAYS, strays),
        metric_family(&family::LINK_LOGINS, logins),
        metric_family(&family::LINK_NOTIFICATIONS, notifications),
    ]
}

fn subscription_families(links: &[LinkState]) -> Vec<proto::MetricFamily> {
    let (mut open, mut results) = (vec![], vec![]);
    for link in links {
        let upstream = link.upstream.as_str();
        let count = link.subscribed as f64;
        open.push(gauge(&family::LINK_SUBSCRIPTIONS_OPEN, &[upstream], count));
        let counts = &link.counts.subscriptions;
        for (result, count) in [
            ("opened", counts.opened),
            ("closed", counts.closed),
            ("slow", counts.slow),
            ("lost", counts.lost),
            ("unusable", counts.unusable),
        ] {
            results.push(counter(
                &family::LINK_SUBSCRIPTIONS,
                &[upstream, result],
                count,
            ));
        }
    }
    vec![
        metric_family(&family::LINK_SUBSCRIPTIONS_OPEN, open),
        metric_family(&family::LINK_SUBSCRIPTIONS, results),
    ]
}

fn process_families(process: &GlobalMetrics) -> Vec<proto::MetricFamily> {
    let reloads = [
        ("ok", process.reloads_ok),
        ("failed", process.reloads_failed),
    ]
    .map(|(result, count)| counter(&family::PLAN_RELOADS, &[result], count));
    let loaded_at = crate::telemetry::clock::unix_seconds(process.loaded_at);
    let dropped = counter(&family::LOG_LINES_DROPPED, &[], process.log_lines_dropped);
    let spans = counter(&family::SPANS_DROPPED, &[], process.spans_dropped);
    let version = [env!("CARGO_PKG_VERSION")];
    let tripped = process.flags.iter().map(|state| {
        let is_tripped = f64::from(u8::from(state.arming == Arming::Tripped));
        gauge(&family::FLAG_TRIPPED, &[&state.flag], is_tripped)
    });
    let trips = process.trips.iter().map(|trips| {
        let labels = [trips.flag.as_str(), trips.limit, trips.mode];
        counter(&family::GUARD_TRIPS, &labels, trips.count)
    });
    let SessionCounts {
        started,
        remembered,
    } = process.sessions;
    let started = counter(&family::SESSIONS, &[], started);
    let remembered = gauge(&family::SESSIONS_REMEMBERED, &[], remembered as f64);
    let evaluations = process.evaluations.rows();
    let evaluations =
        evaluations.map(|(labels, count)| counter(&family::EVALUATIONS, &labels, count));
    let rulings = process.rulings.iter();
    let rulings = rulings.map(|(flag, ruling)| gauge(&family::GUARD_RULING, &[flag, ruling], 1.0));
    let BufferedBytes { used, limit } = process.buffered;
    let used = gauge(&family::BUFFERED, &[], used as f64);
    let limit = gauge(&family::BUFFERED_LIMIT, &[], limit as f64);
    vec![
        metric_family(&family::BUFFERED, vec![used]),
        metric_family(&family::BUFFERED_LIMIT, vec![limit]),
        metric_family(&family::PLAN_RELOADS, reloads.into()),
        metric_family(
            &family::PLAN_LOADED,
            vec![gauge(&family::PLAN_LOADED, &[], loaded_at)],
        ),
        metric_family(
            &family::FLAG_PERCENT,
            process.flags.iter().map(flag).collect(),
        ),
        metric_family(&family::FLAG_TRIPPED, tripped.collect()),
        metric_family(&family::GUARD_TRIPS, trips.collect()),
        metric_family(&family::GUARD_RULING, rulings.collect()),
        metric_family(&family::EVALUATIONS, evaluations.collect()),
        switch(&family::KILL_SWITCH, u8::from(process.kill == Kill::On)),
        switch(&family::STORE_UP, u8::from(process.is_store_up)),
        metric_family(&family::SESSIONS, vec![started]),
        metric_family(&family::SESSIONS_REMEMBERED, vec![remembered]),
        metric_family(&family::LOG_LINES_DROPPED, vec![dropped]),
        metric_family(&family::SPANS_DROPPED, vec![spans]),
        metric_family(&family::BUILD, vec![gauge(&family::BUILD, &version, 1.0)]),
    ]
}

/// Returns the state of the source of flags.
fn source_families(source: &FlagSourceState, now: SystemTime) -> [proto::MetricFamily; 3] {
    let age = now.duration_since(source.answered).unwrap_or_default();
    let age = gauge(&family::FLAG_SOURCE_AGE, &[], age.as_secs_f64());
    let polls = source.polls.rows();
    let polls = polls.map(|(result, count)| counter(&family::FLAG_SOURCE_POLLS, &[result], count));
    let flags = [("governed", source.governed), ("refused", source.refused)];
    let flags =
        flags.map(|(state, count)| gauge(&family::FLAG_SOURCE_FLAGS, &[state], count as f64));
    [
        metric_family(&family::FLAG_SOURCE_AGE, vec![age]),
        metric_family(&family::FLAG_SOURCE_POLLS, polls.collect()),
        metric_family(&family::FLAG_SOURCE_FLAGS, flags.into()),
    ]
}

/// Returns the counts of live streams of the admin API.
fn live_stream_families(streams: LiveStreamCounts) -> [proto::MetricFamily; 2] {
    let LiveStreamCounts {
        open,
        opened,
        refused,
        failed,
    } = streams;
    let results = [("opened", opened), ("refused", refused), ("failed", failed)];
    let results = results.map(|(result, count)| counter(&family::LIVE_STREAMS, &[result], count));
    let open = gauge(&family::LIVE_STREAMS_OPEN, &[], open as f64);
    [
        metric_family(&family::LIVE_STREAMS_OPEN, vec![open]),
        metric_family(&family::LIVE_STREAMS, results.into()),
    ]
}

/// Returns the counts of the recorder of calls.
fn recorder_families(recorder: &RecorderCounts) -> Vec<proto::MetricFamily> {
    let calls = [
        ("recorded", recorder.recorded),
        ("dropped", recorder.dropped),
    ];
    let calls = calls.map(|(result, count)| counter(&family::RECORDED_CALLS, &[result], count));
    let bytes = counter(&family::RECORDED_BYTES, &[], recorder.bytes);
    let stops = StopReason::ALL.iter().zip(recorder.stops);
    let stops = stops
        .map(|(reason, count)| counter(&family::RECORDINGS_STOPPED, &[reason.as_str()], count));
    vec![
        metric_family(&family::RECORDED_CALLS, calls.into()),
        metric_family(&family::RECORDED_BYTES, vec![bytes]),
        metric_family(&family::RECORDINGS_STOPPED, stops.collect()),
        switch(&family::RECORDINGS_OPEN, u8::from(recorder.is_active)),
    ]
}

/// Returns a family with the value 1 if `on`, else 0.
fn switch(family: &Family, on: impl Into<f64>) -> proto::MetricFamily {
    metric_family(family, vec![gauge(family, &[], on.into())])
}

fn flag(state: &FlagState) -> proto::Metric {
    let labels = [
        state.flag.as_str(),
        &state.client,
        &state.route,
        state.side.map_or("both", Side::as_str),
        state.stage.as_str(),
    ];
    let percent = f64::from(state.percent.thousandths()) / 1000.0;
    gauge(&family::FLAG_PERCENT, &labels, percent)
}
