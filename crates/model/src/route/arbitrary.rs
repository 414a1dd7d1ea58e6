//! Routes for property tests, as a route table spells them: both sides are made of the same holes, each in
//! a separate place, with every construct of the language. The module also generates calls that match or nearly match.

mod sent;

use super::{Extra, RouteSource};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::pattern::arbitrary::Dice;

pub(crate) use sent::{Sent, rest_call, rpc_call};

/// A type, two defaults of it, and whether a text can hold it.
struct Kind {
    typed: &'static str,
    defaults: [&'static str; 2],
    text_use: TextUse,
}

/// The uses of a value in texts: URLs, headers and members.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextUse {
    /// Beside other text too, and in a path.
    Part,
    /// Only alone, and not in a path.
    Whole,
    /// Only alone, also as a path segment.
    Segment,
    /// Only as `{x:json}`.
    JsonOnly,
}

const fn kind(typed: &'static str, defaults: [&'static str; 2], text_use: TextUse) -> Kind {
    Kind {
        typed,
        defaults,
        text_use,
    }
}

const KINDS: &[Kind] = &[
    kind("", ["d", "e"], TextUse::Part),
    kind(":string", ["x", ""], TextUse::Part),
    kind(":integer", ["1", "10"], TextUse::Part),
    kind(":number", ["1.5", "-2e9"], TextUse::Part),
    kind(":boolean", ["true", "false"], TextUse::Part),
    kind(":enum(x|x-y)", ["x", "x-y"], TextUse::Part),
    kind(":map(p=p|\"7\"=r|x-y=s)", ["p", "r"], TextUse::Part),
    kind(":map(p=p|7=r|true=s)", ["p", "s"], TextUse::Part),
    kind(":map(p=p|\"7\"=r)[,]", ["[]", "[]"], TextUse::Segment),
    kind(":map(p=p|\"7\"=r)[]", ["[]", "[]"], TextUse::Whole),
    kind(":string[]", ["[]", "[]"], TextUse::Whole),
    kind(":integer[,]", ["[]", "[]"], TextUse::Segment),
    kind(":string[,]", ["[]", "[]"], TextUse::Segment),
    kind(":string[|]", ["[]", "[]"], TextUse::Whole),
    kind(":integer[ ]", ["[]", "[]"], TextUse::Whole),
    kind(":object", ["{}", "{\"a\":1}"], TextUse::JsonOnly),
    kind(":array", ["[]", "[1]"], TextUse::JsonOnly),
    kind(":null", ["null", "null"], TextUse::JsonOnly),
];

/// The location of a hole on the REST side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Path,
    Query,
    Header,
    Body,
}

/// A hole as each side spells it.
struct Hole {
    location: Location,
    rest: String,
    rpc: String,
    /// The uses of the hole in texts.
    text_use: TextUse,
}

fn hole(name: &str, dice: &mut Dice) -> Hole {
    let kind = &KINDS[dice.below(KINDS.len())];
    let location = match (dice.below(6), kind.text_use) {
        (0, TextUse::Part | TextUse::Segment) => Location::Path,
        (1 | 2, TextUse::Part | TextUse::Whole | TextUse::Segment) => Location::Query,
        (3, TextUse::Part | TextUse::Whole | TextUse::Segment) => Location::Header,
        _ => Location::Body,
    };
    let [first, second] = kind.defaults;
    let (presence, twin) = match dice.below(10) {
        _ if location == Location::Path => (String::new(), String::new()),
        0 | 1 => ("?".to_owned(), String::new()),
        2 => (format!("={first}"), String::new()),
        3 => (format!("?={first}"), String::new()),
        4 => (format!("={first}"), format!("={second}")),
        5 => (format!("={first}"), format!("?={first}")),
        _ => (String::new(), String::new()),
    };
    // JSON in a text: only one side may declare the type; the other writes `{x:json}`.
    let as_json = dice.below(8) == 7;
    let declared = format!("{{{name}{}{presence}}}", kind.typed);
    let other = match (as_json, twin.is_empty()) {
        (true, true) => format!("{{{name}:json}}"),
        (_, false) => format!("{{{name}{twin}}}"),
        (false, true) => format!("{{{name}}}"),
    };
    // In a path `=` begins a template, and a default is not allowed at all.
    let says_first = location == Location::Path || dice.below(2) == 0;
    let (rest, rpc) =
        if says_first && location != Location::Path || location == Location::Path && !as_json {
            (declared, other)
        } else {
            (other, declared)
        };
    let text_use = if as_json {
        TextUse::JsonOnly
    } else {
        kind.text_use
    };
    let location = if as_json && location == Location::Path {
        Location::Query
    } else {
        location
    };
    Hole {
        location,
        rest,
        rpc,
        text_use,
    }
}

/// A leaf of a tree: a hole, or what is grown already.
struct Leaf {
    tree: SourceTree,
    text_use: TextUse,
}

fn leaf(spelled: &str, text_use: TextUse) -> Leaf {
    Leaf {
        tree: SourceTree::Text(spelled.to_owned()),
        text_use,
    }
}

/// Something that both sides forget, or say each for itself.
fn lonely(dice: &mut Dice) -> SourceTree {
    match dice.below(7) {
        0 => SourceTree::Text("{_}".into()),
        1 => SourceTree::Text("{_=1}".into()),
        2 => SourceTree::Literal(Json::literal("true")),
        3 => SourceTree::Text("{_:null}".into()),
        4 => SourceTree::Text("{>now}".into()),
        5 => SourceTree::List(vec![SourceTree::Text("x".into())]),
        _ => SourceTree::Text("lit".into()),
    }
}

fn table(mut leaves: Vec<Leaf>, depth: usize, dice: &mut Dice) -> SourceTree {
    let mut members = Vec::new();
    while !leaves.is_empty() {
        let count = if depth == 0 {
            1
        } else {
            1 + dice.below(leaves.len().min(3))
        };
        let some: Vec<Leaf> = leaves.drain(..count).collect();
        members.push((
            format!("m{}", members.len()),
            grown(some, depth.saturating_sub(1), dice),
        ));
    }
    if dice.below(3) == 0 {
        members.push((dice.pick(&["z", "y-z", "é"]).to_owned(), lonely(dice)));
    }
    SourceTree::Table(members)
}

/// Returns a tree with all leaves.
fn grown(mut leaves: Vec<Leaf>, depth: usize, dice: &mut Dice) -> SourceTree {
    let pieces = leaves.iter().all(|leaf| leaf.text_use == TextUse::Part);
    match dice.below(6) {
        0 | 1 if pieces && leaves.len() <= 2 && !leaves.is_empty() => {
            let holes = leaves.iter().filter_map(|leaf| match &leaf.tree {
                SourceTree::Text(text) => Some(text.as_str()),
                SourceTree::Literal(_) | SourceTree::Table(_) | SourceTree::List(_) => None,
            });
            let joint = dice.pick(&["-", ": ", "/", "x"]);
            let text = holes.collect::<Vec<_>>().join(joint);
            let (before, after) = (dice.pick(&["", "x "]), dice.pick(&["", ".", "x"]));
            SourceTree::Text(format!("{before}{text}{after}"))
        }
        2 if depth > 0 => {
            let mut items = Vec::new();
            for leaf in leaves.drain(..) {
                items.push(leaf.tree);
            }
            if dice.below(3) == 0 {
                // `{_}` writes nothing, and an element cannot be left out.
                let lonely =
                    Some(lonely(dice)).filter(|tree| *tree != SourceTree::Text("{_}".into()));
                items.splice(0..0, lonely);
            }
            SourceTree::List(items)
        }
        throw if leaves.len() == 1 && (depth == 0 || throw < 5) => leaves.remove(0).tree,
        _ => table(leaves, depth, dice),
    }
}

/// A route of any shape; not each can be compiled.
pub(crate) fn source(dice: &mut Dice) -> RouteSource {
    let holes: Vec<Hole> = (0..dice.below(6))
        .map(|index| hole(&format!("h{index}"), dice))
        .collect();
    let mut source = RouteSource {
        key: "route[0]".into(),
        name: "r".into(),
        rpc: "m".into(),
        ..RouteSource::default()
    };
    let in_rest = |hole: &&Hole| hole.location == Location::Body;
    let mut body: Vec<Leaf> = holes
        .iter()
        .filter(in_rest)
        .map(|hole| leaf(&hole.rest, hole.text_use))
        .collect();
    let mut params = Vec::new();
    let mut url = head(&holes, &mut source, dice);
    for hole in &holes {
        let may_be_method = hole.location == Location::Path && hole.text_use == TextUse::Part;
        if may_be_method && source.rpc == "m" && dice.below(4) == 0 {
            source.rpc = format!("m.{}", hole.rpc);
        } else {
            params.push(leaf(&hole.rpc, hole.text_use));
        }
    }
    captured(&mut source, &mut params, dice);
    if dice.below(6) == 0 && body.is_empty() && source.rpc == "m" {
        // The short form: holes go by their names, members are carried.
        url.insert_str(0, dice.pick(&["GET ", "POST ", "DELETE ", "PUT "]));
        source.rest = url;
        return source;
    }
    each(&mut body, &mut params, dice);
    let has_body = !body.is_empty() || dice.below(2) == 0;
    source.params = Some(whole(params, dice));
    source.body = has_body.then(|| whole(body, dice));
    rest(&mut source, dice);
    source.extra = [None, Some(Extra::Drop), Some(Extra::Reject)][dice.below(3)];
    let method = if has_body {
        dice.pick(&["POST ", "PUT ", "PATCH "])
    } else {
        dice.pick(&["GET ", "DELETE ", "POST "])
    };
    url.insert_str(0, method);
    source.rest = url;
    source
}

/// Texts beside a hole of a path.
const BESIDE: [(&str, &str); 6] = [
    ("", ".json"),
    ("", "-"),
    ("x", ""),
    ("", "@"),
    ("t-", "..."),
    ("", "é3"),
];

/// Path, query and headers.
fn head(holes: &[Hole], source: &mut RouteSource, dice: &mut Dice) -> String {
    let mut path = String::from("/p");
    let mut query = String::new();
    let count = holes
        .iter()
        .filter(|hole| hole.location == Location::Path)
        .count();
    let mut seen = 0;
    for (index, hole) in holes.iter().enumerate() {
        match hole.location {
            Location::Path => {
                seen += 1;
                let name = hole.rest.trim_matches(['{', '}']);
                match dice.below(6) {
                    0 if seen == count && !name.contains(':') => {
                        path.push_str(&format!("/{{{name}=**}}"));
                    }
                    1 if !name.contains(':') => path.push_str(&format!("/{{{name}=q/*}}")),
                    2 => path.push_str(&format!("/{}/q", hole.rest)),
                    3 if hole.text_use == TextUse::Part => {
                        let (before, after) = BESIDE[dice.below(BESIDE.len())];
                        // A hole after text in the same segment, or the first of a segment.
                        let joint = match path.ends_with(['-', '@', '.']) {
                            true => "",
                            false => "/",
                        };
                        path.push_str(&format!("{joint}{before}{}{after}", hole.rest));
                    }
                    _ => path.push_str(&format!("/{}", hole.rest)),
                }
            }
            Location::Query => {
                query.push(if query.is_empty() { '?' } else { '&' });
                let text = match dice.below(5) {
                    0 if hole.text_use == TextUse::Part => format!("x-{}", hole.rest),
                    _ => hole.rest.clone(),
                };
                query.push_str(&format!("k{index}={text}"));
            }
            Location::Header => {
                let text = match dice.below(3) {
                    0 if hole.text_use == TextUse::Part => format!("Bearer {}", hole.rest),
                    _ => hole.rest.clone(),
                };
                source
                    .headers
                    .push((format!("x-h{index}"), SourceTree::Text(text)));
            }
            Location::Body => {}
        }
    }
    if dice.below(6) == 0 && !path.ends_with("**}") {
        path.push_str(":verb");
    } else if dice.below(6) == 0 && !path.ends_with("**}") {
        path.push('/');
    }
    if dice.below(6) == 0 {
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str("v=2");
    }
    path + &query
}

/// Names that the route does not know, as objects of the other side.
fn captured(source: &mut RouteSource, params: &mut Vec<Leaf>, dice: &mut Dice) {
    let all = [
        ("q", &mut source.query, "..."),
        ("p", &mut source.headers, "x-m-..."),
    ];
    for (name, keys, key) in all {
        if dice.below(5) == 0 {
            keys.push((key.to_owned(), SourceTree::Text(format!("{{{name}}}"))));
            let twin = dice.pick(&["", "", "?", "={}", "?={}"]);
            params.push(leaf(&format!("{{{name}{twin}}}"), TextUse::JsonOnly));
        }
    }
}

/// A list whose elements are alike, on both sides.
fn each(body: &mut Vec<Leaf>, params: &mut Vec<Leaf>, dice: &mut Dice) {
    for group in 0..dice.below(5).saturating_sub(2) {
        let mut sides = [Vec::new(), Vec::new()];
        for index in 0..1 + dice.below(2) {
            let mut hole = hole(&format!("e{group}_{index}"), dice);
            hole.text_use = TextUse::JsonOnly;
            sides[0].push(leaf(&hole.rest, hole.text_use));
            sides[1].push(leaf(&hole.rpc, hole.text_use));
        }
        for (inner, side) in sides.into_iter().zip([&mut *body, &mut *params]) {
            let item = grown(inner, 1, dice);
            let tree = SourceTree::List(vec![SourceTree::Text("*".into()), item]);
            let text_use = TextUse::JsonOnly;
            side.push(Leaf { tree, text_use });
        }
    }
}

/// Params, or a body: a table or a list.
fn whole(leaves: Vec<Leaf>, dice: &mut Dice) -> SourceTree {
    if dice.below(4) == 0 {
        SourceTree::List(leaves.into_iter().map(|leaf| leaf.tree).collect())
    } else {
        table(leaves, 2, dice)
    }
}

/// Adds a hole for unnamed members or elements, if both sides have a place for them.
fn rest(source: &mut RouteSource, dice: &mut Dice) {
    if dice.below(3) > 0 {
        return;
    }
    match (&mut source.body, &mut source.params) {
        (Some(SourceTree::Table(body)), Some(SourceTree::Table(params))) => {
            body.push(("...".into(), SourceTree::Text("{others}".into())));
            let rest_entry = match dice.below(2) {
                0 => ("...".into(), SourceTree::Text("{others}".into())),
                _ => ("others".into(), SourceTree::Text("{others}".into())),
            };
            params.push(rest_entry);
        }
        (Some(SourceTree::List(body)), Some(SourceTree::List(params))) => {
            body.push(SourceTree::Text("{tail...}".into()));
            params.push(SourceTree::Text("{tail...}".into()));
        }
        (Some(SourceTree::Table(body)), Some(SourceTree::List(params))) => {
            body.push(("tail".into(), SourceTree::Text("{tail}".into())));
            params.push(SourceTree::Text("{tail...}".into()));
        }
        _ => {}
    }
}
