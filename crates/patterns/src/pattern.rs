//! Patterns: JSON or text with named holes. A name that occurs on both sides means the same value.
//!
//! A pattern reads a value into bindings, and writes bindings into a value. Routes and outcomes are declared with
//! patterns, but this module knows neither. Laws: writing after reading gives the value or its normal form; data that
//! no pattern names keeps its bytes; no input of a caller causes a panic.

mod any_notation;
mod bindings;
mod codec;
mod compare;
mod default_json;
mod delimiter;
mod either;
mod equal;
mod fast_read;
mod hole_checks;
mod hole_facts;
mod hole_resolver;
mod hole_syntax;
mod integer;
mod key_style;
mod list;
mod nodes;
mod notation;
mod number;
mod object_plan;
mod page;
mod page_number;
mod read;
mod scope;
mod segment;
mod shown;
mod slot;
mod template;
mod text;
mod token;
mod tree;
mod value;
mod value_map;
mod write;

pub use any_notation::check_any_notation;
pub use bindings::{
    Bindings, BoundMembers, BoundValue, MatchError, MatchErrorKind, Now, PatternReader,
    PatternWriter, UnknownMembers, WriteScope,
};
pub use compare::{
    MemberPolicy, Subsumption, intersection, may_intersect, optional_intersection, optional_within,
    sample, segment_intersection, segment_within, within, words_intersection, words_within,
};
pub use hole_facts::{HoleFact, HoleFacts, HolePosition};
pub use hole_resolver::HoleResolver;
pub use hole_syntax::{
    HoleRef, HoleUse, PatternError, Token, as_key, cut_default, hole_name, mention_named,
    parse_encoded_type, parse_mention, tokens,
};
pub use key_style::KeyStyles;
pub use nodes::{
    EachPattern, EitherPattern, ListPattern, ObjectPattern, Pattern, TextPart, TextPattern,
};
pub use page_number::Page;
pub use segment::{HoleLength, SegmentText, normal_text};
pub use slot::{Absence, Codec, Delimiter, HoleSource, JsonText, Null, Role, Scalar, Shape, Slot};
pub use text::{TextPatterns, WrittenTexts};
pub use tree::SourceTree;
pub use value::ValuePresence;
pub use value_map::ValueMap;

#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
#[cfg(test)]
mod tests;
