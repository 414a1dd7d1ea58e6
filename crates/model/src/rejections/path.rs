//! Rejections of irregular paths: no route has them, but a server may read them as the path of one.

use crate::failure::{Failure, Reason};
use crate::lenient::Target;
use crate::plan::Plan;
use crate::route::{AmbiguousPath, Likeness, Route};
use crate::stream::Stream;

/// Returns the failure of a path that a lenient server may read as one that the proxy serves.
#[must_use]
pub fn irregular_path(plan: &Plan, target: Target) -> Failure {
    let streams = plan.streams.all();
    let owner = match target {
        Target::Route(place) => {
            format!("the path of the route `{}`", plan.routes.route(place).name)
        }
        Target::Stream(place) => match streams.get(place) {
            Some(stream) => format!("the path of the stream `{}`", stream.name),
            None => "the path of a stream".to_owned(),
        },
        Target::Rpc => "an RPC path".to_owned(),
        Target::Local => "a path that the proxy itself answers".to_owned(),
    };
    let message =
        format!("path: a lenient server may read it as {owner}; send that path in its normal form");
    Failure::new(Reason::IrregularPath, message)
}

/// Returns the failure of a path that a server may normalise to an RPC path.
#[must_use]
pub fn irregular_rpc_path(why: AmbiguousPath) -> Failure {
    let message = format!(
        "path: {why} is refused, because the path without it is an RPC path; send the path in its normal form"
    );
    Failure::new(Reason::MalformedTarget, message)
}

/// Returns the failure of a path that a server may normalise to that of a local reply.
#[must_use]
pub fn irregular_local_path(why: AmbiguousPath) -> Failure {
    let message = format!(
        "path: {why} is refused, because the proxy itself answers the path without it; send the path in its normal form"
    );
    Failure::new(Reason::MalformedTarget, message)
}

/// Returns the failure of a path that another server may read as that of a stream.
#[must_use]
pub fn near_stream(stream: &Stream) -> Failure {
    let message = format!(
        "path: a server may read it as the path of the stream `{}`; send that path in its normal form",
        stream.name
    );
    Failure::new(Reason::MalformedTarget, message)
}

/// Returns the failure of a path that another server may read as that of a route.
#[must_use]
pub fn near_route(route: &Route, likeness: Likeness) -> Failure {
    let name = &route.name;
    let message = match likeness {
        Likeness::Without(why) => format!(
            "path: {why} is refused, because the path without it is the route `{name}`; send the path in its normal form"
        ),
        Likeness::WithSlash => format!(
            "path: it is refused without a slash at the end, because the path with one is the route `{name}`"
        ),
        Likeness::EmptyHole => format!(
            "path: an empty segment is refused where the route `{name}` has a value; send the value"
        ),
    };
    Failure::new(Reason::MalformedTarget, message)
}
