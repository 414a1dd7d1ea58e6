//! Text → value, in one pass, with the messages and places of Python's decoder. Used by `body`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::value::{Dict, Value};

/// How deep lists and objects may lie in each other; every level costs stack.
const MAX_DEPTH: usize = 128;

/// Why a text is not JSON.
#[derive(Debug, PartialEq)]
pub(crate) enum Fault {
    /// The text breaks here.
    Broken {
        message: &'static str,
        /// Counted in characters, as Python counts.
        place: i64,
    },
    /// Deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Reads one JSON text.
pub(crate) fn parse(text: &str) -> Result<Value, Fault> {
    let mut cursor = Cursor { text, at: 0 };
    let whole = cursor.document();
    whole.map_err(|stop| match stop {
        Stop::TooDeep => Fault::TooDeep,
        Stop::Broken(message, byte) => Fault::Broken {
            message,
            place: i64::try_from(text[..byte].chars().count()).unwrap_or(i64::MAX),
        },
    })
}

enum Stop {
    /// A message, and the byte at which it applies: always a character boundary.
    Broken(&'static str, usize),
    TooDeep,
}

type Parsed<T> = Result<T, Stop>;

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn document(&mut self) -> Parsed<Value> {
        self.skip_space();
        let value = self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(Stop::Broken("Extra data", self.at));
        }
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        if depth > MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut members: Vec<(String, Value)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Dict(Dict::default()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.broken_here("Expecting property name enclosed in double quotes"));
            }
            let name = self.string()?;
            self.skip_space();
            self.expect(b':', "Expecting ':' delimiter")?;
            self.skip_space();
            let value = self.value(depth + 1)?;
            // The last of equal names wins, at the place of the first.
            match places.entry(name) {
                Entry::Occupied(place) => members[*place.get()].1 = value,
                Entry::Vacant(place) => {
                    members.push((place.key().clone(), value));
                    place.insert(members.len() - 1);
                }
            }
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Dict(Dict::new(members)));
            }
            self.expect(b',', "Expecting ',' delimiter")?;
            self.skip_space();
        }
    }

    fn list(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            self.expect(b',', "Expecting ',' delimiter")?;
            self.skip_space();
        }
    }

    fn string(&mut self) -> Parsed<String> {
        let start = self.at;
        let unterminated = Stop::Broken("Unterminated string starting at", start);
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let Some(plain) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') else {
                return Err(unterminated);
            };
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') if self.at + 1 == self.text.len() => return Err(unterminated),
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.broken_here("Invalid control character at")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let invalid = self.broken_here("Invalid \\escape");
        self.at += 1;
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(invalid),
        };
        self.at += 1;
        Ok(c)
    }

    /// `uXXXX`, or two of them as a surrogate pair. Python keeps half a pair; a Rust text cannot, so it
    /// becomes U+FFFD.
    fn unicode(&mut self) -> Parsed<char> {
        let first = self.unit()?;
        let before_second = self.at;
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.at += 1;
            let second = self.unit()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before_second;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn unit(&mut self) -> Parsed<u32> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let code = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.broken_here("Invalid \\uXXXX escape"))?;
        self.at += 5;
        Ok(code)
    }

    /// The longest number here; what follows it is somebody else's fault, so `01` is `0` and extra data.
    fn number(&mut self) -> Parsed<Value> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') && self.digits() == 0 {
            self.at = start;
            return self.word();
        }
        let whole = self.at;
        if self.take(b'.') && self.digits() == 0 {
            self.at = whole;
        }
        let mantissa = self.at;
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                self.at = mantissa;
            }
        }
        let text = &self.text[start..self.at];
        if self.at > whole {
            // Out of range reads as infinity, as in Python.
            return Ok(Value::Float(text.parse().unwrap_or(f64::INFINITY)));
        }
        Ok(match text.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Big(text.to_owned()),
        })
    }

    fn word(&mut self) -> Parsed<Value> {
        let words = [
            ("null", Value::None),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        for (word, value) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.broken_here("Expecting value"))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, message: &'static str) -> Parsed<()> {
        if self.take(byte) {
            return Ok(());
        }
        Err(self.broken_here(message))
    }

    fn digits(&mut self) -> usize {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += digits;
        digits
    }

    fn skip_space(&mut self) {
        let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().bytes().take_while(space).count();
    }

    const fn broken_here(&self, message: &'static str) -> Stop {
        Stop::Broken(message, self.at)
    }
}
