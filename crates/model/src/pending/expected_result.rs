//! `expect` of a login: the results with which a server says that the login has succeeded.
//!
//! Used by `pending` and `config`. A result is only matched, never kept: it may repeat the credentials.

use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    HoleFacts, HoleResolver, Pattern, PatternError, PatternReader, SourceTree, UnknownMembers,
};
use dualgauge_patterns::side::Side;

/// The pattern of the results of successful logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedResult {
    pattern: Pattern,
    holes: usize,
}

impl ExpectedResult {
    /// Compiles a pattern. Its holes only restrict types: nothing is written from them.
    ///
    /// # Errors
    ///
    /// Fails on an invalid pattern, with the key below the value.
    pub fn new(source: &SourceTree) -> Result<ExpectedResult, PatternError> {
        let pattern = source.pattern()?;
        let mut resolver = HoleResolver::default();
        // A hole must occur on both sides, and the login has one.
        for side in [Side::Rest, Side::Rpc] {
            resolver.pattern(side, &pattern)?;
        }
        let facts = resolver.finish(&HoleFacts::default())?;
        Ok(ExpectedResult {
            pattern: facts.resolve(Side::Rpc, &pattern)?,
            holes: facts.holes.len(),
        })
    }

    /// Returns true if the result matches. Members that the pattern does not name may be there, as in outcomes.
    pub(super) fn admits(&self, result: &Json, depth: u16) -> bool {
        let mut reader = PatternReader::new(self.holes, UnknownMembers::Open, depth);
        self.pattern.read(Some(result), &mut reader).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SourceTree {
        SourceTree::Text(text.to_owned())
    }

    fn table(members: &[(&str, SourceTree)]) -> SourceTree {
        let members = members.iter();
        SourceTree::Table(
            members
                .map(|(name, member)| ((*name).to_owned(), member.clone()))
                .collect(),
        )
    }

    #[test]
    fn results_match_as_in_outcomes() {
        let yes = SourceTree::Literal(Json::literal("true"));
        let success = table(&[("response_type", text("SUCCESS"))]);
        let token = table(&[("token", text("{token:string}"))]);
        let either = SourceTree::List(vec![text("{|}"), yes.clone(), success.clone()]);
        for (source, result, is_admitted) in [
            (&yes, "true", true),
            (&yes, "false", false),
            (&yes, "\"true\"", false),
            (&success, r#"{"user":{},"response_type":"SUCCESS"}"#, true),
            (&success, r#"{"response_type":"AUTH_ERR"}"#, false),
            (&success, "{}", false),
            (&success, "null", false),
            (&token, r#"{"token":"s3cret"}"#, true),
            (&token, r#"{"token":null}"#, false),
            (&token, r#"{"error":"bad key"}"#, false),
            (&either, "true", true),
            (&either, r#"{"response_type":"SUCCESS"}"#, true),
            (&either, "1", false),
        ] {
            let expected = ExpectedResult::new(source).unwrap();
            let json = Json::parse(result.as_bytes().to_vec().into(), 8).unwrap();
            assert_eq!(
                expected.admits(&json, 8),
                is_admitted,
                "{source:?} {result}"
            );
        }
    }

    #[test]
    fn holes_of_other_places_are_refused() {
        for wrong in ["{x", "{>x}", "{=x}", "{<x}"] {
            let member = table(&[("a", text(wrong))]);
            assert!(ExpectedResult::new(&member).is_err(), "{wrong}");
        }
    }
}
