//! Number patterns for statuses and codes: numbers, classes, or a hole.
//!
//! Used by `check`, `document`, `explain` and `outcome`.

use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    HoleFacts, HolePosition, HoleRef, HoleResolver, MatchError, PatternError, PatternReader,
    PatternWriter, Slot, SourceTree, Token, ValueMap, parse_mention, tokens,
};
use dualgauge_patterns::side::Side;

/// A status or a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumberPattern<H = Slot> {
    /// One of these; the first is used for writing.
    Among(i64, Vec<Choice>),
    /// Any integer.
    Hole(H),
}

/// An alternative to the first number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This number.
    One(i64),
    /// `5xx`: a class of HTTP statuses (RFC 9110 §15); `-310xx`: a range of a hundred codes.
    Class(i64),
}

impl Choice {
    fn has(self, number: i64) -> bool {
        match self {
            Choice::One(one) => one == number,
            Choice::Class(class) => number / 100 == class,
        }
    }
}

impl<H> NumberPattern<H> {
    /// Returns the number that is written if it is always the same.
    pub fn written(&self) -> Option<i64> {
        match self {
            NumberPattern::Among(first, _) => Some(*first),
            NumberPattern::Hole(_) => None,
        }
    }

    /// Returns whether a successful HTTP status (RFC 9110 §15.3) is among the named ones.
    pub(super) fn names_success(&self) -> bool {
        match self {
            NumberPattern::Among(first, others) => {
                let class = |choice: &Choice| match choice {
                    Choice::One(status) => status / 100,
                    Choice::Class(class) => *class,
                };
                first / 100 == 2 || others.iter().any(|choice| class(choice) == 2)
            }
            NumberPattern::Hole(_) => false,
        }
    }
}

impl NumberPattern {
    /// Returns the numbers or the hole, for people: `200|404|5xx`.
    #[must_use]
    pub fn to_notation(&self) -> String {
        match self {
            NumberPattern::Hole(slot) => slot.to_reference(),
            NumberPattern::Among(first, others) => {
                let others = others.iter().map(|choice| match choice {
                    Choice::One(number) => number.to_string(),
                    Choice::Class(class) => format!("{class}xx"),
                });
                let all: Vec<String> = std::iter::once(first.to_string()).chain(others).collect();
                all.join("|")
            }
        }
    }
}

impl NumberPattern<HoleRef> {
    pub(super) fn parse(tree: &SourceTree) -> Result<NumberPattern<HoleRef>, PatternError> {
        match tree {
            SourceTree::Literal(json) => Ok(NumberPattern::Among(integer(json)?, Vec::new())),
            SourceTree::Text(text) => match &tokens(text)?[..] {
                [Token::Hole(inside)] => parse_mention(inside).map(NumberPattern::Hole),
                _ => Err(no_number(text)),
            },
            SourceTree::List(items) => {
                let mut items = items.iter();
                let Some(SourceTree::Literal(first)) = items.next() else {
                    return Err(PatternError::new(
                        "a list begins with the number that is written; a class such as `5xx` or `-310xx` may follow",
                    ));
                };
                let others = items.map(choice).collect::<Result<_, _>>()?;
                Ok(NumberPattern::Among(integer(first)?, others))
            }
            SourceTree::Table(_) => Err(PatternError::new(
                "write a number, a list of numbers, or a hole such as `{status:integer}`",
            )),
        }
    }

    /// Returns the numbers that may be written, as far as the pattern names them.
    pub(super) fn named(&self) -> Result<Vec<i64>, PatternError> {
        match self {
            NumberPattern::Among(first, _) => Ok(vec![*first]),
            NumberPattern::Hole(mention) => {
                let words = mention.codec.map().into_iter().flat_map(ValueMap::values);
                words.map(integer).collect()
            }
        }
    }

    pub(super) fn note(&self, side: Side, resolver: &mut HoleResolver) -> Result<(), PatternError> {
        match self {
            NumberPattern::Among(..) => Ok(()),
            NumberPattern::Hole(mention) => resolver.mention(side, mention, HolePosition::Json, 0),
        }
    }

    pub(super) fn resolve(
        &self,
        side: Side,
        facts: &HoleFacts,
    ) -> Result<NumberPattern, PatternError> {
        Ok(match self {
            NumberPattern::Among(first, others) => NumberPattern::Among(*first, others.clone()),
            NumberPattern::Hole(mention) => {
                let slot = facts.slot(side, mention, HolePosition::Json, 0)?;
                if slot.binds().is_none() || !slot.is_required() {
                    return Err(PatternError::new(format!(
                        "the hole `{}` is written as a number, so both sides must have it and it must not be optional",
                        slot.name
                    )));
                }
                if let Some(map) = slot.codec.map() {
                    map.values().try_for_each(|word| integer(word).map(drop))?;
                }
                NumberPattern::Hole(slot)
            }
        })
    }
}

fn choice(tree: &SourceTree) -> Result<Choice, PatternError> {
    match tree {
        SourceTree::Literal(json) => integer(json).map(Choice::One),
        SourceTree::Text(text) => {
            let class = text.strip_suffix("xx").and_then(|class| class.parse().ok());
            let class =
                class.filter(|class| (1..=5).contains(class) || (-999..=-1).contains(class));
            class.map(Choice::Class).ok_or_else(|| no_number(text))
        }
        SourceTree::Table(_) | SourceTree::List(_) => Err(PatternError::new(
            "a list holds numbers, and classes such as `5xx` or `-310xx`",
        )),
    }
}

fn no_number(text: &str) -> PatternError {
    PatternError::new(format!(
        "`{text}` is not a number; write one, a list that begins with one, or a hole such as `{{code:integer}}`"
    ))
}

fn integer(json: &Json) -> Result<i64, PatternError> {
    let text = String::from_utf8_lossy(json.as_bytes());
    text.parse().map_err(|_| no_number(&text))
}

impl NumberPattern {
    pub(super) fn read(&self, number: i64, reading: &mut PatternReader) -> Result<(), MatchError> {
        match self {
            NumberPattern::Hole(slot) => {
                let number = Json::written(number.to_string());
                let bound = slot.read_json(Some(&number), reading.depth);
                reading.bind(slot, bound.map_err(MatchError::here)?)
            }
            NumberPattern::Among(..) if self.fits(number) => Ok(()),
            NumberPattern::Among(first, _) => Err(MatchError::here(format!("it must be {first}"))),
        }
    }

    pub(super) fn write(&self, writing: &PatternWriter<'_>) -> Result<i64, MatchError> {
        match self {
            NumberPattern::Among(first, _) => Ok(*first),
            NumberPattern::Hole(slot) => {
                let bound = slot.written(writing).map_err(MatchError::here)?;
                let value = slot.write_json(&bound).map_err(MatchError::here)?;
                let number =
                    value.and_then(|value| String::from_utf8_lossy(value.as_bytes()).parse().ok());
                number.ok_or_else(|| MatchError::new(&slot.name, "it is not an integer in range"))
            }
        }
    }

    /// Returns whether a number matches.
    #[must_use]
    pub fn fits(&self, number: i64) -> bool {
        match self {
            NumberPattern::Hole(slot) => {
                let mut numbers = mapped(slot).into_iter().flatten();
                slot.codec.map().is_none() || numbers.any(|own| own == number)
            }
            NumberPattern::Among(first, others) => {
                *first == number || others.iter().any(|choice| choice.has(number))
            }
        }
    }

    /// Returns whether each number that matches this matches the other.
    #[must_use]
    pub fn within(&self, other: &NumberPattern) -> bool {
        match (self, other) {
            (_, NumberPattern::Hole(slot)) if slot.codec.map().is_none() => true,
            (NumberPattern::Hole(slot), _) if slot.codec.map().is_none() => false,
            (NumberPattern::Hole(_), _) | (_, NumberPattern::Hole(_)) => {
                self.numbers().all(|number| other.fits(number))
            }
            (NumberPattern::Among(first, others), NumberPattern::Among(of, choices)) => {
                let has =
                    |number: i64| number == *of || choices.iter().any(|choice| choice.has(number));
                has(*first)
                    && others.iter().all(|choice| match choice {
                        Choice::One(number) => has(*number),
                        Choice::Class(class) => class_of(*class).all(has),
                    })
            }
        }
    }

    /// Returns a number that matches both.
    #[must_use]
    pub fn common_number(&self, other: &NumberPattern) -> Option<i64> {
        match (self, other) {
            (NumberPattern::Hole(one), NumberPattern::Hole(other))
                if one.codec.map().is_none() && other.codec.map().is_none() =>
            {
                Some(0)
            }
            (NumberPattern::Hole(slot), among) | (among, NumberPattern::Hole(slot))
                if slot.codec.map().is_none() =>
            {
                among.numbers().next()
            }
            (one, other) => one.numbers().find(|number| other.fits(*number)),
        }
    }

    /// Iterates over the matching numbers; empty if every number matches.
    pub fn numbers(&self) -> impl Iterator<Item = i64> {
        let mapped = match self {
            NumberPattern::Hole(slot) => mapped(slot),
            NumberPattern::Among(..) => None,
        };
        let (first, others) = match self {
            NumberPattern::Among(first, others) => (Some(*first), others.as_slice()),
            NumberPattern::Hole(_) => (None, &[][..]),
        };
        let more = others.iter().flat_map(|choice| match choice {
            Choice::One(number) => *number..*number + 1,
            Choice::Class(class) => class_of(*class),
        });
        first
            .into_iter()
            .chain(more)
            .chain(mapped.into_iter().flatten())
    }
}

/// Returns the numbers of a map.
fn mapped(slot: &Slot) -> Option<impl Iterator<Item = i64>> {
    let words = slot.codec.map()?.values();
    Some(words.filter_map(|word| integer(word).ok()))
}

/// Returns the numbers of a class: its digits followed by two more.
fn class_of(class: i64) -> std::ops::Range<i64> {
    if class < 0 {
        class * 100 - 99..class * 100 + 1
    } else {
        class * 100..class * 100 + 100
    }
}
