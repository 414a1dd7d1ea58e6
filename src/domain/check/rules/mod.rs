//! The rules: each knows one reason for which a message may not come back as it was.
//!
//! Reading a message binds its holes, writing the other side fills them, and the same again on the way
//! back. So a message differs from what comes back only by what its own pattern reads without binding it
//! (forgotten, only written, lists of numbers), by what binding does not tell apart (absent and default,
//! absent and null, an absent object and an empty one, JSON text and its compact form), by what the other
//! side has no spelling for (an empty list, no value at all, no message), or because another route or row
//! reads the way back. Each of these is a rule; there is no further step in which anything could change.

mod holes;
mod replies;
mod routes;

use super::message::Message;
use super::report::Weight;
use super::subject::CheckSubject;

pub(super) use routes::built_in;

/// Why a message does not come back as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckRule {
    /// `{_}`, `{_=v}`, `body = "{_}"`: what stands there is read and forgotten.
    Forgotten,
    /// `{>x}`: what stands there is written from elsewhere, so another value is gone.
    WriteOnly,
    /// `{>now}`: the time is written anew.
    Time,
    /// A list of statuses or codes: only the first is written.
    NumberList,
    /// `{x=50}`: an absent value comes back as its default.
    DefaultWritten,
    /// `{x?=50}`: a value that equals its default comes back as an absent one.
    DefaultLeftOut,
    /// `null`, where the other side has a text, comes back as an absent value.
    NullAbsent,
    /// An empty list has no text, so it comes back as an absent one, or as the default.
    EmptyList,
    /// An absent object comes back as `{}`, and an empty body as none.
    AbsentObject,
    /// `{=x}`: what equals another place is written as that one is, or left out.
    EqualValue,
    /// `{x:integer}`: `3.0` and `3e0` come back as `3`.
    IntegerForm,
    /// `{x:json}`: JSON inside of a text comes back in compact form.
    CompactJson,
    /// An error whose row names no message comes back with another one.
    MessageReplaced,
    /// All of a body or a result is one hole that may be absent, and what comes then is another one.
    WholeLeftOut,
    /// A text comes back with the content type that the proxy gives to texts.
    TextType,
    /// A text of blanks is read as no content.
    BlankText,
    /// A tool's result that says `isError: true` fits only rows that name it.
    ToolFailure,
    /// What the row writes is read by another row.
    AnotherRow,
    /// What the route writes is read by another route.
    AnotherRoute,
    /// Success without a row comes back as 200, or as 204 for `null`.
    SuccessStatus,
    /// A made-up message did not come back, and no rule says why: a fault of the checker.
    Unexplained,
}

impl CheckRule {
    /// Every rule.
    pub const ALL: [CheckRule; 21] = [
        CheckRule::Forgotten,
        CheckRule::WriteOnly,
        CheckRule::Time,
        CheckRule::NumberList,
        CheckRule::DefaultWritten,
        CheckRule::DefaultLeftOut,
        CheckRule::NullAbsent,
        CheckRule::EmptyList,
        CheckRule::AbsentObject,
        CheckRule::EqualValue,
        CheckRule::IntegerForm,
        CheckRule::CompactJson,
        CheckRule::MessageReplaced,
        CheckRule::WholeLeftOut,
        CheckRule::TextType,
        CheckRule::BlankText,
        CheckRule::ToolFailure,
        CheckRule::AnotherRow,
        CheckRule::AnotherRoute,
        CheckRule::SuccessStatus,
        CheckRule::Unexplained,
    ];

    /// The word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckRule::Forgotten => "forgotten",
            CheckRule::WriteOnly => "write_only",
            CheckRule::Time => "time",
            CheckRule::NumberList => "number_list",
            CheckRule::DefaultWritten => "default_written",
            CheckRule::DefaultLeftOut => "default_left_out",
            CheckRule::NullAbsent => "null_absent",
            CheckRule::EmptyList => "empty_list",
            CheckRule::AbsentObject => "absent_object",
            CheckRule::EqualValue => "equal_value",
            CheckRule::IntegerForm => "integer_form",
            CheckRule::CompactJson => "compact_json",
            CheckRule::MessageReplaced => "message_replaced",
            CheckRule::WholeLeftOut => "whole_left_out",
            CheckRule::TextType => "text_type",
            CheckRule::BlankText => "blank_text",
            CheckRule::ToolFailure => "tool_failure",
            CheckRule::AnotherRow => "another_row",
            CheckRule::AnotherRoute => "another_route",
            CheckRule::SuccessStatus => "success_status",
            CheckRule::Unexplained => "unexplained",
        }
    }

    /// What it says of a place, for people.
    #[must_use]
    pub fn says(self, at: &str) -> String {
        match self {
            CheckRule::Forgotten => format!("{at}: read and forgotten"),
            CheckRule::WriteOnly => format!("{at}: only written, never read"),
            CheckRule::Time => format!("{at}: the time is written anew"),
            CheckRule::NumberList => format!("{at}: only the first number is written"),
            CheckRule::DefaultWritten => format!("{at}: the default is written out"),
            CheckRule::DefaultLeftOut => format!("{at}: the default is left out"),
            CheckRule::NullAbsent => format!("{at}: null is as good as absent"),
            CheckRule::EmptyList => format!("{at}: an empty list has no text"),
            CheckRule::AbsentObject => format!("{at}: absent and {{}} are alike"),
            CheckRule::EqualValue => format!("{at}: written as its other place, or left out"),
            CheckRule::IntegerForm => format!("{at}: 3.0 is written as 3"),
            CheckRule::CompactJson => format!("{at}: JSON in a text is compact"),
            CheckRule::MessageReplaced => format!("{at}: the message is replaced"),
            CheckRule::WholeLeftOut => format!("{at}: may be absent as a whole"),
            CheckRule::TextType => format!("{at}: texts are text/plain"),
            CheckRule::BlankText => format!("{at}: a text of blanks is no content"),
            CheckRule::ToolFailure => format!("{at}: isError fits only rows that name it"),
            CheckRule::AnotherRow => format!("read by {at}"),
            CheckRule::AnotherRoute => format!("read by the route {at}"),
            CheckRule::SuccessStatus => "success is 200, or 204 for null".to_owned(),
            CheckRule::Unexplained => {
                "no rule explains it, which is a fault of check itself".to_owned()
            }
        }
    }
}

/// What a rule suspects, and messages that would show it; the first that differs is the witness.
#[derive(Debug)]
pub(super) struct Hypothesis {
    pub(super) rule: CheckRule,
    /// What it is if it is so; a norm that is not stable is a loss.
    pub(super) weight: Weight,
    pub(super) at: String,
    pub(super) messages: Vec<Message>,
}

/// A rule: looks at a subject, and at what other routes or rows write that might read the way back.
pub(super) type RuleFn = fn(&CheckSubject<'_>, &[Message]) -> Vec<Hypothesis>;

/// All rules that can be taken away one by one.
pub(super) const RULES: &[RuleFn] = &[
    holes::forgotten,
    holes::write_only,
    holes::default_written,
    holes::default_left_out,
    holes::null_absent,
    holes::empty_list,
    holes::absent_object,
    holes::equal_value,
    holes::integer_form,
    holes::compact_json,
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
