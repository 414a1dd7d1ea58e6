//! The laws of outcome rows, over generated ones.

use super::*;
use crate::outcome::{RowOrder, compare};
use crate::translate::TranslateContext;
use dualgauge_patterns::json::JsonKind;
use dualgauge_patterns::pattern::arbitrary::{Dice, thrown};
use dualgauge_patterns::pattern::{Bindings, HoleFacts, SourceTree};
use dualgauge_patterns::side::Side;

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

fn text(text: impl Into<String>) -> SourceTree {
    SourceTree::Text(text.into())
}

fn number(number: &'static str) -> SourceTree {
    SourceTree::Literal(Json::literal(number))
}

fn table(members: Vec<(&str, SourceTree)>) -> SourceTree {
    let members = members.into_iter();
    SourceTree::Table(
        members
            .map(|(name, tree)| (name.to_owned(), tree))
            .collect(),
    )
}

/// A row of a small world in which many fit the same answers: status and code, a tag, a message, some data.
fn failing(index: usize, dice: &mut Dice) -> RowSource {
    let (status, code) = match dice.below(6) {
        0 => (text("{s:integer}"), text("{s:integer}")),
        1 => (
            SourceTree::List(vec![number("500"), text("5xx")]),
            SourceTree::List(vec![number("-32603"), number("-32000")]),
        ),
        2 => (number("404"), number("-32001")),
        3 => (number("409"), number("-32001")),
        4 => (number("404"), number("-32602")),
        _ => (number("503"), number("-32603")),
    };
    let mut body = Vec::new();
    let mut data = Vec::new();
    match dice.below(4) {
        0 => {
            body.push(("tag", text("A")));
            data.push(("kind", text("A")));
        }
        1 => {
            body.push(("tag", text("{t:enum(A|B)}")));
            data.push(("kind", text("{t}")));
        }
        _ => {}
    }
    let (template, message) = match dice.below(4) {
        0 => ("{m}", "E: {m}"),
        1 => ("no {m}", "{m}"),
        _ => ("{m}", "{m}"),
    };
    body.push(("message", text(template)));
    match dice.below(4) {
        0 => {
            body.push(("more", text("{d?}")));
            data.push(("more", text("{d?}")));
        }
        1 => {
            body.push(("...", text("{others}")));
            data.push(("...", text("{others}")));
        }
        _ => {}
    }
    RowSource {
        key: format!("route[0].outcome[{index}]"),
        origin: 0,
        order: RowOrder::default(),
        rest: RestReplySource {
            rest_protocol: Default::default(),
            status,
            headers: Vec::new(),
            body: Some(table(body)),
            text: None,
        },
        rpc: RpcReplySource::Error {
            code,
            message: Some(text(message)),
            data: (!data.is_empty()).then(|| table(data)),
        },
        lossy: None,
    }
}

fn built(rows: Vec<RowSource>) -> Option<Outcomes> {
    Outcomes::build(rows, &HoleFacts::default(), ToolResult::Any).ok()
}

fn some_rest(dice: &mut Dice) -> RestReply {
    let status = [404, 409, 500, 503, 502, 418][dice.below(6)];
    let tag = dice.pick(&["", r#""tag":"A","#, r#""tag":"B","#]);
    let message = dice.pick(&["no x", "x", "E: x", ""]);
    let more = dice.pick(&["", r#","more":[1.0]"#, r#","zzz":1"#]);
    rest(
        status,
        "application/json",
        &format!(r#"{{{tag}"message":"{message}"{more}}}"#),
    )
}

fn some_error(dice: &mut Dice) -> ErrorObject {
    let code = [-32001, -32602, -32603, -32000, 404, 7][dice.below(6)];
    let message = dice.pick(&["no x", "x", "E: x", ""]);
    let data = [
        None,
        Some(r#"{"kind":"A"}"#),
        Some(r#"{"kind":"B","more":[1.0]}"#),
        Some(r#"{"more":null}"#),
        Some(r#"{"kind":"A","zzz":1}"#),
        Some("7"),
    ][dice.below(6)];
    ErrorObject {
        code,
        message: Json::string(message),
        data: data.map(Json::literal),
    }
}

fn to_rpc(outcomes: &Outcomes, reply: &RestReply) -> (RpcAnswer, Option<usize>) {
    let answered = outcomes.rest_to_rpc(reply, &Bindings::default(), LIMITS, TERMS);
    let answered = answered.unwrap();
    (answered.answer, answered.row)
}

fn to_rest(outcomes: &Outcomes, error: &ErrorObject) -> (RestAnswer, Option<usize>) {
    let reply = ResponseReply::Error(error.clone());
    let answered = outcomes.rpc_to_rest(reply, &Bindings::default(), TERMS);
    (answered.answer, answered.row)
}

fn key(outcomes: &Outcomes, row: Option<usize>) -> Option<&str> {
    row.map(|row| outcomes.rows()[row].key.as_str())
}

/// The row that the other table took, or one that fits the very same answers.
fn same_row(outcomes: &Outcomes, rows: [Option<&str>; 2], side: Side) -> bool {
    let find = |key: &str| outcomes.rows().iter().find(|row| row.key == key);
    match rows.map(|key| key.and_then(find)) {
        [Some(one), Some(other)] => {
            one.key == other.key
                || (compare::within(one, other, side) && compare::within(other, one, side))
        }
        [None, None] => true,
        [Some(_), None] | [None, Some(_)] => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_chosen_row_depends_on_the_order_only_among_equals(mut dice in thrown(40..120)) {
        let rows: Vec<RowSource> = (0..2 + dice.below(3)).map(|index| failing(index, &mut dice)).collect();
        let mut turned = rows.clone();
        turned.reverse();
        let (one, other) = (built(rows), built(turned));
        // Among equals the first is chosen, so the order decides which of them is never used.
        let (Some(one), Some(other)) = (one, other) else { return Ok(()) };
        for _ in 0..6 {
            let reply = some_rest(&mut dice);
            let rows = [&one, &other].map(|outcomes| key(outcomes, to_rpc(outcomes, &reply).1));
            prop_assert!(same_row(&one, rows, Side::Rest), "{reply:?}: {rows:?} {:#?}", one.rows());
            let error = some_error(&mut dice);
            let rows = [&one, &other].map(|outcomes| key(outcomes, to_rest(outcomes, &error).1));
            prop_assert!(same_row(&one, rows, Side::Rpc), "{error:?}: {rows:?} {:#?}", one.rows());
        }
    }

    #[test]
    fn rows_are_tried_in_the_declared_order_and_more_specific_ones_first(mut dice in thrown(40..120)) {
        let mut rows: Vec<RowSource> = (0..2 + dice.below(3)).map(|index| failing(index, &mut dice)).collect();
        for (index, row) in rows.iter_mut().enumerate() {
            row.order.name = Some(index.to_string());
            // A row comes after some of those before it, so that there is no cycle.
            row.order.after = (0..index).filter(|_| dice.below(2) == 0).map(|front| front.to_string()).collect();
        }
        let declared: Vec<RowOrder> = rows.iter().map(|row| row.order.clone()).collect();
        let Some(outcomes) = built(rows) else { return Ok(()) };
        let rows = outcomes.rows();
        let is_after = |back: usize, front: usize| declared[back].after.contains(&front.to_string());
        for side in Side::ALL {
            let order = outcomes.order(side);
            let place = |row: usize| order.iter().position(|index| *index == row).unwrap();
            for (one, other) in (0..rows.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
                if is_after(one, other) {
                    prop_assert!(place(other) < place(one), "{order:?} {declared:?}");
                    continue;
                }
                // Without any declared order, the more specific row comes first.
                let fronts: usize = declared.iter().map(|order| order.after.len()).sum();
                let narrower = compare::within(&rows[one], &rows[other], side) && !compare::within(&rows[other], &rows[one], side);
                if fronts == 0 && narrower {
                    prop_assert!(place(one) < place(other), "{order:?}");
                }
            }
        }
    }

    #[test]
    fn an_error_that_a_row_names_completely_survives_the_round_trip(mut dice in thrown(40..120)) {
        let Some(outcomes) = built(vec![failing(0, &mut dice)]) else { return Ok(()) };
        for _ in 0..6 {
            let error = some_error(&mut dice);
            let (there, row) = to_rest(&outcomes, &error);
            if let Some(row) = row {
                prop_assert_eq!(there.status, match error.code { 404 => 404, _ => there.status });
                let (back, again) = to_rpc(&outcomes, &sent(there.clone()));
                prop_assert_eq!(again, Some(row), "{:?} became {:?}", error, there);
                let RpcAnswer::Error(back) = back else { panic!("{back:?}") };
                prop_assert_eq!(&back.message, &error.message);
                // A list of codes has one that is written; a member that the row does not name is dropped.
                prop_assert!(back.code == error.code || [-32603, -32000].contains(&error.code));
                for name in ["kind", "more"] {
                    let member = |error: &ErrorObject| error.data.as_ref().and_then(|data| data.member(name));
                    let (first, second) = (member(&error), member(&back));
                    prop_assert!(second.is_none() || first == second, "{:?} {:?}", error, back);
                }
                // What has been there and back stays.
                let (third, _) = to_rest(&outcomes, &back);
                prop_assert_eq!(third, there);
            } else {
                let (back, again) = to_rpc(&outcomes, &sent(there));
                prop_assert!(again.is_none());
                prop_assert_eq!(back, RpcAnswer::Error(error));
            }
            let reply = some_rest(&mut dice);
            let (there, row) = to_rpc(&outcomes, &reply);
            let RpcAnswer::Error(error) = &there else { panic!("{there:?}") };
            let (back, again) = to_rest(&outcomes, error);
            prop_assert!(row.is_none() || row == again, "{reply:?} became {there:?}");
            if row != again {
                // What the built-in table has written is an error like others to the rows of the route.
                continue;
            }
            let is_listed = reply.status >= 500;
            prop_assert!(back.status == reply.status || is_listed, "{reply:?} became {back:?}");
            let body = Json::parse(back.body.into_bytes(), 128).unwrap();
            let sent = Json::parse(reply.body.clone(), 128).unwrap();
            prop_assert_eq!(body.member("message"), sent.member("message"));
        }
    }

    #[test]
    fn no_answer_makes_a_row_panic(
        mut dice in thrown(40..120),
        status in 100_u16..700,
        kind in "(application/json|text/plain|)",
        body in proptest::collection::vec(any::<u8>(), 0..40),
        code in any::<i64>(),
        message in any::<String>(),
    ) {
        let rows: Vec<RowSource> = (0..1 + dice.below(3)).map(|index| failing(index, &mut dice)).collect();
        let Some(outcomes) = built(rows) else { return Ok(()) };
        let json = Json::parse(body.clone().into(), 128).ok();
        let mut reply = rest(status, &kind, "");
        reply.body = Bytes::from(body);
        let _ = outcomes.rest_to_rpc(&reply, &Bindings::default(), LIMITS, TERMS);
        let data = json.filter(|json| json.kind() == JsonKind::Object);
        let error = ErrorObject { code, message: Json::string(&message), data: data.clone() };
        let _ = to_rest(&outcomes, &error);
        let result = ResponseReply::Result(data.unwrap_or(Json::literal("null")));
        let _ = outcomes.rpc_to_rest(result, &Bindings::default(), TERMS);
    }
}
