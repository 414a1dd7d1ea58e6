//! Edits and changes of documents are both in the merged table, or reported.

use proptest::prelude::*;
use toml::Table;

use super::*;

const BASE: &str = r#"# A draft of a route table, made by `dualgauge import` from
#   api.json

# paired: the operationId is the name
[[route]]
name = "pets.get"
rest = "GET /pets/{id}"
rpc = "pets.get"

# look: check this
[[route]]
name = "pets.add"
rest = "POST /pets"
rpc = "pets.add"
params = { name = "{name}" }
[[route.outcome]]
rest = { status = 201 }
rpc = { result = "{_:null}" }

[[route]]
name = "pets.old"
rest = "GET /old"
rpc = "pets.old"

# No route:
#   POST /photo: its body is an image
"#;

const NEW: &str = r#"# A draft of a route table, made by `dualgauge import` from
#   api-2.json

# paired: the operationId is the name
[[route]]
name = "pets.get"
rest = "GET /pets/{id}?full={full?}"
rpc = "pets.get"

# look: `age` is new
[[route]]
name = "pets.add"
rest = "POST /pets"
rpc = "pets.add"
effect = "idempotent"
params = { name = "{name}", age = "{age?}" }
[[route.outcome]]
rest = { status = 202 }
rpc = { result = "{_:null}" }

[[route]]
name = "pets.find"
rest = "GET /find"
rpc = "pets.find"
"#;

#[test]
fn an_unchanged_draft_changes_nothing() {
    let edited = BASE
        .replace("pets.get", "mine")
        .replace("# look: check this\n", "# checked\n")
        .replace(
            "rest = \"GET /old\"",
            "timeout = '1s' # slow\nrest = \"GET /old\"",
        );
    let (text, report) = merge(BASE, &edited, BASE);
    assert_eq!(text, edited);
    assert_eq!(report, RefreshReport::default());
}

#[test]
fn an_unedited_table_becomes_the_new_draft() {
    let (text, report) = merge(BASE, BASE, NEW);
    assert_eq!(text, NEW);
    assert_eq!((report.changed, report.added, report.removed), (2, 1, 1));
    assert_eq!(report.conflicts, Vec::<String>::new());
}

#[test]
fn edits_and_changes_of_different_parts_are_both_in_the_table() {
    let edited = BASE
        .replace(
            "name = \"pets.get\"",
            "# ours\nname = \"pets.read\"\ntimeout = \"2s\" # slow",
        )
        .replace(
            "[[route.outcome]]\n",
            "effect = 'safe'\n[[route.outcome]]\n",
        )
        .replace(
            "# No route",
            "[[route]]\nname = \"mine\"\nrest = \"GET /mine\"\nrpc = \"mine\"\n\n# No route",
        );
    let (text, report) = merge(BASE, &edited, NEW);
    for line in [
        "# ours",
        "name = \"pets.read\"",
        "timeout = \"2s\" # slow",
        "rest = \"GET /pets/{id}?full={full?}\"",
        "effect = 'safe'",
        "params = { name = \"{name}\", age = \"{age?}\" }",
        "rest = { status = 202 }",
        "# conflict: `effect` was edited; the new draft has",
        "#   effect = \"idempotent\"",
        "name = \"mine\"",
        "name = \"pets.find\"",
        "#   api-2.json",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\nin\n{text}");
    }
    assert!(
        !text.contains("pets.old") && !text.contains("POST /photo"),
        "{text}"
    );
    assert!(text.parse::<Table>().is_ok(), "{text}");
    assert_eq!(
        report.conflicts,
        ["`pets.add`: `effect` was edited; the new draft has"]
    );
}

#[test]
fn what_was_deleted_stays_deleted_and_what_was_edited_stays() {
    let start = BASE.find("# look").unwrap();
    let end = BASE.find("[[route]]\nname = \"pets.old\"").unwrap();
    let edited = format!("{}{}", &BASE[..start], &BASE[end..]);
    let edited = edited.replace("name = \"pets.old\"", "name = \"pets.old\" # still in use");
    let (text, report) = merge(BASE, &edited, NEW);
    assert!(!text.contains("POST /pets"), "{text}");
    assert!(
        text.contains("name = \"pets.old\" # still in use"),
        "{text}"
    );
    assert_eq!(report.deleted, ["`pets.add`"]);
    assert_eq!(report.conflicts.len(), 1, "{report:?}");
}

#[test]
fn paragraphs_above_a_removed_route_stay() {
    let edited = BASE.replace(
        "[[route]]\nname = \"pets.old\"",
        "# --- Ours, see the wiki ---\n\n[[route]]\nname = \"pets.old\"",
    );
    let (text, report) = merge(BASE, &edited, NEW);
    assert!(text.contains("\n# --- Ours, see the wiki ---\n"), "{text}");
    assert!(!text.contains("pets.old"), "{text}");
    assert_eq!((report.removed, report.conflicts.len()), (1, 0));
    // The first route takes the beginning of the file with it no more than others do.
    let start = NEW.find("# paired").unwrap();
    let end = NEW.find("# look").unwrap();
    let without = format!("{}{}", &NEW[..start], &NEW[end..]);
    let (text, _) = merge(BASE, BASE, &without);
    assert!(text.starts_with("# A draft of a route table"), "{text}");
    assert!(!text.contains("pets.get"), "{text}");
}

#[test]
fn a_comment_inside_a_part_is_an_edit() {
    let edited = BASE
        .replace(
            "rest = \"GET /pets/{id}\"",
            "rest = \"GET /pets/{id}\" # agreed with Ana",
        )
        .replace(
            "rest = { status = 201 }",
            "# the old clients want it\nrest = { status = 201 }",
        );
    let (text, report) = merge(BASE, &edited, NEW);
    assert!(text.contains("# agreed with Ana"), "{text}");
    assert!(text.contains("# the old clients want it"), "{text}");
    assert_eq!(report.conflicts.len(), 2, "{report:?}");
}

/// A route file: routes with some keys, outcomes and comments.
fn file(routes: &BTreeMap<u8, (u8, u8, u8)>, with: impl Fn(u8) -> &'static str) -> String {
    let mut text = "# A draft\n".to_owned();
    for (name, (rest, params, rows)) in routes {
        text.push_str(&format!(
            "\n# route {name}\n[[route]]\nname = \"r{name}\"\n"
        ));
        text.push_str(&format!(
            "rest = \"GET /{name}/{rest}\"\nrpc = \"m{name}\"\n"
        ));
        if *params > 0 {
            text.push_str(&format!("params = {{ a = \"{params}\" }}\n"));
        }
        text.push_str(with(*name));
        for row in 0..*rows {
            text.push_str(&format!("[[route.outcome]]\nrest = {{ status = {row} }}\n"));
        }
    }
    text
}

fn routes() -> impl Strategy<Value = BTreeMap<u8, (u8, u8, u8)>> {
    prop::collection::btree_map(0..6_u8, (0..2_u8, 0..3_u8, 0..3_u8), 0..6)
}

proptest! {
    #[test]
    fn an_edit_is_never_lost(base in routes(), new in routes(), edited in 0..6_u8) {
        let edit = "timeout = \"1s\" # ours\n";
        let (old, new) = (file(&base, |_| ""), file(&new, |_| ""));
        let ours = file(&base, |name| if name == edited { edit } else { "" });
        let (text, report) = merge(&old, &ours, &new);
        prop_assert!(text.parse::<Table>().is_ok(), "{}", text);
        prop_assert_eq!(text.contains(edit), base.contains_key(&edited), "{}", text);
        prop_assert_eq!(merge(&old, &ours, &old).0, ours.clone());
        // Merging the same change again changes nothing.
        let (again, more) = merge(&new, &text, &new);
        prop_assert_eq!(&again, &text);
        prop_assert_eq!(more, RefreshReport::default());
        let (plain, _) = merge(&old, &old, &new);
        prop_assert_eq!(plain.parse::<Table>(), new.parse::<Table>(), "{}", plain);
        if report.conflicts.is_empty() && !base.contains_key(&edited) {
            prop_assert_eq!(text.parse::<Table>(), new.parse::<Table>(), "{}", text);
        }
    }
}

/// A part of a route as people may spell it.
#[derive(Debug, Clone, Copy)]
enum Spelling {
    Drafted,
    Table,
    Dotted,
    Inline,
}

/// A route file with the same values in a chosen spelling. `more` adds a member to `params`.
fn spelled(routes: &BTreeMap<u8, (u8, u8, u8)>, spelling: Spelling, more: &str) -> String {
    let mut text = "# A draft\n".to_owned();
    for (name, (rest, params, rows)) in routes {
        text.push_str(&format!(
            "\n[[route]]\nname = \"r{name}\"\nrest = \"GET /{name}/{rest}\"\nrpc = \"m{name}\"\n"
        ));
        let comma = if more.is_empty() { "" } else { ", " };
        let (inside, own) = (
            format!("{{ a = \"{params}\"{comma}{more} }}"),
            format!("a = \"{params}\""),
        );
        let (drafted, last) = match spelling {
            Spelling::Drafted => (
                format!("params = {inside}\nschema.a = '{params}'\n"),
                String::new(),
            ),
            Spelling::Inline => (
                format!("params={inside}\n\"schema\" = {{ \"a\" = '{params}' }}\n"),
                String::new(),
            ),
            Spelling::Dotted if more.is_empty() => (
                format!("params . {own}\nschema.\"a\" = '{params}'\n"),
                String::new(),
            ),
            Spelling::Dotted => (
                format!("params.{own}\nparams.{more}\nschema.\"a\" = '{params}'\n"),
                String::new(),
            ),
            Spelling::Table => (
                String::new(),
                format!("\n[route.params]\n{own}\n{more}\n[route . schema]\na = '{params}'\n"),
            ),
        };
        text.push_str(&drafted);
        let row = |row: u8| format!("rest = {{ status = {row} }}");
        match spelling {
            Spelling::Drafted | Spelling::Table => {
                for at in 0..*rows {
                    text.push_str(&format!("[[route.outcome]]\n{}\n", row(at)));
                }
            }
            Spelling::Dotted | Spelling::Inline if *rows > 0 => {
                let rows: Vec<String> = (0..*rows).map(|at| format!("{{ {} }}", row(at))).collect();
                text.push_str(&format!("outcome = [\n  {},\n]\n", rows.join(",\n  ")));
            }
            Spelling::Dotted | Spelling::Inline => {}
        }
        text.push_str(&last);
    }
    text.push_str("\n[schemas]\n");
    for (name, (_, params, _)) in routes {
        text.push_str(&format!("\"S{name}\" = '{params}'\n"));
    }
    text
}

/// The same file without a header.
fn headless(text: &str) -> String {
    let table: Table = text.parse().unwrap();
    let mut head = String::new();
    for (key, value) in &table {
        head.push_str(&format!("{key} = {value}\n"));
    }
    head
}

fn spelling() -> impl Strategy<Value = Spelling> {
    prop::sample::select(vec![
        Spelling::Drafted,
        Spelling::Table,
        Spelling::Dotted,
        Spelling::Inline,
    ])
}

proptest! {
    #[test]
    fn every_spelling_of_a_draft_is_merged(base in routes(), new in routes(), spelling in spelling()) {
        let (old, theirs) = (spelled(&base, Spelling::Drafted, ""), spelled(&new, Spelling::Drafted, ""));
        let plain = spelled(&base, spelling, "");
        for ours in [&plain, &headless(&old)] {
            prop_assert_eq!(&merge(&old, ours, &old).0, ours);
            let (text, report) = merge(&old, ours, &theirs);
            prop_assert_eq!(report.conflicts, Vec::<String>::new(), "{}\nof\n{}", text, ours);
            prop_assert_eq!(text.parse::<Table>().map_err(|fault| fault.to_string()), theirs.parse::<Table>().map_err(|fault| fault.to_string()), "{}\nof\n{}", text, ours);
        }
    }

    #[test]
    fn an_edit_in_any_spelling_is_kept(base in routes(), new in routes(), spelling in spelling()) {
        let (old, theirs) = (spelled(&base, Spelling::Drafted, ""), spelled(&new, Spelling::Drafted, ""));
        let ours = spelled(&base, spelling, "ours = \"1\"");
        prop_assert_eq!(&merge(&old, &ours, &old).0, &ours);
        let (text, report) = merge(&old, &ours, &theirs);
        prop_assert!(text.parse::<Table>().is_ok(), "{}\nof\n{}", text, ours);
        prop_assert_eq!(text.matches("ours = \"1\"").count(), base.len(), "{}", text);
        let lines: BTreeMap<&u8, &(u8, u8, u8)> = new.iter().filter(|(name, _)| base.contains_key(name)).collect();
        for (name, (_, params, _)) in lines {
            let is_open = matches!(spelling, Spelling::Table | Spelling::Dotted);
            if is_open && params != &base[name].1 {
                // Members are merged beside the edit, without a conflict.
                let merged: Table = text.parse().unwrap();
                let routes = merged["route"].as_array().unwrap();
                let own = routes.iter().find(|route| route["name"].as_str() == Some(&format!("r{name}"))).unwrap();
                prop_assert_eq!(own["params"]["a"].as_str(), Some(&*params.to_string()), "{}", text);
                prop_assert_eq!(own["params"]["ours"].as_str(), Some("1"), "{}", text);
            }
        }
        prop_assert!(matches!(spelling, Spelling::Drafted | Spelling::Inline) || report.conflicts.iter().all(|text| !text.contains("params.a")), "{:?}", report);
    }
}

#[test]
fn an_array_of_routes_is_refreshed() {
    let edited = "# ours\nroute = [\n  # first\n  { name = \"pets.get\", rest = \"GET /pets/{id}\", rpc = \"pets.get\", timeout = \"2s\" }, # second\n  {\n    name = \"pets.add\", # named\n    rest = \"POST /pets\", rpc = \"pets.add\",\n    params = { name = \"{name}\" },\n    outcome = [{ rest = { status = 201 }, rpc = { result = \"{_:null}\" } }],\n  },\n] # end\n";
    let (text, report) = merge(BASE, edited, NEW);
    let merged: Table = text.parse().unwrap();
    let mut wanted: Table = NEW.parse().unwrap();
    let routes = wanted["route"].as_array_mut().unwrap();
    let first = routes[0].as_table_mut().unwrap();
    first.insert("timeout".to_owned(), "2s".into());
    assert_eq!(merged, wanted, "{text}");
    for comment in ["# ours", "# first", "# second", "# named", "# end"] {
        assert!(text.contains(comment), "{comment}\nin\n{text}");
    }
    assert_eq!(report.conflicts, Vec::<String>::new(), "{text}");
}

#[test]
fn dotted_schemas_around_an_array_of_routes_stay_schemas() {
    let drafted = |value: u8| {
        format!(
            "# A draft\n\n[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n\n[schemas]\nA = '{value}'\nB = '{value}'\n"
        )
    };
    let edited = "schemas.A = '1'\n# ours\nroute = [{ name = \"a\", rest = \"GET /a\", rpc = \"a\" }]\nschemas.B = '1'\n";
    let (text, report) = merge(&drafted(1), edited, &drafted(2));
    let wanted: Table = drafted(2).parse().unwrap();
    assert_eq!(text.parse::<Table>(), Ok(wanted), "{text}");
    assert!(text.contains("# ours"), "{text}");
    assert_eq!(report.conflicts, Vec::<String>::new(), "{text}");
}

#[test]
fn a_file_without_a_last_line_end_is_refreshed() {
    let edited = "route = [{ name = \"pets.get\", rest = \"GET /pets/{id}\", rpc = \"pets.get\" }]\nunrouted = \"reject\"";
    let dotted = "schemas.A = '1'\nunrouted = \"reject\"";
    for edited in [edited, dotted, BASE.trim_end(), "unrouted = \"reject\""] {
        let (text, report) = merge(BASE, edited, NEW);
        assert!(text.parse::<Table>().is_ok(), "{text}");
        assert!(text.contains("rpc = \"pets.find\""), "{text}");
        assert_eq!((report.added, text.ends_with('\n')), (1, false), "{text}");
        assert_eq!(merge(BASE, edited, BASE).0, edited);
    }
}

#[test]
fn a_copy_of_a_route_keeps_its_text_and_the_original_is_refreshed() {
    let route = "[[route]]\nname = \"pets.get\"\nrest = \"GET /pets/{id}\"\nrpc = \"pets.get\"\n";
    let copy = route.replace("\"pets.get\"\nrest", "\"copied\"\nfrom = \"rest\"\nrest");
    for copy in [
        copy,
        route.replace("name = \"pets.get\"", "name = \"copied\""),
    ] {
        let edited = BASE.replacen("# paired", &format!("{copy}\n# paired"), 1);
        let (text, _) = merge(BASE, &edited, NEW);
        assert!(text.contains(&copy), "{text}");
        let refreshed = "name = \"pets.get\"\nrest = \"GET /pets/{id}?full={full?}\"\n";
        assert!(text.contains(refreshed), "{text}");
    }
}

#[test]
fn the_heading_of_a_file_with_keys_before_its_routes_is_refreshed() {
    let keys = "\nunrouted = \"reject\"\n\n# paired";
    for edited in [
        BASE.replacen("\n# paired", keys, 1),
        BASE.replacen(
            "#   api.json\n\n",
            "#   api.json\nunrouted = \"reject\"\n\n",
            1,
        ),
    ] {
        let (text, _) = merge(BASE, &edited, NEW);
        let lines: Vec<&str> = text.lines().take(2).collect();
        assert_eq!(lines.last(), Some(&"#   api-2.json"), "{text}");
        assert_eq!(text.matches("# A draft of").count(), 1, "{text}");
    }
}

#[test]
fn a_file_with_the_line_ends_of_windows_keeps_them() {
    let windows = |text: &str| text.replace('\n', "\r\n");
    let edited = BASE.replace(
        "name = \"pets.get\"",
        "timeout = \"2s\"\nname = \"pets.get\"",
    );
    let (plain, wanted) = merge(BASE, &edited, NEW);
    // Version control may also have changed the line ends of the draft.
    for base in [BASE.to_owned(), windows(BASE)] {
        let (text, report) = merge(&base, &windows(&edited), NEW);
        assert_eq!(text, windows(&plain));
        assert_eq!(report, wanted);
        let (text, report) = merge(&base, &windows(&edited), BASE);
        assert_eq!(text, windows(&edited));
        assert_eq!(report, RefreshReport::default());
    }
}

#[test]
fn a_large_table_of_schemas_is_merged_in_linear_time() {
    let schemas = |value: u8| -> String {
        let lines = (0..20_000).map(|at| format!("S{at} = '{value}'\n"));
        format!("# A draft\n\n[schemas]\n{}", lines.collect::<String>())
    };
    let (old, new) = (schemas(1), schemas(2));
    let edited = old.replace("S7 = '1'", "S7 = '1' # ours");
    let (text, report) = merge(&old, &edited, &new);
    assert_eq!(report.conflicts.len(), 1, "{report:?}");
    assert_eq!(
        text.matches("= '2'\n").count(),
        20_000,
        "19,999 and the conflict"
    );
}
