//! Refusals of paths that are no path of a route, but that a server may read as one.

use crate::domain::failure::{Failure, Reason};
use crate::domain::lenient::Target;
use crate::domain::plan::Plan;
use crate::domain::route::{AmbiguousPath, Likeness, Route};
use crate::domain::stream::Stream;

/// A path that a lenient server may read as one that the proxy knows.
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
    let message = format!(
        "path: a lenient server may read it as {owner}, which it is not; send that path in its normal form"
    );
    Failure::new(Reason::IrregularPath, message)
}

/// A path that is an RPC path for a program that tidies up.
#[must_use]
pub fn irregular_rpc_path(why: AmbiguousPath) -> Failure {
    let message = format!(
        "path: {why} is refused, because the path without it is an RPC path; send the path in its normal form"
    );
    Failure::new(Reason::MalformedTarget, message)
}

/// The path of a local answer, for a program that tidies up.
#[must_use]
pub fn irregular_local_path(why: AmbiguousPath) -> Failure {
    let message = format!(
        "path: {why} is refused, because the proxy itself answers the path without it; send the path in its normal form"
    );
    Failure::new(Reason::MalformedTarget, message)
}

/// A path that another program may take for that of a stream.
#[must_use]
pub fn near_stream(stream: &Stream) -> Failure {
    let message = format!(
        "path: a server may take it for the path of the stream `{}`, which it is not; send the path of the stream",
        stream.name
    );
    Failure::new(Reason::MalformedTarget, message)
}

/// A path that another program may take for that of a route.
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
