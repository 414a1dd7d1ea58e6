//! The declared order of rows.

use super::*;
use crate::outcome::RowOrder;
use crate::route::test_syntax::row;
use crate::translate::TranslateContext;
use dualgauge_patterns::pattern::{Bindings, HoleFacts};
use dualgauge_patterns::side::Side;

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

/// A row with a name and the names of the rows that come first.
struct Named {
    name: &'static str,
    after: &'static [&'static str],
    rest: &'static str,
    rpc: &'static str,
}

/// A response with an error and one with a warning; both fit a response with both members.
const FAILED: Named = Named {
    name: "failed",
    after: &[],
    rest: r#"{"status":200,"body":{"error":"{m:string}"}}"#,
    rpc: r#"{"code":-32000,"message":"{m}"}"#,
};
const WARNED: Named = Named {
    name: "warned",
    after: &[],
    rest: r#"{"status":200,"body":{"warning":"{w:string}"}}"#,
    rpc: r#"{"result":{"warning":"{w}"}}"#,
};

fn built(rows: &[Named]) -> Result<Outcomes, Vec<String>> {
    let rows = rows.iter().enumerate().map(|(index, named)| RowSource {
        order: RowOrder {
            name: Some(named.name.to_owned()),
            after: named.after.iter().map(|name| (*name).to_owned()).collect(),
        },
        ..row(index, named.rest, named.rpc)
    });
    Outcomes::build(rows.collect(), &HoleFacts::default(), ToolResult::Any)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn row_of(outcomes: &Outcomes, body: &str) -> Option<usize> {
    let reply = rest(200, "application/json", body);
    let answered = outcomes.rest_to_rpc(&reply, &Bindings::default(), LIMITS, TERMS);
    answered.unwrap().row
}

#[test]
fn rows_that_overlap_in_part_need_an_order() {
    let refused = built(&[FAILED, WARNED]).unwrap_err();
    assert!(
        refused[0].contains("neither is more specific"),
        "{refused:?}"
    );
    let both = r#"{"error":"e","warning":"w"}"#;
    let later = |row: Named, after| Named { after, ..row };
    for (rows, first) in [
        ([FAILED, later(WARNED, &["failed"])], 0),
        ([later(FAILED, &["warned"]), WARNED], 1),
    ] {
        let outcomes = built(&rows).unwrap();
        assert_eq!(row_of(&outcomes, both), Some(first));
        assert_eq!(row_of(&outcomes, r#"{"error":"e"}"#), Some(0));
        assert_eq!(row_of(&outcomes, r#"{"warning":"w"}"#), Some(1));
        for side in Side::ALL {
            assert_eq!(outcomes.hides(0, side).or(outcomes.hides(1, side)), None);
        }
    }
}

#[test]
fn the_order_precedes_specificity() {
    let narrow = Named {
        name: "narrow",
        after: &["failed"],
        rest: r#"{"status":200,"body":{"error":"{m:string}","code":7}}"#,
        rpc: r#"{"code":-32007,"message":"{m}"}"#,
    };
    let outcomes = built(&[narrow, FAILED]).unwrap();
    let body = r#"{"error":"e","code":7}"#;
    assert_eq!(row_of(&outcomes, body), Some(1));
    // The narrow row still writes the responses to REST clients.
    assert_eq!(outcomes.hides(0, Side::Rest), Some(1));
    assert_eq!(outcomes.hides(0, Side::Rpc), None);
}

#[test]
fn orders_that_cannot_hold_are_refused() {
    let later = |row: Named, after| Named { after, ..row };
    let wide = Named {
        name: "wide",
        after: &[],
        rest: r#"{"status":200,"body":"{_}"}"#,
        rpc: r#"{"result":null}"#,
    };
    let narrow = Named {
        name: "narrow",
        after: &["wide"],
        rest: r#"{"status":200,"body":{"error":"{m:string}","code":7}}"#,
        rpc: r#"{"code":-32007,"message":"{m}"}"#,
    };
    let twin = Named {
        name: "failed",
        ..later(WARNED, &["failed"])
    };
    for (rows, wanted) in [
        (
            vec![later(FAILED, &["other"]), WARNED],
            "no row of this table has the name `other`",
        ),
        (
            vec![later(FAILED, &["failed"]), WARNED],
            "the order has a cycle",
        ),
        (
            vec![later(FAILED, &["warned"]), later(WARNED, &["failed"])],
            "the order has a cycle",
        ),
        (vec![FAILED, twin], "another row has the name `failed`"),
        (vec![narrow, FAILED, wide], "name it in `after`, too"),
    ] {
        let errors = built(&rows).map(|_| ()).unwrap_err();
        assert!(
            errors.iter().any(|error| error.contains(wanted)),
            "{wanted}: {errors:?}"
        );
    }
}
