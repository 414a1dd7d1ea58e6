//! The counts of one worker. A worker is one thread, so they are plain numbers; a scrape sums copies of all workers.
//!
//! Used by `metrics::named`, `metrics::render` and `metrics::usage`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::sync::Arc;
use std::time::Duration;

use super::call_counts::CallCounts;
use super::hasher::IdHasher;
use super::histogram::{Histogram, LATENCY, OVERHEAD};
use super::labels::{CallLabels, DecisionLabels, LabelId, LabelNames, Outcome, VerdictLabels};
use super::mcp_calls::{McpCall, McpCounts};
use super::unrouted_counts::UnroutedCounts;
use dualgauge_model::agent_card::CardNaming;
use dualgauge_model::compare::{Skip, StreamBound};
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::failure::Reason;
use dualgauge_model::frame::Undelivered;
use dualgauge_model::lifecycle::ClientUsage;
use dualgauge_model::mcp::{BridgeAction, ResourceNaming, SessionEvent, SuspensionEvent};
use dualgauge_model::posted::{Handling, MessageFault};
use dualgauge_model::rollout::{CredentialFault, Stage, Tallies, Tally, Way};
use dualgauge_model::stream;
use dualgauge_model::time::Timestamp;
use dualgauge_model::token::TokenFault;
use dualgauge_model::unrouted::UnroutedCalls;
use dualgauge_model::websocket::EventSocketStep;
use dualgauge_net::{AddressCounts, UpstreamCalls};
use dualgauge_patterns::side::Side;
use dualgauge_transport::wire::FloodReason;

/// The durations of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The time from the head of the call to the end of its response.
    pub total: Duration,
    /// The part spent on the upstream; absent if the call reached none.
    pub upstream: Option<Duration>,
    /// The time from the head of the call to the head of its response.
    pub head: Duration,
}

/// The current levels of a worker, which updates them; the shard only reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The number of client connections.
    pub client_connections: u64,
    /// The number of calls in flight.
    pub calls_in_flight: u64,
    /// The number of candidates in flight.
    pub candidates_in_flight: u64,
    /// The number of open responses that are translated event by event.
    pub response_streams: u64,
    /// The maximum number of calls in flight.
    pub calls_limit: u64,
    /// The maximum number of client connections.
    pub connections_limit: u64,
    /// The connections to the upstreams of each side, indexed by side.
    pub pools: [Pool; Side::ALL.len()],
}

/// Counts of connections to upstreams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pool {
    /// The number of open connections.
    pub open: u64,
    /// The number of open connections that no call uses.
    pub idle: u64,
}

impl Gauges {
    fn add(&mut self, other: &Gauges) {
        self.client_connections += other.client_connections;
        self.calls_in_flight += other.calls_in_flight;
        self.candidates_in_flight += other.candidates_in_flight;
        self.response_streams += other.response_streams;
        self.calls_limit += other.calls_limit;
        self.connections_limit += other.connections_limit;
        for (own, other) in self.pools.iter_mut().zip(&other.pools) {
            own.add(*other);
        }
    }
}

impl Pool {
    /// Adds the connections to another upstream, or of another worker.
    pub const fn add(&mut self, other: Pool) {
        self.open += other.open;
        self.idle += other.idle;
    }
}

/// Fields of responses, by their route and a hash of their name. A set, because several workers may report the same
/// field.
pub type CallFields = Arc<BTreeSet<(LabelId, u64)>>;

/// The counts of one worker.
#[derive(Debug, Default)]
pub struct Shard {
    /// The current levels of the worker.
    pub gauges: Gauges,
    /// The response fields that have differed.
    pub mismatching: CallFields,
    /// The counters and the state of the addresses of upstreams.
    pub addresses: BTreeMap<LabelId, AddressCounts>,
    /// The calls at upstreams.
    pub upstream_calls: BTreeMap<LabelId, UpstreamCalls>,
    counts: ShardCounts,
}

impl Shard {
    /// Creates an empty shard.
    #[must_use]
    pub fn new() -> Shard {
        Shard::default()
    }

    /// Counts one completed call, with the reason if it failed.
    pub fn record(&mut self, labels: CallLabels, timing: Timing, failure: Option<Reason>) {
        let counts = &mut self.counts;
        let call = counts.calls.entry(labels).or_default();
        call.duration.observe(timing.total);
        if let Some(upstream) = timing.upstream {
            call.upstream.observe(upstream);
            // Without an upstream and a stage, the proxy itself responded.
            if let Some(stage) = labels.stage {
                counts.overhead[labels.side as usize][stage as usize]
                    .observe(timing.head.saturating_sub(upstream));
            }
        }
        if let Some(reason) = failure {
            counts.failures[labels.side as usize][reason as usize] += 1;
        }
    }

    /// Counts the rule that chose the stage of a call.
    pub fn decided(&mut self, labels: DecisionLabels) {
        *self.counts.decisions.entry(labels).or_default() += 1;
    }

    /// Counts a call whose caller has no key for the percentage of a flag.
    pub fn keyless(&mut self, flag: LabelId) {
        *self.counts.keyless.entry(flag).or_default() += 1;
    }

    /// Counts members of a call that its route cannot map to the other side.
    pub fn dropped(&mut self, route: LabelId, members: u64) {
        if members > 0 {
            *self.counts.dropped.entry(route).or_default() += members;
        }
    }

    /// Counts the result of an event for the clients of a side of a stream, or of a socket.
    pub fn event(&mut self, route: LabelId, side: Side, kind: stream::EventResultKind) {
        *self.counts.events.entry((route, side, kind)).or_default() += 1;
    }

    /// Counts messages of an old RPC dialect.
    pub fn old_messages(&mut self, route: LabelId, transport: OldTransport, messages: u64) {
        let counts = &mut self.counts.old_messages;
        *counts.entry((route, transport)).or_default() += messages;
    }

    /// Counts the verdict on the candidate of a call.
    pub fn verdict(&mut self, labels: VerdictLabels) {
        *self.counts.verdicts.entry(labels).or_default() += 1;
    }

    /// Counts a call whose responses were not compared.
    pub fn skipped(&mut self, route: LabelId, why: Skip) {
        *self.counts.skipped.entry((route, why)).or_default() += 1;
    }

    /// Counts a candidate that ended with a failure of the proxy.
    pub fn candidate_failed(&mut self, route: LabelId, reason: Reason) {
        let failed = &mut self.counts.failed_candidates;
        *failed.entry((route, reason)).or_default() += 1;
    }

    /// Records the duration of a candidate.
    pub fn candidate(&mut self, route: LabelId, side: Side, stage: Stage, took: Duration) {
        let durations = self.counts.candidates.entry((route, side, stage));
        durations
            .or_insert(const { Histogram::new(&LATENCY) })
            .observe(took);
    }

    /// Returns the tally for the guard of a flag.
    pub fn tally(&mut self, flag: LabelId) -> &mut Tally {
        self.counts.tallies.entry(flag).or_default()
    }

    /// Counts a call in the usage of its route, by the path on which it was served.
    pub fn seen(&mut self, labels: CallLabels, way: Option<Way>, at: Timestamp) {
        let caller = (labels.route, labels.client, labels.side);
        let seen = self.counts.seen.entry(caller).or_default();
        seen.add(way, at);
        if labels.outcome == Outcome::ToolError {
            seen.tool_errors.add(at);
        }
    }

    /// Counts an unrouted REST call under a prefix of routes.
    pub fn unrouted(&mut self, prefix: LabelId, at: Timestamp) {
        let prefixes = &mut self.counts.unrouted.prefixes;
        prefixes.entry(prefix).or_default().add(at);
    }

    /// Returns the calls without a route by path.
    pub fn unrouted_calls(&mut self) -> &mut UnroutedCalls {
        Arc::make_mut(&mut self.counts.unrouted.paths)
    }

    /// Counts a call of an MCP client by its era, with the program that it declares.
    pub fn mcp_call(&mut self, client: LabelId, call: McpCall, at: Timestamp) {
        self.counts.mcp.note(client, call, at);
    }

    /// Counts a connection that was closed at once because the limit was reached.
    pub fn refused_connection(&mut self) {
        self.counts.refused_connections += 1;
    }

    /// Counts an aborted HTTP/2 connection of a client.
    pub fn cut_connection(&mut self, why: FloodReason) {
        self.counts.cut_connections[why as usize] += 1;
    }

    /// Counts a comparison of two streams that ended at a bound.
    pub fn partial_comparison(&mut self, bound: StreamBound) {
        self.counts.partial_comparisons[bound as usize] += 1;
    }

    /// Counts a conversion between the eras of MCP.
    pub fn bridged(&mut self, action: BridgeAction) {
        self.counts.bridged[action as usize] += 1;
    }

    /// Counts protected resource metadata, or a challenge that names them.
    pub fn named_resource(&mut self, naming: ResourceNaming) {
        self.counts.named_resources[naming as usize] += 1;
    }

    /// Counts an agent card.
    pub fn agent_card(&mut self, naming: CardNaming) {
        self.counts.agent_cards[naming as usize] += 1;
    }

    /// Counts a step in the life of a WebSocket with the events of a subscription.
    pub fn event_socket(&mut self, step: EventSocketStep) {
        self.counts.event_sockets[step as usize] += 1;
    }

    /// Counts an event in the life of a client's event stream.
    pub fn event_session(&mut self, event: SessionEvent) {
        self.counts.event_sessions[event as usize] += 1;
    }

    /// Counts an event in the life of a call that waits for the input of a stateless client.
    pub fn suspended_call(&mut self, event: SuspensionEvent) {
        self.counts.suspended_calls[event as usize] += 1;
    }

    /// Counts a connection whose TLS handshake failed.
    pub fn failed_handshake(&mut self) {
        self.counts.failed_handshakes += 1;
    }

    /// Counts a request that was refused for its credentials.
    pub fn unauthenticated_request(&mut self, fault: CredentialFault) {
        self.counts.unauthenticated[fault as usize] += 1;
    }

    /// Counts a bearer token that failed verification.
    pub fn unverified_token(&mut self, fault: TokenFault) {
        self.counts.unverified_tokens[fault as usize] += 1;
    }

    /// Counts a socket message that could not be delivered.
    pub fn count_undelivered(&mut self, why: Undelivered) {
        self.counts.strays[why as usize] += 1;
    }

    /// Counts a message that is not valid JSON-RPC 2.0.
    pub fn invalid_message(&mut self, fault: MessageFault, action: Handling) {
        self.counts.invalid_messages[fault as usize][action as usize] += 1;
    }

    /// Returns a copy for another thread.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            gauges: self.gauges,
            mismatching: self.mismatching.clone(),
            addresses: self.addresses.clone(),
            upstream_calls: self.upstream_calls.clone(),
            counts: self.counts.clone(),
        }
    }
}

/// A copy of a shard, or the sum of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub(super) gauges: Gauges,
    pub(super) mismatching: CallFields,
    pub(super) addresses: BTreeMap<LabelId, AddressCounts>,
    pub(super) upstream_calls: BTreeMap<LabelId, UpstreamCalls>,
    pub(super) counts: ShardCounts,
}

impl Snapshot {
    /// Returns the sum of several snapshots.
    pub(super) fn sum(snapshots: &[Snapshot]) -> Snapshot {
        let mut sum = Snapshot::default();
        for snapshot in snapshots {
            sum.gauges.add(&snapshot.gauges);
            if !snapshot.mismatching.is_empty() {
                Arc::make_mut(&mut sum.mismatching).extend(snapshot.mismatching.iter());
            }
            for (upstream, counts) in &snapshot.addresses {
                sum.addresses.entry(*upstream).or_default().add(*counts);
            }
            for (upstream, calls) in &snapshot.upstream_calls {
                sum.upstream_calls.entry(*upstream).or_default().add(*calls);
            }
            sum.counts.add(&snapshot.counts);
        }
        sum
    }
}

/// Returns the tallies for the guards, summed over all workers, by the name of the flag.
#[must_use]
pub fn tallies(names: &LabelNames, snapshots: &[Snapshot]) -> Tallies {
    let texts = names.texts();
    let mut tallies = Tallies::new();
    for (flag, tally) in snapshots
        .iter()
        .flat_map(|snapshot| &snapshot.counts.tallies)
    {
        if let Some(name) = texts.get(flag.index()) {
            tallies.entry(name.to_string()).or_default().add(tally);
        }
    }
    tallies
}

/// The counters, which never decrease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardCounts {
    pub(super) calls: HashMap<CallLabels, CallCounts, BuildHasherDefault<IdHasher>>,
    pub(super) decisions: HashMap<DecisionLabels, u64, BuildHasherDefault<IdHasher>>,
    /// By flag.
    pub(super) keyless: HashMap<LabelId, u64, BuildHasherDefault<IdHasher>>,
    /// By side and stage.
    pub(super) overhead: [[Histogram; Stage::ALL.len()]; Side::ALL.len()],
    /// By side and reason.
    pub(super) failures: [[u64; Reason::ALL.len()]; Side::ALL.len()],
    pub(super) dropped: HashMap<LabelId, u64, BuildHasherDefault<IdHasher>>,
    pub(super) events:
        HashMap<(LabelId, Side, stream::EventResultKind), u64, BuildHasherDefault<IdHasher>>,
    pub(super) old_messages: HashMap<(LabelId, OldTransport), u64, BuildHasherDefault<IdHasher>>,
    pub(super) verdicts: HashMap<VerdictLabels, u64>,
    /// By guarded flag.
    pub(super) tallies: HashMap<LabelId, Tally, BuildHasherDefault<IdHasher>>,
    pub(super) skipped: HashMap<(LabelId, Skip), u64, BuildHasherDefault<IdHasher>>,
    pub(super) failed_candidates: HashMap<(LabelId, Reason), u64, BuildHasherDefault<IdHasher>>,
    pub(super) candidates: HashMap<(LabelId, Side, Stage), Histogram, BuildHasherDefault<IdHasher>>,
    /// By route, client and side.
    pub(super) seen: HashMap<(LabelId, LabelId, Side), ClientUsage, BuildHasherDefault<IdHasher>>,
    pub(super) unrouted: UnroutedCounts,
    pub(super) mcp: McpCounts,
    pub(super) refused_connections: u64,
    pub(super) failed_handshakes: u64,
    pub(super) cut_connections: [u64; FloodReason::ALL.len()],
    pub(super) partial_comparisons: [u64; StreamBound::ALL.len()],
    pub(super) bridged: [u64; BridgeAction::ALL.len()],
    pub(super) named_resources: [u64; ResourceNaming::ALL.len()],
    pub(super) agent_cards: [u64; CardNaming::ALL.len()],
    pub(super) event_sockets: [u64; EventSocketStep::ALL.len()],
    pub(super) event_sessions: [u64; SessionEvent::ALL.len()],
    pub(super) suspended_calls: [u64; SuspensionEvent::ALL.len()],
    /// By fault.
    pub(super) unverified_tokens: [u64; TokenFault::ALL.len()],
    pub(super) unauthenticated: [u64; CredentialFault::ALL.len()],
    pub(super) strays: [u64; Undelivered::ALL.len()],
    /// By fault and handling.
    pub(super) invalid_messages: [[u64; Handling::ALL.len()]; MessageFault::ALL.len()],
}

impl Default for ShardCounts {
    fn default() -> Self {
        ShardCounts {
            calls: HashMap::default(),
            decisions: HashMap::default(),
            keyless: HashMap::default(),
            overhead: [const { [const { Histogram::new(&OVERHEAD) }; Stage::ALL.len()] };
                Side::ALL.len()],
            failures: [[0; Reason::ALL.len()]; Side::ALL.len()],
            dropped: HashMap::default(),
            events: HashMap::default(),
            old_messages: HashMap::default(),
            verdicts: HashMap::default(),
            tallies: HashMap::default(),
            skipped: HashMap::default(),
            failed_candidates: HashMap::default(),
            candidates: HashMap::default(),
            seen: HashMap::default(),
            unrouted: UnroutedCounts::default(),
            mcp: McpCounts::default(),
            refused_connections: 0,
            failed_handshakes: 0,
            cut_connections: [0; FloodReason::ALL.len()],
            partial_comparisons: [0; StreamBound::ALL.len()],
            bridged: [0; BridgeAction::ALL.len()],
            named_resources: [0; ResourceNaming::ALL.len()],
            agent_cards: [0; CardNaming::ALL.len()],
            event_sockets: [0; EventSocketStep::ALL.len()],
            event_sessions: [0; SessionEvent::ALL.len()],
            suspended_calls: [0; SuspensionEvent::ALL.len()],
            unverified_tokens: [0; TokenFault::ALL.len()],
            unauthenticated: [0; CredentialFault::ALL.len()],
            strays: [0; Undelivered::ALL.len()],
            invalid_messages: Default::default(),
        }
    }
}

impl ShardCounts {
    fn add(&mut self, other: &ShardCounts) {
        for (labels, call) in &other.calls {
            self.calls.entry(*labels).or_default().add(call);
        }
        add_rows(&mut self.decisions, &other.decisions);
        add_rows(&mut self.keyless, &other.keyless);
        let own = self.overhead.as_flattened_mut().iter_mut();
        for (own, other) in own.zip(other.overhead.as_flattened()) {
            own.add(other);
        }
        let own = self.failures.as_flattened_mut();
        add_all(own, other.failures.as_flattened());
        add_rows(&mut self.dropped, &other.dropped);
        add_rows(&mut self.events, &other.events);
        add_rows(&mut self.old_messages, &other.old_messages);
        for (flag, tally) in &other.tallies {
            self.tallies.entry(*flag).or_default().add(tally);
        }
        add_rows(&mut self.verdicts, &other.verdicts);
        add_rows(&mut self.skipped, &other.skipped);
        add_rows(&mut self.failed_candidates, &other.failed_candidates);
        for (labels, durations) in &other.candidates {
            let own = self.candidates.entry(*labels);
            own.or_insert(const { Histogram::new(&LATENCY) })
                .add(durations);
        }
        for (caller, seen) in &other.seen {
            self.seen.entry(*caller).or_default().merge(seen);
        }
        self.unrouted.add(&other.unrouted);
        self.mcp.add(&other.mcp);
        self.refused_connections += other.refused_connections;
        self.failed_handshakes += other.failed_handshakes;
        add_all(&mut self.cut_connections, &other.cut_connections);
        add_all(&mut self.partial_comparisons, &other.partial_comparisons);
        add_all(&mut self.bridged, &other.bridged);
        add_all(&mut self.named_resources, &other.named_resources);
        add_all(&mut self.agent_cards, &other.agent_cards);
        add_all(&mut self.event_sockets, &other.event_sockets);
        add_all(&mut self.event_sessions, &other.event_sessions);
        add_all(&mut self.suspended_calls, &other.suspended_calls);
        add_all(&mut self.unverified_tokens, &other.unverified_tokens);
        add_all(&mut self.unauthenticated, &other.unauthenticated);
        add_all(&mut self.strays, &other.strays);
        let own = self.invalid_messages.as_flattened_mut();
        add_all(own, other.invalid_messages.as_flattened());
    }
}

/// Adds each count to the one with the same labels.
fn add_rows<K: Copy + Eq + Hash, S: BuildHasher>(
    own: &mut HashMap<K, u64, S>,
    other: &HashMap<K, u64, S>,
) {
    for (labels, count) in other {
        *own.entry(*labels).or_default() += count;
    }
}

/// Adds each count to the one at the same index.
fn add_all(own: &mut [u64], other: &[u64]) {
    for (own, other) in own.iter_mut().zip(other) {
        *own += other;
    }
}
