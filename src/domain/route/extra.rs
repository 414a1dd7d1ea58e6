//! What a route does with members and query names that it does not know, unless it says so.

use http::Method;

use super::{Carries, Extra, Form, RouteSource, has_content};
use crate::domain::pattern::PatternError;

/// Returns whether a short form has a body, and what the route does with what it does not know.
///
/// # Errors
/// [`PatternError`] where members are to be carried and nothing carries them.
pub(super) fn chosen(
    source: &RouteSource,
    form: Form,
    method: &Method,
) -> Result<(Carries, Extra), PatternError> {
    let carries = if source.has_no_body() {
        Carries::Nothing
    } else {
        has_content(method)
    };
    let extra = source.extra.unwrap_or(default_extra(form, carries));
    if (form, carries, extra) == (Form::Short, Carries::Nothing, Extra::Carry) {
        return Err(nothing_carries(method));
    }
    Ok((carries, extra))
}

/// Returns what a route does with members and query names that it does not know, unless it says so: a short form
/// with a body carries them, every other route refuses the call. A call whose unknown parts were dropped could do
/// more than the caller asked for.
fn default_extra(form: Form, carries: Carries) -> Extra {
    match (form, carries) {
        (Form::Short, Carries::Body) => Extra::Carry,
        (Form::Short, Carries::Nothing) | (Form::Full, _) => Extra::Reject,
    }
}

/// The error of `extra = "carry"` on a short form without a body.
fn nothing_carries(method: &Method) -> PatternError {
    let what = format!(
        "{method} of this route has no body that could carry further params; write `params` and `body = {{ \"...\" = \"{{others}}\" }}`, or `extra = \"reject\"`"
    );
    PatternError::new(what).under("extra")
}
