//! REST calls of no route whose path a lenient server may read as the path of one.

use super::{NearMiss, RequestHead};
use crate::domain::failure::Failure;
use crate::domain::lenient::Target;
use crate::domain::plan::Plan;
use crate::domain::rejections;
use crate::domain::route::Segments;

/// Checks that a call of no route may pass by its path. A plan with `unrouted_irregular = "pass"` lets every path pass.
///
/// # Errors
/// A [`Failure`] that names the route.
pub(super) fn check(plan: &Plan, head: RequestHead<'_>, nearby: &NearMiss) -> Result<(), Failure> {
    let Some(paths) = &plan.irregular else {
        return Ok(());
    };
    let path = head.uri.path();
    // A slash at the end is no irregularity: `pass_near` decides for the routes that have the path but for that.
    let is_tidy = Segments::split(path).irregular().is_none();
    let counts = |target: Target| match target {
        Target::Route(place) => {
            let mut near = nearby.routes.iter();
            !(is_tidy && near.any(|(route, _)| *route == place))
        }
        Target::Stream(place) => {
            let mut near = nearby.streams.iter();
            !(is_tidy && near.any(|followed| followed.stream == place))
        }
        Target::Rpc => plan.face.find(path).is_none(),
        Target::Local => true,
    };
    match paths.find(head.method, path, counts) {
        Some(target) => Err(rejections::irregular_path(plan, target)),
        None => Ok(()),
    }
}
