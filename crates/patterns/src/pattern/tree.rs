//! The values of a route table that spell patterns, and their conversion to patterns.

use super::hole_syntax::{
    CHOICE, HoleRef, HoleUse, PatternError, Token, mention_named, parse_mention, tokens,
};
use super::scope;
use super::{
    Codec, EachPattern, EitherPattern, ListPattern, ObjectPattern, Pattern, Shape, TextPart,
    TextPattern,
};
use crate::json::{Json, encode, same_ignoring_case};

/// A value of a route table that spells a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceTree {
    /// A string, which may contain holes.
    Text(String),
    /// A number or a boolean.
    Literal(Json),
    /// A table, with its keys in the order of the file.
    Table(Vec<(String, SourceTree)>),
    /// An array.
    List(Vec<SourceTree>),
}

/// The key for the unnamed members.
const REST: &str = "...";
/// The first element of an array whose elements match one pattern.
const EACH: &str = "*";
/// The first element of an array of alternatives. It is no hole, so that no list of values can be one by mistake.
const ALTERNATIVES: &str = "{|}";
/// The first element of an array of forms.
const FORMS: &str = "{/}";
/// The most alternatives or forms of one value.
const MOST_ALTERNATIVES: usize = 32;

impl SourceTree {
    /// Returns the pattern.
    ///
    /// # Errors
    ///
    /// Fails with the key below this value.
    pub fn pattern(&self) -> Result<Pattern<HoleRef>, PatternError> {
        let mut pattern = self.parse()?;
        scope::assign(&mut pattern)?;
        Ok(pattern)
    }

    fn parse(&self) -> Result<Pattern<HoleRef>, PatternError> {
        match self {
            SourceTree::Literal(json) => Ok(Pattern::Literal(json.clone())),
            SourceTree::Text(text) => parse_text(text),
            SourceTree::Table(members) => parse_object(members).map(Pattern::Object),
            SourceTree::List(items) => parse_list(items),
        }
    }

    /// Returns the value if it contains no hole: `{{` and `}}` are braces, `{_:null}` is null.
    ///
    /// # Errors
    ///
    /// Fails on a hole, with the key below this value.
    pub fn value(&self) -> Result<Json, PatternError> {
        let mut text = Vec::new();
        self.write(&mut text)?;
        Ok(Json::written(String::from_utf8_lossy(&text).into_owned()))
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), PatternError> {
        match self {
            SourceTree::Literal(json) => out.extend_from_slice(json.as_bytes()),
            SourceTree::Text(text) => {
                let Pattern::Literal(json) = parse_text(text)? else {
                    let what = "a value has no holes; write `{{` and `}}` for braces, and `{_:null}` for null";
                    return Err(PatternError::new(what));
                };
                out.extend_from_slice(json.as_bytes());
            }
            SourceTree::Table(members) => {
                out.push(b'{');
                for (index, (name, member)) in members.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"," } else { b"" });
                    encode(name, out);
                    out.push(b':');
                    let written = member.write(out);
                    written.map_err(|error| error.under_member(name))?;
                }
                out.push(b'}');
            }
            SourceTree::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"," } else { b"" });
                    let written = item.write(out);
                    written.map_err(|error| error.under(&format!("[{index}]")))?;
                }
                out.push(b']');
            }
        }
        Ok(())
    }
}

fn parse_text(text: &str) -> Result<Pattern<HoleRef>, PatternError> {
    let cut = tokens(text)?;
    Ok(match &cut[..] {
        [] => Pattern::Literal(Json::string("")),
        [Token::Text(text)] => Pattern::Literal(Json::string(text)),
        [Token::Hole(inside)] => {
            let mention = parse_mention(inside)?;
            if mention.name == "_" && mention.shape == Some(Shape::Null) {
                Pattern::Literal(Json::literal("null"))
            } else {
                Pattern::Hole(mention)
            }
        }
        _ => Pattern::Text(parse_parts(&cut)?),
    })
}

/// Converts tokens to text and holes. Holes must not touch, because the end of the first one would be ambiguous.
pub(crate) fn parse_parts(cut: &[Token]) -> Result<TextPattern<HoleRef>, PatternError> {
    let mut parts: Vec<TextPart<HoleRef>> = Vec::new();
    for token in cut {
        match token {
            Token::Text(text) => parts.push(TextPart::Text(text.clone())),
            Token::Hole(inside) => {
                let mention = parse_mention(inside)?;
                if let Some(TextPart::Hole(before)) = parts.last() {
                    return Err(PatternError::new(format!(
                        "the holes `{}` and `{}` touch, so the end of the first one is ambiguous; write text between them",
                        before.name, mention.name
                    )));
                }
                parts.push(TextPart::Hole(mention));
            }
        }
    }
    Ok(TextPattern { parts })
}

fn parse_object(members: &[(String, SourceTree)]) -> Result<ObjectPattern<HoleRef>, PatternError> {
    let mut known: Vec<(String, Pattern<HoleRef>)> = Vec::with_capacity(members.len());
    let mut others = None;
    for (name, member) in members {
        let under = |error: PatternError| error.under_member(name);
        if name == REST {
            others = Some(rest(member).map_err(under)?);
        } else if let Some((twin, _)) = known
            .iter()
            .find(|(known, _)| same_ignoring_case(known, name))
        {
            let what =
                format!("`{twin}` differs from it only in letter case, so no value could be read");
            return Err(PatternError::new(what).under_member(name));
        } else {
            known.push((name.clone(), member.parse().map_err(under)?));
        }
    }
    Ok(ObjectPattern::new(known, others))
}

/// Returns the hole of the unnamed members.
fn rest(member: &SourceTree) -> Result<HoleRef, PatternError> {
    let Ok(Pattern::Hole(mention)) = member.parse() else {
        return Err(PatternError::new(
            "the unnamed members are one hole: `\"...\" = \"{others}\"`",
        ));
    };
    plain_rest(mention)
}

fn plain_rest(mention: HoleRef) -> Result<HoleRef, PatternError> {
    if mention.is_bare() && matches!(mention.codec, Codec::Plain | Codec::Keys(_)) {
        Ok(mention)
    } else {
        Err(PatternError::new(format!(
            "the hole `{}` receives all unnamed values, maybe none; write its name alone",
            mention.name
        )))
    }
}

fn parse_list(items: &[SourceTree]) -> Result<Pattern<HoleRef>, PatternError> {
    if let [SourceTree::Text(star), item] = items
        && star == EACH
    {
        let item = item.parse().map_err(|error| error.under("[1]"))?;
        return Ok(Pattern::Each(EachPattern {
            item: Box::new(item),
            holes: Vec::new(),
        }));
    }
    if let [SourceTree::Text(sign), alternatives @ ..] = items
        && [ALTERNATIVES, FORMS].contains(&sign.as_str())
    {
        return parse_either(sign, alternatives).map(Pattern::Either);
    }
    let mut list = ListPattern {
        items: Vec::with_capacity(items.len()),
        rest: None,
    };
    for (index, item) in items.iter().enumerate() {
        let key = format!("[{index}]");
        let under = |error: PatternError| error.under(&key);
        let is_last = index + 1 == items.len();
        if *item == SourceTree::Text(EACH.to_owned()) {
            return Err(under(PatternError::new(
                "`\"*\"` is the first of two elements: `[\"*\", pattern]` matches any number of elements",
            )));
        }
        if let SourceTree::Text(sign) = item
            && [ALTERNATIVES, FORMS].contains(&sign.as_str())
        {
            return Err(under(PatternError::new(format!(
                "`\"{sign}\"` is the first element: `[\"{sign}\", p1, p2]` matches one of several patterns"
            ))));
        }
        match rest_name(item) {
            Some(inside) if is_last => {
                let mention = parse_mention(inside).and_then(plain_rest).map_err(under)?;
                if mention.codec != Codec::Plain {
                    return Err(under(PatternError::new(format!(
                        "`{{{inside}...}}` receives elements as they are; write its name alone"
                    ))));
                }
                list.rest = Some(mention);
            }
            Some(inside) => {
                return Err(under(PatternError::new(format!(
                    "`{{{inside}...}}` receives the remaining elements, so it must be the last one"
                ))));
            }
            None => list.items.push(item.parse().map_err(under)?),
        }
    }
    Ok(Pattern::List(list))
}

fn parse_either(
    sign: &str,
    alternatives: &[SourceTree],
) -> Result<EitherPattern<HoleRef>, PatternError> {
    if alternatives.len() < 2 || alternatives.len() > MOST_ALTERNATIVES {
        return Err(PatternError::new(format!(
            "`[\"{sign}\", …]` has from 2 to {MOST_ALTERNATIVES} patterns, not {}",
            alternatives.len()
        )));
    }
    let parsed = alternatives.iter().enumerate().map(|(index, tree)| {
        let parsed = tree.parse();
        parsed.map_err(|error| error.under(&format!("[{}]", index + 1)))
    });
    Ok(EitherPattern {
        choice: (sign == ALTERNATIVES)
            .then(|| Box::new(mention_named(CHOICE, HoleUse::Both, None))),
        alternatives: parsed.collect::<Result<_, _>>()?,
        plans: Vec::new(),
        order: Vec::new(),
    })
}

/// Returns the name inside `{rest...}`.
fn rest_name(item: &SourceTree) -> Option<&str> {
    let SourceTree::Text(text) = item else {
        return None;
    };
    text.strip_prefix('{')?.strip_suffix("...}")
}
