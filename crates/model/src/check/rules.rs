//! The rules: each knows one reason why a message may not come back unchanged.
//!
//! Reading a message binds its holes, writing the other side fills them, and the same happens on the way back. So a
//! message differs from the one that comes back only for these reasons:
//! - its own pattern reads a value without binding it (forgotten, only written, lists of numbers);
//! - binding does not distinguish values (absent and default, absent and null, an absent object and an empty one, JSON
//!   text and its compact form);
//! - the other side has no spelling for a value (an empty list, no value at all, no message);
//! - another route or row reads the way back.
//!
//! Each of these is a rule; there is no further step in which anything could change.
//!
//! Used by `check::report` and `check::verify`.

mod holes;
mod refused;
mod replies;
mod routes;
mod rule;

use super::subject::CheckSubject;

pub(super) use routes::built_in;
pub use rule::{CheckRule, Weight};
pub(super) use rule::{Hypothesis, Rivals};

/// A rule: derives hypotheses from a subject and from the messages of other routes or rows that might read the way
/// back.
pub(super) type RuleFn = fn(&CheckSubject<'_>, Rivals<'_>) -> Vec<Hypothesis>;

/// All rules, in a list so that tests can remove each one.
pub(super) const RULES: &[RuleFn] = &[
    holes::forgotten,
    holes::write_only,
    holes::read_only,
    holes::default_written,
    holes::default_left_out,
    holes::null_absent,
    holes::empty_list,
    holes::absent_object,
    holes::equal_value,
    holes::integer_form,
    holes::compact_json,
    holes::other_form,
    refused::key_style,
    refused::page_offset,
    replies::body_forgotten,
    replies::number_list,
    replies::message_replaced,
    replies::whole_left_out,
    replies::text_type,
    replies::blank_text,
    replies::tool_failure,
    routes::another_row,
    routes::another_route,
];
