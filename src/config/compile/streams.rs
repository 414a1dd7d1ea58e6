//! Streams and events: each on its own, then whether streams are told apart from each other and from routes.

use http::Method;

use crate::config::compile::upstreams;
use crate::config::problem::{Located, Problem};
use crate::config::raw::{RawConfig, RawFlag, RawStream};
use crate::domain::event::Events;
use crate::domain::plan::Upstreams;
use crate::domain::rollout::Stage;
use crate::domain::route::{RouteTable, Segments};
use crate::domain::side::Side;
use crate::domain::stream::{Stream, Streams};

/// The events; what is wrong with one is told by its key.
pub(super) fn events(raw: &RawConfig, problems: &mut Vec<Problem>) -> Events {
    Events::build(raw.events.clone()).unwrap_or_else(|errors| {
        let errors = errors.into_iter();
        problems.extend(errors.map(|error| raw.places.problem(error.key, error.what)));
        Events::default()
    })
}

/// The streams, with the upstreams that they name.
pub(super) fn streams(
    raw: &RawConfig,
    (routes, upstreams): (&RouteTable, &mut Upstreams),
    problems: &mut Vec<Problem>,
) -> Streams {
    let of_streams = raw.streams.iter();
    let of_streams = of_streams.map(|stream| upstreams::named(raw, &stream.upstreams, problems));
    upstreams.of_streams = of_streams.collect();
    for (place, stream) in raw.streams.iter().enumerate() {
        for side in Side::ALL {
            check_path(stream.call(side), routes, problems);
            check_twin((raw, place), stream, side, problems);
        }
    }
    let streams = raw.streams.iter().map(|stream| Stream {
        name: stream.name.value.clone(),
        rest: normal(&stream.rest),
        rpc: normal(&stream.rpc),
        max_age: stream.max_age.as_ref().map(|age| age.value),
    });
    Streams::new(streams.collect())
}

fn normal(call: &Located<(Method, String)>) -> String {
    Segments::split(&call.value.1).normal()
}

fn check_path(call: &Located<(Method, String)>, routes: &RouteTable, problems: &mut Vec<Problem>) {
    let (method, path) = &call.value;
    let segments = Segments::split(path);
    if *method != Method::GET {
        let message = format!("a stream is asked for by GET, not by {method}");
        problems.push(call.problem(message));
    } else if let Some(why) = segments.irregular() {
        let message = format!("the path `{path}` has {why}; write it in its normal form");
        problems.push(call.problem(message));
    } else if routes.methods(&segments).contains(&Method::GET) {
        let message = format!("`GET {path}` is a route already");
        problems.push(call.problem(message).hint("remove one of them"));
    }
}

/// The path tells the side that a client wants, so each is there once.
fn check_twin(
    (raw, place): (&RawConfig, usize),
    stream: &RawStream,
    side: Side,
    problems: &mut Vec<Problem>,
) {
    let own = stream.call(side);
    let earlier = raw.streams[..place].iter();
    let mut earlier = earlier.flat_map(|stream| [&stream.rest, &stream.rpc]);
    let same = |call: &&Located<(Method, String)>| normal(call) == normal(own);
    let twin = earlier.find(same);
    let twin = twin.or_else(|| {
        Some(&stream.rest)
            .filter(|_| side == Side::Rpc)
            .filter(same)
    });
    if let Some(twin) = twin {
        let message = format!(
            "`{}` is the path of {} at {} already, and the path tells the side that a client wants",
            own.value.1, twin.key, twin.place
        );
        problems.push(own.problem(message));
    }
}

/// A flag that asks for a comparison of a stream, which would be two streams that say the same at different times.
pub(super) fn check_flags(raw: &RawConfig, flags: &[RawFlag], problems: &mut Vec<Problem>) {
    let is_stream = |flag: &&RawFlag| {
        let mut streams = raw.streams.iter();
        streams.any(|stream| stream.name.value == flag.route.value)
    };
    let compares = |flag: &&RawFlag| matches!(flag.stage.value, Stage::Shadow | Stage::Verify);
    for flag in flags.iter().filter(is_stream).filter(compares) {
        let message = format!(
            "streams are not compared, so `{}` has no stage `{}`",
            flag.route.value,
            flag.stage.value.as_str()
        );
        let hint = "write `passthrough`, `translate` or `retired`";
        problems.push(flag.stage.problem(message).hint(hint));
    }
}
