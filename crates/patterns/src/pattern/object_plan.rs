//! The precomputed data of an object pattern: a plan for reading in one pass, and a template for writing.
//!
//! `fast_read` and `template` compute and use them.
//!
//! Used by `pattern::fast_read`, `pattern::nodes` and `pattern::template`.

use crate::json::JsonKind;

/// The plan for reading the objects of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadPlan {
    /// In one pass, unless something is unusual; with the check for each member.
    OnePass(Box<[FastMatch]>),
    /// By opening the object.
    Opened,
}

/// The condition for reading a value in the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FastMatch {
    /// A value of this kind, which is bound to this hole.
    Value(usize, FastKind),
    /// No condition: the value is read by its pattern.
    ByPattern,
}

/// The kind of a value, as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FastKind {
    /// Anything but `null`, which may mean no value.
    Any,
    /// A string without escapes.
    Plain,
    /// A number without fraction and exponent.
    Integer,
    /// Any value of this kind.
    Of(JsonKind),
}

/// The text of an object around the values of its holes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectTemplate {
    /// Each hole with the text before it.
    pub(super) holes: Vec<(Box<[u8]>, usize)>,
    /// The text after the last hole.
    pub(super) end: Box<[u8]>,
    /// The length of all texts.
    pub(super) length: usize,
}
