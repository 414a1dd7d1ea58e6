//! The results of a replay as one JSON document. Used by `replay`.

use std::io;

use serde_json::{Map, Value, json};

use super::latencies::Latencies;
use super::summary::{CallPlace, RouteSummary, Summary};
use super::text::names;

/// Renders the results.
pub(super) fn render(summary: &Summary) -> io::Result<String> {
    let (control, candidate) = names(summary.way);
    let routes = summary.routes.iter();
    let routes: Map<String, Value> = routes
        .map(|(name, route)| (name.to_string(), of_route(route)))
        .collect();
    let skipped = summary.skipped.iter().map(|((reason, of), group)| {
        json!({
            "reason": reason,
            "of": Some(of).filter(|of| !of.is_empty()),
            "calls": group.calls,
            "numbers": group.numbers,
            "why": group.why,
        })
    });
    let document = json!({
        "conclusion": summary.conclusion().as_str(),
        "interrupted": summary.is_interrupted(),
        "control": control,
        "candidate": candidate,
        "compared": summary.compared(),
        "different": summary.different(),
        "not_selected": summary.not_selected,
        "routes": routes,
        "skipped": skipped.collect::<Vec<_>>(),
        "skipped_calls": summary.skipped_calls(),
        "notes": summary.notes,
    });
    let text = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
    Ok(text + "\n")
}

fn of_route(route: &RouteSummary) -> Value {
    let fields = route.fields.iter().map(|(name, field)| {
        let samples = field.samples.iter().map(|sample| {
            let found = &sample.difference;
            let mut value = place(&sample.place);
            value["redacted"] = sample.is_redacted.into();
            value["pointer"] = found.pointer.clone().into();
            value["kind"] = found.kind.as_str().into();
            value["control"] = found.control.as_str().into();
            value["candidate"] = found.candidate.as_str().into();
            value
        });
        let value = json!({
            "calls": field.calls,
            "redacted": field.redacted,
            "kinds": field.kinds,
            "samples": samples.collect::<Vec<_>>(),
        });
        (name.clone(), value)
    });
    let failed = route.failed.iter().map(|failed| {
        let mut value = place(&failed.place);
        value["redacted"] = failed.is_redacted.into();
        if let Some((control, candidate)) = &failed.endings {
            value["control"] = control.clone().into();
            value["candidate"] = candidate.clone().into();
        }
        value["cause"] = failed.cause.clone().into();
        value
    });
    json!({
        "calls": route.calls(),
        "verdicts": route.verdicts,
        "different": route.different(),
        "redacted": route.redacted.values().sum::<u64>(),
        "redacted_verdicts": route.redacted,
        "uncertain": route.uncertain,
        "by_status": route.by_status,
        "noisy": route.noisy,
        "fields": fields.collect::<Map<_, _>>(),
        "more": route.more,
        "failed": failed.collect::<Vec<_>>(),
        "replies": route.replies,
        "control_us": times(&route.control_times),
        "candidate_us": times(&route.candidate_times),
    })
}

fn place(place: &CallPlace) -> Value {
    json!({
        "number": place.number,
        "method": place.method,
        "path": place.path,
        "side": place.side.as_str(),
    })
}

/// Returns percentiles in microseconds; `null` if no time is known.
fn times(times: &Latencies) -> Option<Value> {
    let longest = times.longest()?;
    Some(json!({
        "p50": times.percentile(50),
        "p90": times.percentile(90),
        "p99": times.percentile(99),
        "longest": longest,
    }))
}
