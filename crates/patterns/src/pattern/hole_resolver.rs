//! Resolution of holes: combines the declarations at each position into facts that hold everywhere.
//!
//! The type and `?` are declared once and hold on both sides. A default, and the `?` that keeps it from being written,
//! belong to one side; the other side uses the same unless it declares its own. A hole that occurs in a text anywhere
//! has the type of a text everywhere.

use super::hole_facts::{DefaultValue, HoleFact, HoleFacts, HolePosition, index, no_such_hole};
use super::hole_syntax::{CHOICE, HoleRef, HoleUse, PatternError};
use super::scope;
use super::text::TextPatterns;
use super::{Codec, Pattern, Scalar, Shape, TextPart, TextPattern};
use crate::side::Side;

/// The declarations of a hole so far.
#[derive(Debug, Clone)]
struct Declarations {
    name: String,
    /// The alternatives around it.
    scope: String,
    /// The configuration key of its first occurrence.
    key: String,
    shape: Option<Shape>,
    depth: usize,
    is_optional: bool,
    in_text: bool,
    in_path: bool,
    /// The default of each side: its text, and whether `?` is next to it.
    defaults: [Option<(String, bool)>; 2],
    /// True for each side that has the hole.
    on: [bool; 2],
    /// The kind of its positions so far.
    positions: Option<Positions>,
}

/// The kind of the positions of a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Positions {
    /// `{x}`
    Shared,
    /// `{<x}`
    Kept,
    /// Both, which is an error.
    Mixed,
}

/// A write-only hole at one position.
#[derive(Debug)]
struct WrittenHole {
    mention: HoleRef,
    depth: usize,
    key: String,
}

/// A collector of the declarations of both sides.
#[derive(Debug, Default)]
pub struct HoleResolver {
    declarations: Vec<Declarations>,
    written: Vec<WrittenHole>,
    key: String,
    /// The number of holes in the head of a request, while its body is read: `{=x}` must equal one of them.
    head: Option<usize>,
}

impl HoleResolver {
    /// Sets the configuration key of the following patterns, for errors that show only at the end.
    pub fn at(&mut self, key: &str) -> &mut HoleResolver {
        key.clone_into(&mut self.key);
        self
    }

    /// Begins the body of a request: all holes so far belong to its head.
    pub fn begin_body(&mut self) {
        self.head = Some(self.declarations.len());
    }

    /// Ends the body of a request.
    pub fn end_body(&mut self) {
        self.head = None;
    }

    /// Checks `{=x}`, which declares nothing about the hole.
    fn equal(
        &self,
        mention: &HoleRef,
        position: HolePosition,
        depth: usize,
    ) -> Result<(), PatternError> {
        let Some(head) = self
            .head
            .filter(|_| position == HolePosition::Json && depth == 0)
        else {
            return Err(PatternError::new(format!(
                "`{{={}}}` must be a whole value of a request body, outside `[\"*\", …]`; write `{{{}}}`",
                mention.name, mention.name
            )));
        };
        let mut known = self.declarations[..head].iter();
        if known.any(|declared| declared.is_named(&mention.name, "")) {
            Ok(())
        } else {
            Err(no_such_hole(mention))
        }
    }

    /// Adds the declarations of a pattern.
    ///
    /// # Errors
    ///
    /// Fails on contradictions.
    pub fn pattern(&mut self, side: Side, pattern: &Pattern<HoleRef>) -> Result<(), PatternError> {
        self.nested(side, pattern, 0)
    }

    fn nested(
        &mut self,
        side: Side,
        pattern: &Pattern<HoleRef>,
        depth: usize,
    ) -> Result<(), PatternError> {
        match pattern {
            Pattern::Literal(_) => Ok(()),
            Pattern::Hole(mention) => self.mention(side, mention, HolePosition::Json, depth),
            Pattern::Text(text) => self.text(side, text, depth),
            Pattern::Object(object) => {
                for (name, member) in &object.members {
                    let noted = self.nested(side, member, depth);
                    noted.map_err(|error| error.under_member(name))?;
                }
                let mut rest = object.rest.iter();
                rest.try_for_each(|rest| self.mention(side, rest, HolePosition::Rest, depth))
            }
            Pattern::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    let noted = self.nested(side, item, depth);
                    noted.map_err(|error| error.under(&format!("[{index}]")))?;
                }
                let mut rest = list.rest.iter();
                rest.try_for_each(|rest| self.rest_elements(side, rest, depth))
            }
            Pattern::Each(each) => {
                let noted = self.nested(side, &each.item, depth + 1);
                noted.map_err(|error| error.under("[1]"))
            }
            Pattern::Either(either) => {
                if let Some(choice) = &either.choice {
                    self.mention(side, choice, HolePosition::Json, depth)?;
                }
                for (index, alternative) in either.alternatives.iter().enumerate() {
                    let noted = self.nested(side, alternative, depth);
                    noted.map_err(|error| error.under(&format!("[{}]", index + 1)))?;
                }
                Ok(())
            }
        }
    }

    fn rest_elements(
        &mut self,
        side: Side,
        rest: &HoleRef,
        depth: usize,
    ) -> Result<(), PatternError> {
        let array = HoleRef {
            shape: Some(Shape::Array),
            ..rest.clone()
        };
        self.mention(side, &array, HolePosition::Json, depth)
    }

    fn text(
        &mut self,
        side: Side,
        text: &TextPattern<HoleRef>,
        depth: usize,
    ) -> Result<(), PatternError> {
        let mut holes = text.parts.iter().filter_map(|part| match part {
            TextPart::Text(_) => None,
            TextPart::Hole(mention) => Some(mention),
        });
        holes.try_for_each(|mention| self.mention(side, mention, HolePosition::Text, depth))
    }

    /// Adds the declarations of a text outside of JSON.
    ///
    /// # Errors
    ///
    /// Fails on contradictions.
    pub fn words(
        &mut self,
        side: Side,
        words: &TextPatterns<HoleRef>,
        position: HolePosition,
    ) -> Result<(), PatternError> {
        match words {
            TextPatterns::Literal(_) => Ok(()),
            TextPatterns::Hole(mention) => self.mention(side, mention, position, 0),
            TextPatterns::Mixed(text) => self.text(side, text, 0),
        }
    }

    /// Adds the declaration at one position.
    ///
    /// # Errors
    ///
    /// Fails if it contradicts an earlier one.
    pub fn mention(
        &mut self,
        side: Side,
        mention: &HoleRef,
        position: HolePosition,
        depth: usize,
    ) -> Result<(), PatternError> {
        if mention.name == "_" {
            return Ok(());
        }
        if mention.used == HoleUse::Equal {
            return self.equal(mention, position, depth);
        }
        if mention.used == HoleUse::WriteOnly {
            let key = self.key.clone();
            self.written.push(WrittenHole {
                mention: mention.clone(),
                depth,
                key,
            });
            return Ok(());
        }
        let is_kept = mention.used == HoleUse::ReadOnly;
        let is_whole = matches!(position, HolePosition::Json | HolePosition::Words);
        if is_kept && !(is_whole && depth == 0 && mention.scope.is_empty()) {
            return Err(PatternError::new(format!(
                "`{{<{}}}` must be a whole value of the query, a header, the body or params, outside of `[\"*\", …]` and of alternatives",
                mention.name
            )));
        }
        let declared = self.declared(mention, depth)?;
        let here = if is_kept {
            Positions::Kept
        } else {
            Positions::Shared
        };
        declared.positions = Some(match declared.positions {
            Some(before) if before != here => Positions::Mixed,
            Some(_) | None => here,
        });
        declared.on[index(side)] = true;
        if !matches!(mention.codec, Codec::Json(_) | Codec::Keys(_))
            && position != HolePosition::Json
            && position != HolePosition::Rest
        {
            declared.in_text = true;
        }
        if matches!(position, HolePosition::Path | HolePosition::Segment) {
            declared.in_path = true;
        }
        let shape = match position {
            HolePosition::Rest => Some(Shape::Object),
            HolePosition::Json
            | HolePosition::Words
            | HolePosition::Text
            | HolePosition::Path
            | HolePosition::Segment => mention.shape.clone(),
        };
        // With a default, `?` is about that side's default.
        declared.is_optional |= (mention.is_optional || is_kept) && mention.default.is_none();
        declared.declare(shape)?;
        declared.defaults(index(side), mention)
    }

    fn declared(
        &mut self,
        mention: &HoleRef,
        depth: usize,
    ) -> Result<&mut Declarations, PatternError> {
        let (name, scope) = (&mention.name, &mention.scope);
        let mut known = self.declarations.iter();
        let position = match known.position(|declared| declared.is_named(name, scope)) {
            Some(position) => position,
            None => {
                self.declarations
                    .push(Declarations::new(mention, depth, &self.key));
                self.declarations.len() - 1
            }
        };
        let declared = &mut self.declarations[position];
        if declared.depth == depth {
            Ok(declared)
        } else {
            Err(PatternError::new(format!(
                "the hole `{name}` is once a single value and once a value for each element; write `[\"*\", …]` around both, or around neither"
            )))
        }
    }

    /// Marks a hole of the REST side as present on the RPC side too: the message carries it outside of all patterns.
    pub fn carried(&mut self, name: &str) {
        let alone = |declared: &&mut Declarations| {
            declared.is_named(name, "") && declared.depth == 0 && declared.on == [true, false]
        };
        for declared in self.declarations.iter_mut().filter(alone) {
            declared.on = [true; 2];
        }
    }

    /// Resolves all holes. `call` contains the holes of the call, for patterns of the response.
    ///
    /// # Errors
    ///
    /// Fails if a hole occurs on one side only, or if its declarations are inconsistent.
    pub fn finish(self, call: &HoleFacts) -> Result<HoleFacts, PatternError> {
        for declared in &self.declarations {
            self.refuse_outer(declared)
                .map_err(|error| error.under(&declared.key))?;
        }
        let mut holes = Vec::with_capacity(self.declarations.len());
        for declared in self.declarations {
            let key = declared.key.clone();
            let is_kept = declared.positions == Some(Positions::Kept);
            let is_mixed = declared.positions == Some(Positions::Mixed);
            if is_mixed || (is_kept && declared.on == [true; 2]) {
                return Err(declared.read_only_and_shared().under(&key));
            }
            if declared.on != [true; 2] && !is_kept {
                return Err(declared.one_sided().under(&key));
            }
            holes.push(declared.conclude().map_err(|error| error.under(&key))?);
        }
        let facts = HoleFacts {
            holes,
            call: call.holes.clone(),
        };
        for written in &self.written {
            let source = facts.source(&written.mention, written.depth);
            source.map_err(|error| error.under(&written.key))?;
        }
        Ok(facts)
    }

    /// Refuses a hole of an alternative that is also outside of it.
    fn refuse_outer(&self, declared: &Declarations) -> Result<(), PatternError> {
        let name = &declared.name;
        let mut outer = scope::enclosing(&declared.scope).skip(1);
        let mut known = self.declarations.iter();
        if outer.any(|scope| known.any(|known| known.is_named(name, scope))) {
            return Err(PatternError::new(format!(
                "the hole `{name}` is inside an alternative, where holes are local, and outside of it; give one of them another name"
            )));
        }
        Ok(())
    }
}

/// Returns true if two declarations accept the same values: the words of an `enum` have no order.
fn same_values(one: &Shape, other: &Shape) -> bool {
    match (one, other) {
        (Shape::One(Scalar::Enum(one)), Shape::One(Scalar::Enum(other))) => {
            one.len() == other.len() && one.iter().all(|word| other.contains(word))
        }
        (_, _) => one == other,
    }
}

impl Declarations {
    fn is_named(&self, name: &str, scope: &str) -> bool {
        self.name == name && self.scope == scope
    }

    fn new(mention: &HoleRef, depth: usize, key: &str) -> Declarations {
        Declarations {
            name: mention.name.clone(),
            scope: mention.scope.clone(),
            key: key.to_owned(),
            shape: None,
            depth,
            is_optional: false,
            in_text: false,
            in_path: false,
            defaults: [None, None],
            on: [false; 2],
            positions: None,
        }
    }

    fn declare(&mut self, shape: Option<Shape>) -> Result<(), PatternError> {
        let Some(shape) = shape else { return Ok(()) };
        match &self.shape {
            Some(before) if !same_values(before, &shape) => Err(PatternError::new(format!(
                "the hole `{}` is {} here and {} elsewhere; declare its type once",
                self.name,
                shape.described(),
                before.described()
            ))),
            Some(_) => Ok(()),
            None => {
                self.shape = Some(shape);
                Ok(())
            }
        }
    }

    fn defaults(&mut self, side: usize, mention: &HoleRef) -> Result<(), PatternError> {
        let Some(default) = &mention.default else {
            return Ok(());
        };
        let declaration = (default.clone(), mention.is_optional);
        match &self.defaults[side] {
            Some(before) if *before != declaration => Err(PatternError::new(format!(
                "the hole `{}` has two defaults on one side, `{}` and `{default}`; declare one",
                self.name, before.0
            ))),
            _ => {
                self.defaults[side] = Some(declaration);
                Ok(())
            }
        }
    }

    fn read_only_and_shared(&self) -> PatternError {
        let name = &self.name;
        PatternError::new(format!(
            "the hole `{name}` is read only, `{{<{name}}}`, and also at another place of the call; write `{{{name}}}` on both sides, or name it once"
        ))
    }

    fn one_sided(&self) -> PatternError {
        let (here, there) = if self.on[0] {
            (Side::Rest, Side::Rpc)
        } else {
            (Side::Rpc, Side::Rest)
        };
        let name = &self.name;
        if name == CHOICE {
            let signature = self.scope.rsplit('/').next().unwrap_or_default();
            return PatternError::new(format!(
                "the alternatives with the holes `{signature}` are on the {here} side only; the {there} side needs as many alternatives, with the same holes in each"
            ));
        }
        PatternError::new(format!(
            "the hole `{name}` is on the {here} side only; name it on the {there} side as well, write `{{_}}` to ignore it, `{{<{name}}}` in a call to keep it for the response on its side, or `{{>{name}}}` if the call has it"
        ))
    }

    fn conclude(self) -> Result<HoleFact, PatternError> {
        let shape = match (self.shape, self.in_text) {
            (Some(shape @ (Shape::Object | Shape::Array | Shape::Null)), true) => {
                return Err(PatternError::new(format!(
                    "the hole `{}` is {} and part of a text; write `{{{}:json}}` there",
                    self.name,
                    shape.described(),
                    self.name
                )));
            }
            (None | Some(Shape::Any), true) => Shape::One(Scalar::String),
            (None, false) => Shape::Any,
            (Some(shape), _) => shape,
        };
        let absent = self.is_optional || self.defaults.iter().any(Option::is_some);
        if self.in_path && absent {
            return Err(PatternError::new(format!(
                "the hole `{}` is in a path, so it cannot be absent",
                self.name
            )));
        }
        let [rest, rpc] = self.defaults;
        let checked = |default: Option<(String, bool)>| {
            let checked = default.map(|(text, is_left_out)| {
                let value = shape.check_default(&text);
                value.map(|value| DefaultValue { value, is_left_out })
            });
            checked
                .transpose()
                .map_err(|what| PatternError::new(format!("`{{{}}}`: {what}", self.name)))
        };
        let (rest, rpc) = (checked(rest)?, checked(rpc)?);
        let defaults = [rest.clone().or(rpc.clone()), rpc.or(rest)];
        Ok(HoleFact {
            name: self.name,
            scope: self.scope,
            only: match self.on {
                [true, false] => Some(Side::Rest),
                [false, true] => Some(Side::Rpc),
                [true, true] | [false, false] => None,
            },
            depth: self.depth,
            is_optional: self.is_optional,
            in_text: self.in_text,
            shape,
            defaults,
        })
    }
}
