use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Returns the tree of a JSON value.
fn tree(value: &Value) -> SourceTree {
    match value {
        Value::String(text) => SourceTree::Text(text.clone()),
        Value::Object(members) => {
            let members = members.iter();
            SourceTree::Table(
                members
                    .map(|(name, value)| (name.clone(), tree(value)))
                    .collect(),
            )
        }
        Value::Array(elements) => SourceTree::List(elements.iter().map(tree).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            SourceTree::Literal(Json::written(value.to_string().into_bytes()))
        }
    }
}

fn source(result: Option<Value>, params: &Value, unsubscribe: Option<Value>) -> SubscriptionSource {
    SubscriptionSource {
        result: result.as_ref().map(tree),
        method: "eth_subscription".to_owned(),
        params: Some(tree(params)),
        unsubscribe: "eth_unsubscribe".to_owned(),
        unsubscribe_params: unsubscribe.as_ref().map(tree),
    }
}

fn parsed(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), 64).unwrap()
}

fn params_text(rule: &SubscriptionRule, id: &SubscriptionId) -> String {
    String::from_utf8(rule.unsubscribe_params(id).into_bytes().to_vec()).unwrap()
}

#[test]
fn the_id_and_the_event_are_found_where_the_rule_says() {
    let params = json!({ "subscription": "{id}", "result": "{event}" });
    let rule = SubscriptionRule::new(&source(None, &params, None)).unwrap();
    let id = rule.id_of_result(&parsed("\"0x1\"")).unwrap();
    let notified = r#"{"subscription":"0x1","result":{"number" : 1.0}}"#;
    assert_eq!(rule.id_of_params(&parsed(notified)), Some(id.clone()));
    let message = format!(r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{notified}}}"#);
    let event = rule.event(message.into(), 64).unwrap();
    assert_eq!(event.as_bytes(), br#"{"number" : 1.0}"#);
    assert_eq!(params_text(&rule, &id), r#"["0x1"]"#);
    for no_id in ["null", "true", "{}", "[1]"] {
        assert_eq!(rule.id_of_result(&parsed(no_id)), None, "{no_id}");
    }
    let long = format!("\"{}\"", "x".repeat(LONGEST_ID));
    assert_eq!(rule.id_of_result(&parsed(&long)), None);
    assert_eq!(rule.id_of_params(&parsed(r#"{"result":1}"#)), None);
}

#[test]
fn ids_lie_deep_and_unsubscribe_takes_other_members() {
    let result = json!({ "state": ["{id}"] });
    let params = json!(["{event}", { "of": "{id}" }]);
    let unsubscribe = json!({ "id": "{id}", "why": "gone", "now": true });
    let rule = SubscriptionRule::new(&source(Some(result), &params, Some(unsubscribe))).unwrap();
    let id = rule.id_of_result(&parsed(r#"{"state":[7]}"#)).unwrap();
    assert_eq!(
        rule.id_of_params(&parsed(r#"[1,{"of":7}]"#)),
        Some(id.clone())
    );
    assert_ne!(
        rule.id_of_params(&parsed(r#"[1,{"of":"7"}]"#)),
        Some(id.clone())
    );
    assert_eq!(
        params_text(&rule, &id),
        r#"{"id":7,"now":true,"why":"gone"}"#
    );
}

#[test]
fn a_declaration_without_the_places_is_refused() {
    let params = json!({ "subscription": "{id}", "result": "{event}" });
    let fails = |result: Option<Value>, params: &Value, unsubscribe: Option<Value>| {
        let error = SubscriptionRule::new(&source(result, params, unsubscribe)).unwrap_err();
        format!("{}: {}", error.key, error.what)
    };
    assert_eq!(
        fails(Some(json!({})), &params, None),
        "result: `{id}` is missing"
    );
    assert!(fails(Some(json!(["{id}", "{event}"])), &params, None).contains("no event"));
    let twice = fails(
        None,
        &json!({ "a": "{id}", "b": "{id}", "c": "{event}" }),
        None,
    );
    assert_eq!(
        twice,
        "notification.params: `{id}` is written twice; write it once"
    );
    let other = fails(
        None,
        &json!({ "a": "x", "b": "{id}", "c": "{event}" }),
        None,
    );
    assert!(other.starts_with("notification.params.a: "), "{other}");
    assert_eq!(
        fails(None, &params, Some(json!([]))),
        "unsubscribe.params: `{id}` is missing"
    );
    assert!(fails(None, &params, Some(json!("{id}"))).contains("a list or a table"));
}

proptest! {
    /// Notifications of a subscription name it, whatever the id and the event are.
    #[test]
    fn a_notification_has_the_id_of_its_result(
        id in prop_oneof![any::<u64>().prop_map(Value::from), "\\PC{0,20}".prop_map(Value::from)],
        event in any::<Vec<Option<String>>>(),
        other in any::<u64>(),
    ) {
        let params = json!({ "subscription": "{id}", "result": "{event}" });
        let rule = SubscriptionRule::new(&source(None, &params, None)).unwrap();
        let opened = rule.id_of_result(&parsed(&id.to_string())).unwrap();
        let notified = json!({ "subscription": id, "result": event });
        prop_assert_eq!(rule.id_of_params(&parsed(&notified.to_string())), Some(opened.clone()));
        let message = json!({ "method": "m", "params": notified }).to_string();
        let found: Value = serde_json::from_slice(rule.event(message.into(), 64).unwrap().as_bytes()).unwrap();
        prop_assert_eq!(found, json!(event));
        let ended: Value = serde_json::from_str(&params_text(&rule, &opened)).unwrap();
        prop_assert_eq!(ended, json!([id]));
        let is_same = id == json!(other);
        let others = rule.id_of_result(&parsed(&other.to_string()));
        prop_assert_eq!(others == Some(opened), is_same);
    }
}
