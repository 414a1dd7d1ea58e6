//! The treatment of members and query names that a route does not know. Used by `route::draft`.

use http::Method;

use super::options::{Extra, RouteForm, has_content};
use super::source::RouteSource;
use dualgauge_patterns::pattern::PatternError;

/// Returns whether a short form has a body, and the treatment of unknown names.
///
/// # Errors
/// Returns [`PatternError`] if members are to be carried, but no hole can carry them.
pub(super) fn chosen(
    source: &RouteSource,
    form: RouteForm,
    method: &Method,
) -> Result<(bool, Extra), PatternError> {
    let has_body = !source.has_no_body() && has_content(method);
    let extra = source.extra.unwrap_or(default_extra(form, has_body));
    if !has_body && form == RouteForm::Short && extra == Extra::Carry {
        return Err(nothing_carries(method));
    }
    Ok((has_body, extra))
}

/// Returns the default treatment: a short form with a body carries unknown members, every other route refuses the call.
/// With unknown parts dropped, a call could do more than its caller asked for.
fn default_extra(form: RouteForm, has_body: bool) -> Extra {
    match form {
        RouteForm::Short if has_body => Extra::Carry,
        RouteForm::Short | RouteForm::Full => Extra::Reject,
    }
}

/// Returns the error of `extra = "carry"` on a short form without a body.
fn nothing_carries(method: &Method) -> PatternError {
    let what = format!(
        "{method} of this route has no body that could carry further params; write `params` and `body = {{ \"...\" = \"{{others}}\" }}`, or `extra = \"reject\"`"
    );
    PatternError::new(what).under("extra")
}
