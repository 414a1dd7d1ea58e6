//! One rule: its names and texts, and the differences that it suspects. Used by `cli` and `check`.

use crate::check::message::Message;

/// The weight of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The message comes back as one that means the same, and that one comes back unchanged.
    Norm,
    /// Something is lost.
    Loss,
    /// The message is refused, because it would not come back.
    Refused,
}

/// The reason why a message does not come back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckRule {
    /// `{_}`, `{_=v}`, `body = "{_}"`: the value is read and forgotten.
    Forgotten,
    /// `{>x}`: the value is written from elsewhere, so any other value is lost.
    WriteOnly,
    /// `{<x}`: the value is kept for the response and not written.
    ReadOnly,
    /// `{>now}`: the current time is written.
    Time,
    /// A list of statuses or codes: only the first is written.
    NumberList,
    /// `{x=50}`: an absent value comes back as its default.
    DefaultWritten,
    /// `{x?=50}`: a value that equals its default comes back as an absent one.
    DefaultLeftOut,
    /// `null`, where the other side has a text, comes back as an absent value.
    NullAbsent,
    /// An empty list has no text, so it comes back as absent or as the default.
    EmptyList,
    /// An absent object comes back as `{}`, and an empty body as none.
    AbsentObject,
    /// `{=x}`: a value that equals another place is written like that one, or left out.
    EqualValue,
    /// `{x:integer}`: `3.0` and `3e0` come back as `3`.
    IntegerForm,
    /// `{x:json}`: JSON inside a text comes back in compact form.
    CompactJson,
    /// `["{/}", …]`: another form comes back as the first one.
    OtherForm,
    /// `{x:keys(snake=camel)}`: a value with a key that would not come back is refused.
    KeyStyle,
    /// `{offset:page(limit)}`: an offset at which no page begins, a page beyond 64 bits, or a limit below 1 is
    /// refused.
    PageOffset,
    /// An error whose row names no message comes back with another message.
    MessageReplaced,
    /// A whole body or result is one hole that may be absent, and comes back as another value.
    WholeLeftOut,
    /// A text comes back with the content type that the proxy sets for texts.
    TextType,
    /// A blank text is read as no content.
    BlankText,
    /// A tool's result with `isError: true` matches only rows that name it.
    ToolFailure,
    /// Another row reads the message that the row writes.
    AnotherRow,
    /// Another route reads the message that the route writes.
    AnotherRoute,
    /// Success without a row comes back as 200, or as 204 for `null`.
    SuccessStatus,
    /// A generated message did not come back, and no rule explains it: a fault of the checker.
    Unexplained,
}

impl CheckRule {
    /// Every rule.
    pub const ALL: [CheckRule; 25] = [
        CheckRule::Forgotten,
        CheckRule::WriteOnly,
        CheckRule::ReadOnly,
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
        CheckRule::OtherForm,
        CheckRule::KeyStyle,
        CheckRule::PageOffset,
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

    /// Returns the word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CheckRule::Forgotten => "forgotten",
            CheckRule::WriteOnly => "write_only",
            CheckRule::ReadOnly => "read_only",
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
            CheckRule::OtherForm => "other_form",
            CheckRule::KeyStyle => "key_style",
            CheckRule::PageOffset => "page_offset",
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

    /// Returns the text about a location, for people.
    #[must_use]
    pub fn describe(self, at: &str) -> String {
        match self {
            CheckRule::Forgotten => format!("{at}: read and forgotten"),
            CheckRule::WriteOnly => format!("{at}: only written, never read"),
            CheckRule::ReadOnly => format!("{at}: kept for the response, not written"),
            CheckRule::Time => format!("{at}: replaced by the current time"),
            CheckRule::NumberList => format!("{at}: only the first number is written"),
            CheckRule::DefaultWritten => format!("{at}: the default is written out"),
            CheckRule::DefaultLeftOut => format!("{at}: the default is left out"),
            CheckRule::NullAbsent => format!("{at}: null comes back as absent"),
            CheckRule::EmptyList => format!("{at}: an empty list has no text"),
            CheckRule::AbsentObject => format!("{at}: absent and {{}} are not distinguished"),
            CheckRule::EqualValue => {
                format!("{at}: written in the spelling of the equal hole, or left out")
            }
            CheckRule::IntegerForm => format!("{at}: 3.0 is written as 3"),
            CheckRule::CompactJson => format!("{at}: JSON in a text comes back compact"),
            CheckRule::OtherForm => format!("{at}: other forms come back as the first one"),
            CheckRule::KeyStyle => {
                format!("{at}: a key that would not come back from the other style")
            }
            CheckRule::PageOffset => {
                format!(
                    "{at}: an offset at which no page begins, a page beyond 64 bits, or a limit below 1"
                )
            }
            CheckRule::MessageReplaced => format!("{at}: the message is replaced"),
            CheckRule::WholeLeftOut => format!("{at}: may be absent as a whole"),
            CheckRule::TextType => format!("{at}: a text comes back as text/plain"),
            CheckRule::BlankText => format!("{at}: a blank text comes back as no content"),
            CheckRule::ToolFailure => format!("{at}: isError matches only rows that name it"),
            CheckRule::AnotherRow => format!("read by {at}"),
            CheckRule::AnotherRoute => format!("read by the route {at}"),
            CheckRule::SuccessStatus => "success is 200, or 204 for null".to_owned(),
            CheckRule::Unexplained => "no rule explains it: a bug of `check`".to_owned(),
        }
    }
}

/// A suspected difference, with messages that would show it; the first that differs is the witness.
#[derive(Debug)]
pub(in crate::check) struct Hypothesis {
    pub(in crate::check) rule: CheckRule,
    /// The weight if the suspicion holds; a normal form that is not stable is a loss.
    pub(in crate::check) weight: Weight,
    pub(in crate::check) at: String,
    pub(in crate::check) messages: Vec<Message>,
}

/// Messages of other routes or rows, which might match a translated message on its way back.
pub(in crate::check) type Rivals<'r> = &'r [Message];
