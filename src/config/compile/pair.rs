//! Two MCP servers as the control and the candidate of flags. Used by `compile::upstreams` and `compile::compare`.

use crate::config::problem::{Problem, Spanned, nearest};
use crate::config::raw::{RawConfig, RawUpstream};
use dualgauge_model::compare::Path;
use dualgauge_model::plan::{Sharing, UpstreamPair, UpstreamPlan, Upstreams};
use dualgauge_patterns::side::Side;

/// The members of results that only one era has.
const OF_ERA: [&str; 4] = [
    "/result/_meta",
    "/result/cacheScope",
    "/result/resultType",
    "/result/ttlMs",
];

/// Returns the places of responses that differ between servers of different eras, if the plan has a pair of them.
pub(super) fn ignored(raw: &RawConfig) -> Vec<Path> {
    let mut upstreams = raw.upstreams.iter();
    match upstreams.any(|upstream| upstream.candidate.is_some()) {
        true => OF_ERA
            .iter()
            .filter_map(|path| Path::parse(path).ok())
            .collect(),
        false => Vec::new(),
    }
}

/// Returns true if an upstream is the candidate of another one.
pub(super) fn is_candidate(upstreams: &[RawUpstream], name: &str) -> bool {
    let mut candidates = upstreams
        .iter()
        .filter_map(|upstream| upstream.candidate.as_ref());
    candidates.any(|candidate| candidate.value == name)
}

/// Compiles the pair of MCP servers, if there is one.
pub(super) fn compile(
    raw: &RawConfig,
    upstreams: &Upstreams,
    problems: &mut Vec<Problem>,
) -> Option<UpstreamPair> {
    let mut named = raw.upstreams.iter().enumerate();
    let mut named = named.by_ref().filter_map(|(index, upstream)| {
        let candidate = upstream.candidate.as_ref()?;
        Some((index, candidate))
    });
    let (control, candidate) = named.next()?;
    for (_, further) in named {
        let message = "another upstream has a candidate already; only one can have one";
        problems.push(further.problem(message));
    }
    let found = raw
        .upstreams
        .iter()
        .position(|known| known.name.value == candidate.value);
    let Some(found) = found else {
        problems.push(unknown(raw, candidate));
        return None;
    };
    let faults = faults(upstreams, control, found);
    let is_sound = faults.is_empty();
    problems.extend(faults.into_iter().map(|what| candidate.problem(what)));
    is_sound.then_some(UpstreamPair {
        control,
        candidate: found,
    })
}

fn unknown(raw: &RawConfig, candidate: &Spanned<String>) -> Problem {
    let names = raw.upstreams.iter().map(|known| known.name.value.as_str());
    let problem = candidate.problem(format!("there is no upstream `{}`", candidate.value));
    match nearest(&candidate.value, names) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem,
    }
}

/// Returns the reasons why two upstreams are no pair.
fn faults(upstreams: &Upstreams, control: usize, candidate: usize) -> Vec<String> {
    let mut faults = Vec::new();
    if control == candidate {
        faults.push("an upstream cannot be its own candidate".to_owned());
    }
    for upstream in [&upstreams.all[control], &upstreams.all[candidate]] {
        if !is_shared_mcp(upstream) {
            let name = &upstream.name;
            faults.push(format!(
                "the upstream `{name}` is no MCP server that all clients share; write `protocol = \"mcp\"`, or `handshake = \"mcp\"` for a child process"
            ));
        }
    }
    if upstreams.defaults[1] != Some(control) {
        faults.push("only the default upstream of the `rpc` side can have a candidate".to_owned());
    }
    if upstreams
        .all
        .iter()
        .any(|upstream| upstream.side == Side::Rest)
    {
        faults.push(
            "an upstream with a candidate excludes upstreams on the `rest` side: stages choose between the two MCP servers".to_owned(),
        );
    }
    faults
}

fn is_shared_mcp(upstream: &UpstreamPlan) -> bool {
    upstream.speaks_mcp() && upstream.transport.sharing() != Sharing::Client
}
