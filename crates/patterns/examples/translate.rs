//! Translates a response in both directions with one pair of patterns: `cargo run --example translate`.

use std::error::Error;
use std::io::{Write, stdout};

use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    HoleFacts, HoleResolver, Pattern, PatternReader, PatternWriter, SourceTree, UnknownMembers,
    WriteScope,
};
use dualgauge_patterns::side::Side;

/// The maximum nesting depth of values.
const DEPTH: u16 = 64;

fn text(text: &str) -> SourceTree {
    SourceTree::Text(text.to_owned())
}

fn table<const N: usize>(members: [(&str, SourceTree); N]) -> SourceTree {
    SourceTree::Table(
        members
            .map(|(name, member)| (name.to_owned(), member))
            .into(),
    )
}

/// Reads a value with one pattern, and writes it with the other.
fn translate(
    holes: &HoleFacts,
    from: &Pattern,
    to: &Pattern,
    value: &Json,
) -> Result<Option<Json>, Box<dyn Error>> {
    let mut reader = PatternReader::new(holes.holes.len(), UnknownMembers::Refused, DEPTH);
    from.read(Some(value), &mut reader)?;
    let scope = WriteScope {
        bindings: &reader.bindings,
        call: None,
        now: String::new,
    };
    let written = to.pieces(&PatternWriter::new(scope), value.as_bytes().len())?;
    Ok(written.map(Json::sent))
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = table([("path", text("{path}")), ("size", text("{size:integer}"))]);
    let rest = table([("files", SourceTree::List(vec![text("*"), file]))]).pattern()?;
    let item = table([("name", text("{path}")), ("bytes", text("{size}"))]);
    let rpc = table([("items", SourceTree::List(vec![text("*"), item]))]).pattern()?;

    let mut resolver = HoleResolver::default();
    resolver.pattern(Side::Rest, &rest)?;
    resolver.pattern(Side::Rpc, &rpc)?;
    let holes = resolver.finish(&HoleFacts::default())?;
    let rest = holes.resolve(Side::Rest, &rest)?;
    let rpc = holes.resolve(Side::Rpc, &rpc)?;

    let body = br#"{"files":[{"path":"a.rs","size":12},{"size":0,"path":"b.rs"}]}"#;
    let body = Json::parse(body.as_slice().into(), DEPTH)?;
    let Some(result) = translate(&holes, &rest, &rpc, &body)? else {
        return Err("the pattern wrote nothing".into());
    };
    stdout().write_all(result.as_bytes())?;
    writeln!(stdout())?;
    let Some(body) = translate(&holes, &rpc, &rest, &result)? else {
        return Err("the pattern wrote nothing".into());
    };
    stdout().write_all(body.as_bytes())?;
    writeln!(stdout())?;
    Ok(())
}
