//! Unrouted REST calls whose path a lenient server may read as that of a route. Used by `routing`.

use super::head::RequestHead;
use super::near::NearMiss;
use crate::failure::Failure;
use crate::lenient::Target;
use crate::plan::Plan;
use crate::rejections;
use crate::route::Segments;

/// Checks that an unrouted call may pass by its path. With `unrouted_irregular = "pass"`, every path passes.
///
/// # Errors
///
/// Fails with the name of the route that the path may address.
pub(super) fn check(plan: &Plan, head: RequestHead<'_>, nearby: &NearMiss) -> Result<(), Failure> {
    let Some(paths) = &plan.irregular else {
        return Ok(());
    };
    let path = head.uri.path();
    // A trailing slash is no irregularity: `pass_near` decides for the routes that differ only in it.
    let is_tidy = Segments::split(path).irregular().is_none();
    let counts = |target: Target| match target {
        Target::Route(index) => {
            let mut near = nearby.routes.iter();
            !(is_tidy && near.any(|(route, _)| *route == index))
        }
        Target::Stream(index) => {
            let mut near = nearby.streams.iter();
            !(is_tidy && near.any(|followed| followed.stream == index))
        }
        Target::Rpc => plan.face.find(path).is_none(),
        Target::Local => true,
    };
    match paths.find(head.method, path, counts) {
        Some(target) => Err(rejections::irregular_path(plan, target)),
        None => Ok(()),
    }
}
