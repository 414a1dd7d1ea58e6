//! The hole that tells sessions apart.

use super::*;
use dualgauge_patterns::pattern::SourceTree;

#[test]
fn the_hole_of_affinity_is_shared_and_known_before_the_decision() {
    let affinity = |name: &str, from: Option<Side>| {
        let mut route = source("r", "POST /chats/{chat}?as={who}", "m");
        route.body = Some(SourceTree::Table(vec![
            ("text".into(), SourceTree::Text("{text}".into())),
            ("note".into(), SourceTree::Text("{_}".into())),
        ]));
        let params = ["chat", "who", "text"]
            .map(|hole| (hole.into(), SourceTree::Text(format!("{{{hole}}}"))));
        route.params = Some(SourceTree::Table(params.into()));
        route.affinity = Some(name.into());
        route.from = from;
        let route = parse_route(route).map_err(|errors| errors[0].to_string())?;
        Ok::<_, String>(
            route
                .affinity
                .map(|hole| route.facts.holes[hole].name.clone()),
        )
    };
    for name in ["chat", "who"] {
        assert_eq!(affinity(name, None), Ok(Some(name.to_owned())));
    }
    assert!(
        affinity("text", None)
            .unwrap_err()
            .contains("read only from the body")
    );
    assert_eq!(
        affinity("text", Some(Side::Rpc)),
        Ok(Some("text".to_owned()))
    );
    assert!(
        affinity("chats", None)
            .unwrap_err()
            .contains("is not a hole")
    );
}
