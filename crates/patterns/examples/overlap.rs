//! Tells whether two patterns can match the same value, and prints such a value: `cargo run --example overlap`.

use std::error::Error;
use std::io::{Write, stdout};

use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    HoleFacts, HoleResolver, MemberPolicy, Pattern, SourceTree, intersection, within,
};
use dualgauge_patterns::side::Side;

/// Returns the pattern of an object with one member.
fn object(name: &str, value: &str) -> Result<Pattern, Box<dyn Error>> {
    let value = SourceTree::Text(value.to_owned());
    let source = SourceTree::Table(vec![(name.to_owned(), value)]).pattern()?;
    let mut holes = HoleResolver::default();
    holes.pattern(Side::Rest, &source)?;
    holes.pattern(Side::Rpc, &source)?;
    let holes = holes.finish(&HoleFacts::default())?;
    Ok(holes.resolve(Side::Rest, &source)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let any = object("kind", "{kind}")?;
    let one = object("kind", "user")?;
    let other = object("kind", "group")?;

    assert!(within(&one, &any, MemberPolicy::Closed));
    assert!(!within(&any, &one, MemberPolicy::Closed));
    assert!(intersection(&one, &other, MemberPolicy::Closed).is_none());
    let both = intersection(&one, &any, MemberPolicy::Closed);
    assert_eq!(both, Some(Json::literal(r#"{"kind":"user"}"#)));

    if let Some(both) = both {
        stdout().write_all(both.as_bytes())?;
        writeln!(stdout())?;
    }
    Ok(())
}
