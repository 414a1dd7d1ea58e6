//! Streams and events: each is compiled separately; then streams are checked for overlaps with each other and with
//! routes.

use http::Method;

use crate::config::compile::upstreams;
use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawConfig, RawFlag, RawStream};
use dualgauge_model::event::Events;
use dualgauge_model::plan::Upstreams;
use dualgauge_model::rollout::Stage;
use dualgauge_model::route::{RouteTable, Segments, Wire};
use dualgauge_model::stream::{Stream, StreamPath, Streams};

/// Compiles the events; problems are reported by key.
pub(super) fn events(raw: &RawConfig, problems: &mut Vec<Problem>) -> Events {
    Events::build(raw.events.clone()).unwrap_or_else(|errors| {
        let errors = errors.into_iter();
        problems.extend(errors.map(|error| raw.places.problem(error.key, error.what)));
        Events::default()
    })
}

/// Compiles the streams, with their upstreams.
pub(super) fn streams(
    raw: &RawConfig,
    routes: &RouteTable,
    upstreams: &mut Upstreams,
    problems: &mut Vec<Problem>,
) -> Streams {
    let of_streams = raw.streams.iter();
    let of_streams =
        of_streams.map(|stream| upstreams::named(raw, &stream.upstreams, Wire::Http, problems));
    upstreams.of_streams = of_streams.collect();
    let mut known: Vec<(&Spanned<(Method, String)>, StreamPath)> = Vec::new();
    let mut streams = Vec::with_capacity(raw.streams.len());
    for stream in &raw.streams {
        let paths = [&stream.rest, &stream.rpc].map(|call| {
            let path = path(call, routes, problems)?;
            check_twin(call, &path, &known, problems);
            known.push((call, path.clone()));
            Some(path)
        });
        if let [Some(rest), Some(rpc)] = paths {
            check_holes(stream, [&rest, &rpc], problems);
            streams.push(Stream {
                name: stream.name.value.clone(),
                rest,
                rpc,
                max_age: stream.max_age.as_ref().map(|age| age.value),
            });
        }
    }
    Streams::new(streams)
}

fn path(
    call: &Spanned<(Method, String)>,
    routes: &RouteTable,
    problems: &mut Vec<Problem>,
) -> Option<StreamPath> {
    let (method, text) = &call.value;
    if *method != Method::GET {
        let message = format!("a stream is requested with GET, not with {method}");
        problems.push(call.problem(message));
        return None;
    }
    let path = StreamPath::parse(text)
        .map_err(|error| problems.push(call.problem(format!("the path `{text}`: {error}"))))
        .ok()?;
    let sample = path.sample();
    if routes
        .methods(&Segments::split(&sample))
        .contains(&Method::GET)
    {
        let message = format!("`GET {text}` is already a route");
        problems.push(call.problem(message).hint("remove one of them"));
    }
    Some(path)
}

/// Rejects two paths that match the same requests: the path determines the side that a client wants.
fn check_twin(
    call: &Spanned<(Method, String)>,
    path: &StreamPath,
    known: &[(&Spanned<(Method, String)>, StreamPath)],
    problems: &mut Vec<Problem>,
) {
    let twin = known.iter().find(|(_, known)| known.meets(path));
    if let Some((twin, _)) = twin {
        let message = format!(
            "`{}` matches the same requests as {} at {}, but the path must determine the side",
            path.as_str(),
            twin.key,
            twin.place
        );
        problems.push(call.problem(message));
    }
}

/// Rejects a hole that is on one side only: its value must go to the other side.
fn check_holes(stream: &RawStream, [rest, rpc]: [&StreamPath; 2], problems: &mut Vec<Problem>) {
    for (own, other, call) in [(rest, rpc, &stream.rest), (rpc, rest, &stream.rpc)] {
        for hole in own
            .holes()
            .filter(|hole| !other.holes().any(|twin| twin == *hole))
        {
            let message = format!("the hole `{hole}` is on this side only");
            problems.push(call.problem(message).hint("add it to the other side"));
        }
    }
}

/// Rejects flags that ask for a comparison of streams. Two streams have the same events at different times.
pub(super) fn check_flags(raw: &RawConfig, flags: &[RawFlag], problems: &mut Vec<Problem>) {
    let names_stream = |flag: &&RawFlag| {
        let mut streams = raw.streams.iter();
        streams.any(|stream| stream.name.value == flag.route.value)
    };
    let compares = |flag: &&RawFlag| matches!(flag.stage.value, Stage::Shadow | Stage::Verify);
    for flag in flags.iter().filter(compares).filter(names_stream) {
        let message = format!(
            "streams are not compared, so `{}` cannot have the stage `{}`",
            flag.route.value,
            flag.stage.value.as_str()
        );
        let hint = "write `passthrough`, `translate` or `retired`";
        problems.push(flag.stage.problem(message).hint(hint));
    }
}
