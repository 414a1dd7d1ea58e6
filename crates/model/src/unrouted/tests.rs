//! Tests of calls without a route.

use proptest::prelude::*;

use super::*;

fn report(calls: &UnroutedCalls) -> UnroutedReport {
    calls.clone().report()
}

fn counted(calls: &[&str]) -> UnroutedCalls {
    let mut found = UnroutedCalls::default();
    for call in calls {
        let (method, target) = call.split_once(' ').unwrap();
        let (path, query) = target.split_once('?').unzip();
        let path = path.unwrap_or(target);
        found.count(method, path, query, Timestamp::from_unix(7));
    }
    found
}

fn lines(calls: &UnroutedCalls) -> Vec<String> {
    let paths = report(calls).paths.into_iter();
    let line = |path: UnroutedPath| format!("{} {} {}", path.method, path.path, path.calls);
    paths.map(line).collect()
}

#[test]
fn ids_are_placeholders_and_values_of_the_query_are_not_kept() {
    let calls = counted(&[
        "GET /users/7/orders/a1b2c3?page=2&q=secret",
        "GET /users/8/orders/x9y8z7?page=3",
        "GET /users/alice%40example.com/orders/1",
        "GET /v1/health",
        "POST /v1/health/",
        "GET /reset?eyJhbGciOiJIUzI1NiJ9=1&0193f1c0-aaaa=2",
        "TRACE /v1/health",
        "GET //x",
    ]);
    assert_eq!(
        lines(&calls),
        [
            "GET /reset 1",
            "GET /users/{integer}/orders/{string} 2",
            "GET /users/{string}/orders/{integer} 1",
            "GET /v1/health 1",
            "POST /v1/health/ 1",
        ]
    );
    let report = report(&calls);
    assert_eq!(report.more, 2);
    let query = &report.paths[1].query;
    assert_eq!((query["page"], query["q"]), (2, 1));
    assert!(report.paths[0].query.is_empty());
    assert_eq!(
        report.paths[0].last.as_deref(),
        Some("1970-01-01T00:00:07Z")
    );
}

#[test]
fn a_full_table_merges_many_words_and_counts_the_rest() {
    let mut calls = UnroutedCalls::default();
    let word = |number: usize| -> String {
        let letter = |digit: usize| char::from(b'a' + (digit % 26) as u8);
        [letter(number / 676), letter(number / 26), letter(number)]
            .iter()
            .collect()
    };
    let at = Timestamp::from_unix(1);
    for number in 0..3 * ENTRIES {
        calls.count("GET", &format!("/users/{}", word(number)), None, at);
    }
    assert_eq!(
        lines(&calls),
        [format!("GET /users/{{string}} {}", 3 * ENTRIES)]
    );
    // Words of different depths are no values of one place.
    let mut scanned = UnroutedCalls::default();
    for number in 0..3 * ENTRIES {
        let path: String = (0..=number % 20).map(|_| "/x").collect();
        let path = format!("{path}/{}{}", word(number / 11), "/y".repeat(number % 3));
        scanned.count("GET", &path, None, at);
    }
    assert!(scanned.entries.len() <= ENTRIES);
    let kept = report(&scanned);
    let counted: u64 = kept.paths.iter().map(|path| path.calls).sum();
    assert_eq!(counted + kept.more, 3 * ENTRIES as u64);
}

#[test]
fn the_calls_left_out_by_workers_are_those_of_each_and_not_those_of_their_sum() {
    let path = |number: usize| "/x".repeat(number % 24) + &"/y".repeat(23 - number % 24);
    let mut full = UnroutedCalls::default();
    let at = Timestamp::from_unix(1);
    for number in 0..ENTRIES {
        let method = METHODS[number / 24 % METHODS.len()];
        let end = ["/a", "/b", "/c", "/d", "/e"][number / 120];
        full.count(method, &format!("{}{end}", path(number)), None, at);
    }
    full.count("OPTIONS", "/x", None, at);
    full.count("GET", "//", None, at);
    assert_eq!((full.entry_count(), full.left_out()), (ENTRIES, 2));
    let other = counted(&["GET /other", "GET /more", "HEAD /more", "GET /other"]);
    full.merge(&other);
    assert_eq!((full.entry_count(), full.left_out()), (ENTRIES, 3));
    assert_eq!(report(&full).more, 6);
    // The last call counts too, and once.
    let mut other = counted(&["HEAD /more", "HEAD /more"]);
    assert_eq!(other.left_out(), 2);
    full.merge(&other);
    assert_eq!(full.left_out(), 5);
    other.count("GET", "/more", None, at);
    assert_eq!(other.left_out(), 2);
}

#[test]
fn names_and_tokens_of_letters_are_not_kept() {
    for name in [
        "alice.smith",
        "anna42",
        "dGVzdA",
        "aBcDeF",
        "eyJhbGciOiJI",
        "abcdefghijklmnopqrstuvwxyz",
        "~anna",
    ] {
        let calls = counted(&[&format!("GET /users/{name}")]);
        assert_eq!(lines(&calls), ["GET /users/{string} 1"], "{name}");
    }
    for word in [
        "v1",
        "v10",
        "oauth2",
        "Users",
        "getItems",
        "GetOrderItems",
        "line-items",
        "URL",
        "userID",
        "line_items",
        "report.json",
        "s3",
        "v1.2",
        "me",
    ] {
        let calls = counted(&[&format!("GET /api/{word}")]);
        assert_eq!(lines(&calls), [format!("GET /api/{word} 1")], "{word}");
    }
    let token = "a".repeat(40);
    let calls = counted(&[&format!(
        "GET /a?{token}=1&dGVzdA=1&page_size=2&filter[createdAt]=3"
    )]);
    let names = report(&calls).paths.remove(0).query.into_keys();
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["filter[createdAt]", "page_size"]
    );
}

#[test]
fn few_words_are_merged_where_other_calls_show_that_the_place_varies() {
    let few = ["GET /users/anna", "GET /users/bob", "GET /users/carol"];
    let with = |other| lines(&counted(&[few[0], few[1], few[2], other]));
    assert_eq!(
        with("POST /users"),
        ["GET /users/{string} 3", "POST /users 1"]
    );
    assert_eq!(
        with("GET /users/7"),
        ["GET /users/{integer} 1", "GET /users/{string} 3"]
    );
    // Parts of one resource and collections of an API are no values.
    let parts = [
        "GET /a/7",
        "GET /a/7/orders",
        "GET /a/7/profile",
        "GET /a/7/settings",
    ];
    assert_eq!(lines(&counted(&parts)).len(), 4);
    assert_eq!(with("GET /users/dave").len(), 4);
    assert_eq!(
        lines(&counted(&[
            "GET /api",
            "GET /api/a",
            "GET /api/b",
            "GET /api/c"
        ]))
        .len(),
        4
    );
}

#[test]
fn attempts_to_make_room_are_rare_even_if_they_succeed() {
    let mut calls = UnroutedCalls::default();
    let at = Timestamp::from_unix(1);
    let letters = |number: usize| -> String {
        let letter = |digit: usize| char::from(b'a' + (digit % 26) as u8);
        [letter(number / 676), letter(number / 26), letter(number)]
            .iter()
            .collect()
    };
    let mut attempts = 0;
    let total = 40 * ENTRIES;
    for number in 0..total {
        let before = calls.entries.len();
        // Each group of twelve makes room for eleven if it is merged.
        let path = format!(
            "/{}/{}",
            letters(number / VARYING),
            letters(number % VARYING)
        );
        calls.count("GET", &path, None, at);
        attempts += usize::from(calls.entries.len() < before);
    }
    assert!(attempts > 0);
    assert!(attempts <= total / ATTEMPT as usize, "{attempts}");
}

#[test]
fn workers_add_up() {
    let mut one = counted(&["GET /a?x=1", "GET /b"]);
    one.merge(&counted(&["GET /a?x=1&y=2", "PUT /b"]));
    assert_eq!(lines(&one), ["GET /a 2", "GET /b 1", "PUT /b 1"]);
    assert_eq!(report(&one).paths[0].query["x"], 2);
}

proptest! {
    #[test]
    fn no_target_panics_and_every_call_is_counted(
        targets in prop::collection::vec("(/|[a-z0-9%{}.]|é){0,30}", 0..20)
    ) {
        let mut calls = UnroutedCalls::default();
        for target in &targets {
            calls.count("GET", target, Some(target), Timestamp::from_unix(1));
        }
        let report = report(&calls);
        let counted: u64 = report.paths.iter().map(|path| path.calls).sum();
        prop_assert_eq!(counted + report.more, targets.len() as u64);
    }
}
