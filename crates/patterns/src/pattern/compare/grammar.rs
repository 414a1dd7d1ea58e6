//! Grammars of the texts of one hole, character by character. Used by `pattern`.

use crate::pattern::{Codec, Delimiter, JsonText, Scalar, Shape, Slot};

/// The approximation of JSON inside a text, which has no character-wise grammar here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The grammar accepts all valid texts and more.
    Above,
    /// The grammar accepts only some of the valid texts.
    Below,
}

/// The grammar of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grammar {
    word: WordGrammar,
    many: ListGrammar,
    empty: Empty,
}

/// The grammar of one word.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WordGrammar {
    Any,
    Integer,
    Number,
    Among(Vec<Vec<char>>),
}

/// Tells whether a delimiter separates several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListGrammar {
    One,
    Separated(char),
}

/// Tells whether the whole text may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// If the word may be empty.
    AsWord,
    /// Yes, regardless of the word.
    Allowed,
    /// No.
    Refused,
}

/// The position within a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Cursor {
    word: WordPosition,
    is_started: bool,
}

/// The position within a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WordPosition {
    Any,
    Number(NumberAt),
    /// The first word with this prefix, and the length of the prefix.
    Among(usize, usize),
}

/// The states of RFC 8259 §6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NumberAt {
    Start,
    Minus,
    Zero,
    Digits,
    Dot,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Grammar {
    /// Accepts any text.
    pub(super) const ANY: Grammar = Grammar {
        word: WordGrammar::Any,
        many: ListGrammar::One,
        empty: Empty::AsWord,
    };

    /// Returns the grammar of a type.
    pub(super) fn from_scalar(scalar: &Scalar) -> Grammar {
        let word = match scalar {
            Scalar::String => WordGrammar::Any,
            Scalar::Integer => WordGrammar::Integer,
            Scalar::Number => WordGrammar::Number,
            Scalar::Boolean => among(["true", "false"]),
            Scalar::Enum(words) => among(words.iter().map(String::as_str)),
        };
        Grammar {
            word,
            ..Grammar::ANY
        }
    }

    /// Returns the grammar of a hole in a text that occurs once.
    pub(super) fn of_text(slot: &Slot, fit: Fit) -> Grammar {
        if slot.binds().is_none() {
            return Grammar::ANY;
        }
        if slot.codec.is_json() {
            return match fit {
                Fit::Above => Grammar::ANY,
                // A text with the letters of base64 is not always the base64 of JSON.
                Fit::Below if slot.codec == Codec::Json(JsonText::Base64) => {
                    let samples = Grammar::of_json(&slot.shape).word.samples();
                    Grammar::of_words(samples.map(|text| JsonText::Base64.encode(text)))
                }
                Fit::Below => Grammar::of_json(&slot.shape),
            };
        }
        if let (Codec::Page(page), Fit::Below) = (&slot.codec, fit) {
            let pages = [page.first(), 1, 2].map(|page| page.to_string());
            return Grammar::of_words(pages.iter());
        }
        if let Codec::Map(map) = &slot.codec {
            return Grammar::of_words(map.texts());
        }
        slot.shape
            .scalar()
            .map_or(Grammar::ANY, Grammar::from_scalar)
    }

    /// Returns the grammar of some words.
    pub(super) fn of_words(words: impl Iterator<Item: AsRef<str>>) -> Grammar {
        let words = words.map(|word| word.as_ref().chars().collect());
        Grammar {
            word: WordGrammar::Among(words.collect()),
            ..Grammar::ANY
        }
    }

    /// Returns the grammar of some of the JSON texts of a shape.
    fn of_json(shape: &Shape) -> Grammar {
        let word = match shape {
            Shape::Any => among(["null", "true", "false", "0", "1", "{}", "[]", "\"text\""]),
            Shape::One(Scalar::String) => among(["\"text\"", "\"\""]),
            Shape::One(Scalar::Enum(words)) => WordGrammar::Among(
                words
                    .iter()
                    .map(|word| format!("\"{word}\"").chars().collect())
                    .collect(),
            ),
            Shape::One(scalar) => return Grammar::from_scalar(scalar),
            Shape::Object => among(["{}"]),
            Shape::Array | Shape::Repeated(_) | Shape::Separated(..) => among(["[]"]),
            Shape::Null => among(["null"]),
        };
        Grammar {
            word,
            ..Grammar::ANY
        }
    }

    /// Returns the grammar of a list of such words with a delimiter.
    pub(super) fn separated(self, delimiter: Delimiter) -> Grammar {
        Grammar {
            many: ListGrammar::Separated(delimiter.as_char()),
            ..self
        }
    }

    /// Returns the grammar with another rule for the empty text.
    pub(super) fn empty(self, empty: Empty) -> Grammar {
        Grammar { empty, ..self }
    }

    /// Returns the position before the first character.
    pub(super) fn start(&self) -> Cursor {
        Cursor {
            word: self.word.start(),
            is_started: false,
        }
    }

    /// Returns the position after one more character, if the text may continue with it.
    pub(super) fn step(&self, cursor: Cursor, character: char) -> Option<Cursor> {
        let word = if self.many == ListGrammar::Separated(character) {
            self.word.ends(cursor.word).then(|| self.word.start())?
        } else {
            self.word.step(cursor.word, character)?
        };
        Some(Cursor {
            word,
            is_started: true,
        })
    }

    /// Returns true if the text may end here.
    pub(super) fn ends(&self, cursor: Cursor) -> bool {
        match self.empty {
            Empty::Allowed if !cursor.is_started => true,
            Empty::Refused if !cursor.is_started => false,
            Empty::AsWord | Empty::Allowed | Empty::Refused => self.word.ends(cursor.word),
        }
    }

    /// Adds the characters that the grammar distinguishes.
    pub(super) fn characters(&self, characters: &mut Vec<char>) {
        match &self.word {
            WordGrammar::Any => {}
            // All digits are added, so that one is left if a text contains some of them.
            WordGrammar::Integer => characters.extend("-0123456789".chars()),
            WordGrammar::Number => characters.extend("-0123456789.e+E".chars()),
            WordGrammar::Among(words) => characters.extend(words.iter().flatten()),
        }
        if let ListGrammar::Separated(character) = self.many {
            characters.push(character);
        }
    }
}

fn among<'w>(words: impl IntoIterator<Item = &'w str>) -> WordGrammar {
    let words = words.into_iter().map(|word| word.chars().collect());
    WordGrammar::Among(words.collect())
}

impl WordGrammar {
    /// Returns some of the words; none if any text is a word.
    fn samples(self) -> impl Iterator<Item = String> {
        let words = match self {
            WordGrammar::Any => Vec::new(),
            WordGrammar::Integer | WordGrammar::Number => vec![vec!['1']],
            WordGrammar::Among(words) => words,
        };
        words.into_iter().map(String::from_iter)
    }

    fn start(&self) -> WordPosition {
        match self {
            WordGrammar::Any => WordPosition::Any,
            WordGrammar::Integer | WordGrammar::Number => WordPosition::Number(NumberAt::Start),
            WordGrammar::Among(_) => WordPosition::Among(0, 0),
        }
    }

    fn step(&self, at: WordPosition, character: char) -> Option<WordPosition> {
        match (self, at) {
            (WordGrammar::Integer, WordPosition::Number(at)) => {
                let whole = character == '-' || character.is_ascii_digit();
                whole.then(|| at.step(character))?.map(WordPosition::Number)
            }
            (WordGrammar::Number, WordPosition::Number(at)) => {
                at.step(character).map(WordPosition::Number)
            }
            (WordGrammar::Among(words), WordPosition::Among(first, length)) => {
                let begin = words.get(first)?.get(..length)?;
                let next = words.iter().position(|word| {
                    word.get(length) == Some(&character) && word.starts_with(begin)
                });
                next.map(|next| WordPosition::Among(next, length + 1))
            }
            (
                WordGrammar::Any
                | WordGrammar::Integer
                | WordGrammar::Number
                | WordGrammar::Among(_),
                _,
            ) => Some(WordPosition::Any),
        }
    }

    fn ends(&self, at: WordPosition) -> bool {
        match (self, at) {
            (_, WordPosition::Number(at)) => at.ends(),
            (WordGrammar::Among(words), WordPosition::Among(first, length)) => words
                .get(first)
                .and_then(|first| first.get(..length))
                .is_some_and(|started| words.iter().any(|word| word == started)),
            (
                WordGrammar::Any
                | WordGrammar::Integer
                | WordGrammar::Number
                | WordGrammar::Among(_),
                _,
            ) => true,
        }
    }
}

impl NumberAt {
    fn step(self, character: char) -> Option<NumberAt> {
        Some(match (self, character) {
            (NumberAt::Start, '-') => NumberAt::Minus,
            (NumberAt::Start | NumberAt::Minus, '0') => NumberAt::Zero,
            (NumberAt::Start | NumberAt::Minus, '1'..='9') => NumberAt::Digits,
            (NumberAt::Digits, '0'..='9') => NumberAt::Digits,
            (NumberAt::Zero | NumberAt::Digits, '.') => NumberAt::Dot,
            (NumberAt::Dot | NumberAt::Fraction, '0'..='9') => NumberAt::Fraction,
            (NumberAt::Zero | NumberAt::Digits | NumberAt::Fraction, 'e' | 'E') => {
                NumberAt::Exponent
            }
            (NumberAt::Exponent, '+' | '-') => NumberAt::Sign,
            (NumberAt::Exponent | NumberAt::Sign | NumberAt::Power, '0'..='9') => NumberAt::Power,
            _ => return None,
        })
    }

    fn ends(self) -> bool {
        match self {
            NumberAt::Zero | NumberAt::Digits | NumberAt::Fraction | NumberAt::Power => true,
            NumberAt::Start
            | NumberAt::Minus
            | NumberAt::Dot
            | NumberAt::Exponent
            | NumberAt::Sign => false,
        }
    }
}
