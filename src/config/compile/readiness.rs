//! `[admin] ready_upstreams`: the upstreams that the process requires to be ready. Each must have a known state: by
//! health checks, or by its link.

use crate::config::problem::{Problem, nearest};
use crate::config::raw::RawConfig;
use dualgauge_model::plan::{Sharing, Transport, Upstreams};

/// Returns their names.
pub(super) fn compile(
    raw: &RawConfig,
    upstreams: &Upstreams,
    problems: &mut Vec<Problem>,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in &raw.ready {
        let name = &entry.value;
        let mut all = upstreams.all.iter();
        let Some(upstream) = all.find(|upstream| upstream.name == *name) else {
            let near = nearest(name, upstreams.all.iter().map(|upstream| &*upstream.name));
            let problem = entry.problem(format!("there is no upstream `{name}`"));
            problems.push(match near {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem,
            });
            continue;
        };
        let hint = match &upstream.transport {
            Transport::Http if upstream.watch.check.is_some() => None,
            Transport::Http => Some(format!("add `health` to `[upstream.{name}]`")),
            Transport::Stdio(_) | Transport::Mcp(_) => None,
            Transport::WebSocket(socket) if socket.sharing == Sharing::Shared => None,
            Transport::WebSocket(_) | Transport::Frames(_) => Some(
                "its sockets exist only while clients are connected; remove it here".to_owned(),
            ),
        };
        if let Some(hint) = hint {
            let message = format!("the upstream `{name}` has no health state");
            problems.push(entry.problem(message).hint(hint));
        }
        if names.contains(name) {
            problems.push(entry.problem(format!("`{name}` is listed twice; remove it")));
        }
        names.push(name.clone());
    }
    names
}
