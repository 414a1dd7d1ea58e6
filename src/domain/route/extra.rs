//! What a route does with members and query names that it does not know, unless it says so.

use http::Method;

use super::{Extra, HasRequestBody, RouteForm, RouteSource, has_content};
use crate::domain::pattern::PatternError;

/// Returns whether a short form has a body, and what the route does with what it does not know.
///
/// # Errors
/// [`PatternError`] where members are to be carried and nothing carries them.
pub(super) fn chosen(
    source: &RouteSource,
    form: RouteForm,
    method: &Method,
) -> Result<(HasRequestBody, Extra), PatternError> {
    let carries = if source.has_no_body() {
        HasRequestBody::Nothing
    } else {
        has_content(method)
    };
    let extra = source.extra.unwrap_or(default_extra(form, carries));
    if (form, carries, extra) == (RouteForm::Short, HasRequestBody::Nothing, Extra::Carry) {
        return Err(nothing_carries(method));
    }
    Ok((carries, extra))
}

/// Returns what a route does with members and query names that it does not know, unless it says so: a short form
/// with a body carries them, every other route refuses the call. A call whose unknown parts were dropped could do
/// more than the caller asked for.
fn default_extra(form: RouteForm, carries: HasRequestBody) -> Extra {
    match (form, carries) {
        (RouteForm::Short, HasRequestBody::Body) => Extra::Carry,
        (RouteForm::Short, HasRequestBody::Nothing) | (RouteForm::Full, _) => Extra::Reject,
    }
}

/// The error of `extra = "carry"` on a short form without a body.
fn nothing_carries(method: &Method) -> PatternError {
    let what = format!(
        "{method} of this route has no body that could carry further params; write `params` and `body = {{ \"...\" = \"{{others}}\" }}`, or `extra = \"reject\"`"
    );
    PatternError::new(what).under("extra")
}
