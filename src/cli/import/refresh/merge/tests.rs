//! Edits and changes of documents are both in the merged table, or reported.

use proptest::prelude::*;

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
