//! Differences that no outcome row can remove, and the rule that may fit. Used by `proposal`.

use crate::compare::Kind;

/// A field that differs in the responses to some calls of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DifferingField {
    /// The path under which `ignore` would skip it.
    pub field: String,
    /// The number of calls.
    pub calls: u64,
    /// The kind of the first difference.
    pub(super) kind: String,
    pub(super) control: String,
    pub(super) candidate: String,
}

/// The reason why no row removes a difference, and a comparison rule that would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldAdvice {
    /// The reason.
    pub why: String,
    /// A key of `compare` of the route, as TOML, and the condition under which it fits.
    pub rule: Option<(String, &'static str)>,
}

impl DifferingField {
    /// Returns the advice on this field.
    #[must_use]
    pub fn advice(&self) -> FieldAdvice {
        let list = |key: &str| format!("compare.{key} = [{}]", crate::import::quoted(&self.field));
        let ignore = |when| Some((list("ignore"), when));
        let (control, candidate) = (&self.control, &self.candidate);
        let numbers = (control.parse::<f64>(), candidate.parse::<f64>());
        let (why, rule) = match (Kind::parse(&self.kind), numbers) {
            (Some(Kind::Order), _) => (
                "the elements have another order; a row does not sort".to_owned(),
                Some((list("unordered"), "if the order has no meaning")),
            ),
            (Some(Kind::Length), _) => (
                format!("{control} and {candidate}: a row does not add elements"),
                ignore("if clients do not read the list"),
            ),
            (Some(Kind::Missing), _) => (
                "only the control has it, and the other server sends nothing in its place".to_owned(),
                ignore("if clients do not read it"),
            ),
            (Some(Kind::Extra), _) => (
                "only the candidate has it; a row names the members that it writes".to_owned(),
                ignore("if clients accept further members"),
            ),
            (Some(Kind::Type), _) => (
                format!("{control} and {candidate}: a row does not change types"),
                None,
            ),
            (Some(Kind::Value), (Ok(one), Ok(two))) if one.is_finite() && two.is_finite() => {
                let distance = serde_json::json!((one - two).abs() * 2.0);
                let path = crate::import::quoted(&self.field);
                (
                    format!("{control} and {candidate}: a row does not calculate"),
                    Some((
                        format!("compare.tolerance = {{ {path} = {distance} }}"),
                        "if the precision has no meaning",
                    )),
                )
            }
            (Some(Kind::Value), _) => (
                "the values differ; a row moves values and does not change them".to_owned(),
                ignore("if the value changes with each response, such as a time"),
            ),
            (Some(Kind::Header), _) => (
                "a row writes a header only from a value of the other response: `headers` of `rest`"
                    .to_owned(),
                ignore("if clients do not read it"),
            ),
            (Some(Kind::Status | Kind::Code), _) => (
                format!("{control} and {candidate}: no proposed row explains it"),
                None,
            ),
            (None, _) => ("the report has no sample of it".to_owned(), None),
        };
        FieldAdvice { why, rule }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(kind: &str, control: &str, candidate: &str) -> FieldAdvice {
        DifferingField {
            field: "/body/items/*/price".to_owned(),
            calls: 3,
            kind: kind.to_owned(),
            control: control.to_owned(),
            candidate: candidate.to_owned(),
        }
        .advice()
    }

    #[test]
    fn each_kind_of_a_difference_has_a_reason_and_a_rule_where_one_fits() {
        let rule = |kind, control, candidate| {
            let advice = advice(kind, control, candidate);
            assert!(!advice.why.is_empty());
            advice.rule.map(|(rule, _)| rule)
        };
        assert_eq!(
            rule("value", "1.25", "1.5").as_deref(),
            Some(r#"compare.tolerance = { "/body/items/*/price" = 0.5 }"#)
        );
        assert_eq!(
            rule("order", "array of 3", "array of 3").as_deref(),
            Some(r#"compare.unordered = ["/body/items/*/price"]"#)
        );
        assert_eq!(
            rule("missing", "1", "absent").as_deref(),
            Some(r#"compare.ignore = ["/body/items/*/price"]"#)
        );
        for kind in Kind::ALL {
            advice(kind.as_str(), "string of 3 #1", "string of 3 #2");
        }
        assert_eq!(rule("type", "1", "string of 1 #3"), None);
    }
}
