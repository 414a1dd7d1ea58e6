//! Sets of texts: a text pattern as a deterministic automaton over characters.
//!
//! A hole ends at the first occurrence of the text after it, so the automaton needs no backtracking and has about as
//! many states as the pattern has characters. Running two automata in parallel decides exactly whether one set
//! contains the other, and finds a common text. A hole that occurs twice in a pattern counts as two.
//!
//! Used by `pattern::compare::acceptance`, `pattern::compare::segments`, `pattern::compare::subsumption` and
//! `pattern::compare::words`.

use std::collections::HashMap;

use super::grammar::{Cursor, Empty, Fit, Grammar};
use super::segments::symbols;
use crate::pattern::{SegmentText, TextPart, TextPattern};

/// A set of texts.
#[derive(Debug, Clone)]
pub(super) struct TextSet {
    pieces: Vec<TextPiece>,
}

#[derive(Debug, Clone)]
enum TextPiece {
    Text(Terminator),
    Hole(Grammar),
}

/// A text to search for, and the state to fall back to after a mismatch.
#[derive(Debug, Clone)]
struct Terminator {
    characters: Vec<char>,
    back: Vec<usize>,
}

/// The state of the automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TextState {
    piece: usize,
    /// The number of matched characters: of this piece, or of the one after the hole.
    seen: usize,
    hole: Option<Cursor>,
}

impl TextSet {
    /// Returns the set of one text.
    pub(super) fn one(text: &str) -> TextSet {
        TextSet::new([TextPiece::text(text)])
    }

    /// Returns the set of texts of a grammar.
    pub(super) fn grammar(grammar: Grammar) -> TextSet {
        TextSet::new([TextPiece::Hole(grammar)])
    }

    /// Returns the set of texts that a pattern reads.
    pub(super) fn pattern(pattern: &TextPattern, fit: Fit) -> TextSet {
        TextSet::new(pattern.parts.iter().map(|part| match part {
            TextPart::Text(text) => TextPiece::text(text),
            TextPart::Hole(slot) => TextPiece::Hole(Grammar::of_text(slot, fit)),
        }))
    }

    /// Returns the set of path segments that have these texts, in normal form. A hole is not empty.
    pub(super) fn segment(segment: &SegmentText) -> TextSet {
        let after = segment.after().iter().flat_map(|text| {
            let hole = TextPiece::Hole(Grammar::ANY.empty(Empty::Refused));
            [hole, TextPiece::text(&symbols(text))]
        });
        let before = TextPiece::text(&symbols(segment.before()));
        TextSet::new(std::iter::once(before).chain(after))
    }

    fn new(pieces: impl IntoIterator<Item = TextPiece>) -> TextSet {
        let filled = pieces.into_iter().filter(|piece| match piece {
            TextPiece::Text(text) => !text.characters.is_empty(),
            TextPiece::Hole(_) => true,
        });
        TextSet {
            pieces: filled.collect(),
        }
    }

    /// Returns true if the other set contains this one.
    pub(super) fn within(&self, other: &TextSet) -> bool {
        let characters = characters(self, other);
        let start = (self.start(), Some(other.start()));
        let mut seen = HashMap::from([(start, ())]);
        let mut open = vec![start];
        while let Some((one, two)) = open.pop() {
            if self.ends(one) && !two.is_some_and(|two| other.ends(two)) {
                return false;
            }
            for character in &characters {
                let Some(one) = self.step(one, *character) else {
                    continue;
                };
                let next = (one, two.and_then(|two| other.step(two, *character)));
                if seen.insert(next, ()).is_none() {
                    open.push(next);
                }
            }
        }
        true
    }

    /// Returns a shortest text that is in both sets.
    pub(super) fn common_text(&self, other: &TextSet) -> Option<String> {
        let characters = characters(self, other);
        let mut trail = vec![((self.start(), other.start()), None)];
        let mut seen = HashMap::from([(trail[0].0, ())]);
        let mut at = 0;
        while let Some(((one, two), _)) = trail.get(at).copied() {
            if self.ends(one) && other.ends(two) {
                return Some(spelled(&trail, at));
            }
            for character in &characters {
                let steps = (self.step(one, *character), other.step(two, *character));
                if let (Some(one), Some(two)) = steps
                    && seen.insert((one, two), ()).is_none()
                {
                    trail.push(((one, two), Some((at, *character))));
                }
            }
            at += 1;
        }
        None
    }

    fn start(&self) -> TextState {
        self.enter(0)
    }

    fn enter(&self, piece: usize) -> TextState {
        let hole = match self.pieces.get(piece) {
            Some(TextPiece::Hole(grammar)) => Some(grammar.start()),
            Some(TextPiece::Text(_)) | None => None,
        };
        TextState {
            piece,
            seen: 0,
            hole,
        }
    }

    fn ends(&self, state: TextState) -> bool {
        match (self.pieces.get(state.piece), state.hole) {
            (None, _) => true,
            (Some(TextPiece::Hole(grammar)), Some(cursor)) => {
                state.piece + 1 == self.pieces.len() && grammar.ends(cursor)
            }
            (Some(TextPiece::Hole(_) | TextPiece::Text(_)), _) => false,
        }
    }

    fn step(&self, state: TextState, character: char) -> Option<TextState> {
        match (self.pieces.get(state.piece)?, state.hole) {
            (TextPiece::Text(text), _) => {
                if text.characters[state.seen] != character {
                    return None;
                }
                let seen = state.seen + 1;
                Some(if seen == text.characters.len() {
                    self.enter(state.piece + 1)
                } else {
                    TextState { seen, ..state }
                })
            }
            (TextPiece::Hole(grammar), Some(cursor)) => match self.pieces.get(state.piece + 1) {
                Some(TextPiece::Text(after)) => {
                    let (seen, cursor) = after.search(grammar, state.seen, cursor, character)?;
                    if seen == after.characters.len() {
                        return grammar.ends(cursor).then(|| self.enter(state.piece + 2));
                    }
                    Some(TextState {
                        seen,
                        hole: Some(cursor),
                        ..state
                    })
                }
                Some(TextPiece::Hole(_)) | None => Some(TextState {
                    hole: Some(grammar.step(cursor, character)?),
                    ..state
                }),
            },
            (TextPiece::Hole(_), None) => None,
        }
    }
}

impl Terminator {
    /// Advances the search for this text after a hole by one character. Returns the number of characters of the text
    /// that match, and the position in the hole: after a mismatch, the hole gets the characters that turned out not to
    /// belong to the text.
    fn search(
        &self,
        grammar: &Grammar,
        mut seen: usize,
        mut cursor: Cursor,
        character: char,
    ) -> Option<(usize, Cursor)> {
        loop {
            if self.characters[seen] == character {
                return Some((seen + 1, cursor));
            }
            if seen == 0 {
                return Some((0, grammar.step(cursor, character)?));
            }
            let back = self.back[seen - 1];
            for character in &self.characters[..seen - back] {
                cursor = grammar.step(cursor, *character)?;
            }
            seen = back;
        }
    }
}

impl TextPiece {
    fn text(text: &str) -> TextPiece {
        let characters: Vec<char> = text.chars().collect();
        let mut back = vec![0; characters.len()];
        for index in 1..characters.len() {
            let mut length: usize = back[index - 1];
            while length > 0 && characters[length] != characters[index] {
                length = back[length - 1];
            }
            back[index] = length + usize::from(characters[length] == characters[index]);
        }
        TextPiece::Text(Terminator { characters, back })
    }
}

/// Returns the characters that the two sets distinguish, and one that represents all others.
fn characters(one: &TextSet, other: &TextSet) -> Vec<char> {
    let mut characters = Vec::new();
    for piece in one.pieces.iter().chain(&other.pieces) {
        match piece {
            TextPiece::Text(text) => characters.extend(&text.characters),
            TextPiece::Hole(grammar) => grammar.characters(&mut characters),
        }
    }
    characters.sort_unstable();
    characters.dedup();
    let others = ('a'..='z').chain('\u{e000}'..='\u{f8ff}');
    let fresh = others
        .into_iter()
        .find(|character| characters.binary_search(character).is_err());
    // The representative comes first, so that values of holes look like words if possible.
    let mut all: Vec<char> = fresh.into_iter().collect();
    all.extend(characters);
    all
}

/// Returns the characters on the path to a state.
fn spelled<S>(trail: &[(S, Option<(usize, char)>)], end: usize) -> String {
    let mut characters = Vec::new();
    let mut at = end;
    while let Some((before, character)) = trail[at].1 {
        characters.push(character);
        at = before;
    }
    characters.iter().rev().collect()
}
