//! The tables of docs/reference/patterns.md: each row has a route that does what the row says, and `check` runs its examples.

#![expect(
    clippy::unwrap_used,
    reason = "a program that cannot be started fails the test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const MAIN: &str = "include = ['routes.toml']\n[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
    [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n";

/// What `check` says of routes.
fn checked(routes: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dualgauge.toml"), MAIN).unwrap();
    fs::write(folder.path().join("routes.toml"), routes).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args(["check", "--config"])
        .arg(folder.path().join("dualgauge.toml"))
        .env_clear()
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.success(), said.concat())
}

/// The first cells of the table under a heading.
fn rows(heading: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/reference/patterns.md")).unwrap();
    let (_, behind) = page.split_once(heading).unwrap();
    let lines = behind.lines().skip_while(|line| !line.starts_with("|---"));
    let lines = lines.skip(1).take_while(|line| line.starts_with("| "));
    let cell = |line: &str| {
        let line = line.trim_start_matches("| ");
        line.split(" | ").next().unwrap().to_owned()
    };
    lines.map(cell).collect()
}

/// A row, a route for it, and calls that are the same on both sides; or a call of one side, which becomes the other one.
struct Case {
    row: &'static str,
    route: &'static str,
    /// Whose call it is, if only one way holds; the REST call; its body; the params.
    calls: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

impl Case {
    /// The route with examples, as a file has it.
    fn written(&self, number: usize) -> String {
        let route = self.route.replace("PATH", &format!("/r{number}"));
        let mut text = format!(
            "[[route]]\nname = 'r{number}'\nrpc = 'r{number}'\nlossy = 'the row says so'\n{route}\n"
        );
        for call in self.calls {
            text.push_str(&example(number, call));
        }
        text
    }
}

fn example(number: usize, (way, call, body, params): &(&str, &str, &str, &str)) -> String {
    let call = call.replace("PATH", &format!("/r{number}"));
    let body = if body.is_empty() {
        String::new()
    } else {
        format!(", body = {body}")
    };
    format!(
        "[[route.example]]\nway = '{way}'\nrest = {{ call = '{call}'{body} }}\nrpc = {{ method = 'r{number}', params = {params} }}\n"
    )
}

const BODY: &str = "rest = 'POST PATH'\n";

const HOLES: [Case; 28] = [
    Case {
        row: "`\"{x:page(limit)}\"`",
        route: "rest = 'GET PATH?p={x:page(limit)}&n={limit:integer}'",
        calls: &[("both", "GET PATH?p=3&n=5", "", "{ x = 10, limit = 5 }")],
    },
    Case {
        row: "`\"{x:map(open=OPEN\\|done=DONE)}\"`",
        route: "rest = 'GET PATH?x={x:map(open=OPEN|done=DONE)}'",
        calls: &[("both", "GET PATH?x=open", "", "{ x = 'OPEN' }")],
    },
    Case {
        row: "`\"{x:keys(kebab=snake)}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{x:keys(kebab=snake)}' }\nparams = { b = '{x}' }",
        calls: &[(
            "both",
            "POST PATH",
            "{ a = { c-d = 1 } }",
            "{ b = { c_d = 1 } }",
        )],
    },
    Case {
        row: "`\"{<x}\"`, `\"{<x=v}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{a}', x = '{<x}', y = '{<y=v}' }\nparams = { a = '{a}' }",
        calls: &[
            ("rest", "POST PATH", "{ a = 1, x = 2, y = 3 }", "{ a = 1 }"),
            ("rpc", "POST PATH", "{ a = 1, y = 'v' }", "{ a = 1 }"),
        ],
    },
    Case {
        row: "`[ \"{\\|}\", p1, p2 ]`",
        route: "rest = 'POST PATH'\nbody = { v = ['{|}', { k = 'a', x = '{x}' }, ['{y}']] }\nparams = { v = ['{|}', ['{x}'], { z = '{y}' }] }",
        calls: &[
            (
                "both",
                "POST PATH",
                "{ v = { k = 'a', x = 1 } }",
                "{ v = [1] }",
            ),
            ("both", "POST PATH", "{ v = [1] }", "{ v = { z = 1 } }"),
        ],
    },
    Case {
        row: "`[ \"{/}\", p1, p2 ]`",
        route: "rest = 'GET PATH?a={a}'\nparams = ['{/}', { a = '{a}' }, ['{a}']]",
        calls: &[
            ("both", "GET PATH?a=1", "", "{ a = '1' }"),
            ("rpc", "GET PATH?a=1", "", "['1']"),
        ],
    },
    Case {
        row: "`\"{x}\"`",
        route: "rest = 'POST PATH?q={q}'\nbody = { a = '{x}' }\nparams = { b = '{x}', q = '{q}' }",
        calls: &[
            (
                "both",
                "POST PATH?q=7",
                "{ a = [1, { b = true }] }",
                "{ b = [1, { b = true }], q = '7' }",
            ),
            (
                "both",
                "POST PATH?q=a%20b",
                "{ a = 'c' }",
                "{ b = 'c', q = 'a b' }",
            ),
        ],
    },
    Case {
        row: "`\"{x:integer}\"`",
        route: "rest = 'GET PATH?i={i:integer}&n={n:number?}&b={b:boolean?}&e={e:enum(a|b)?}&s={s:string?}'",
        calls: &[
            ("both", "GET PATH?i=7", "", "{ i = 7 }"),
            (
                "both",
                "GET PATH?i=7&n=1.5&b=true&e=a&s=8",
                "",
                "{ i = 7, n = 1.5, b = true, e = 'a', s = '8' }",
            ),
        ],
    },
    Case {
        row: "`\"{x:string[]}\"`",
        route: "rest = 'GET PATH?x={x:string[]}'",
        calls: &[("both", "GET PATH?x=a&x=b", "", "{ x = ['a', 'b'] }")],
    },
    Case {
        row: "`\"{x:string[,]}\"`",
        route: "rest = 'GET PATH/{y:string[,]}?x={x:string[,]}'",
        calls: &[(
            "both",
            "GET PATH/c,d?x=a,b",
            "",
            "{ y = ['c', 'd'], x = ['a', 'b'] }",
        )],
    },
    Case {
        row: "`\"{x:string[\\|]}\"`, `\"{x:string[ ]}\"`",
        route: "rest = 'GET PATH?x={x:string[|]}&y={y:string[ ]}'",
        calls: &[(
            "both",
            "GET PATH?x=a%7Cb&y=c%20d",
            "",
            "{ x = ['a', 'b'], y = ['c', 'd'] }",
        )],
    },
    Case {
        row: "`\"{x:base64}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{x:base64}' }\nparams = { b = '{x}' }",
        calls: &[
            (
                "both",
                "POST PATH",
                "{ a = 'eyJjIjoxfQ==' }",
                "{ b = { c = 1 } }",
            ),
            (
                "rest",
                "POST PATH",
                "{ a = 'eyJjIjoxfQ' }",
                "{ b = { c = 1 } }",
            ),
        ],
    },
    Case {
        row: "`\"{x:json}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{x:json}' }\nparams = { b = '{x}' }",
        calls: &[
            (
                "both",
                "POST PATH",
                "{ a = '{{\"c\":[1]}}' }",
                "{ b = { c = [1] } }",
            ),
            (
                "rest",
                "POST PATH",
                "{ a = ' {{ \"c\": 1 }} ' }",
                "{ b = { c = 1 } }",
            ),
        ],
    },
    Case {
        row: "`\"{x?}\"`",
        route: "rest = 'GET PATH?x={x?}'",
        calls: &[
            ("both", "GET PATH", "", "{}"),
            ("both", "GET PATH?x=a", "", "{ x = 'a' }"),
        ],
    },
    Case {
        row: "`\"{x=50}\"`",
        route: "rest = 'GET PATH?x={x:integer=50}'",
        calls: &[
            ("both", "GET PATH?x=50", "", "{ x = 50 }"),
            ("rest", "GET PATH", "", "{ x = 50 }"),
            ("rpc", "GET PATH?x=50", "", "{}"),
        ],
    },
    Case {
        row: "`\"{x?=50}\"`",
        route: "rest = 'GET PATH?x={x:integer?=50}'",
        calls: &[
            ("rest", "GET PATH?x=50", "", "{}"),
            ("rpc", "GET PATH", "", "{ x = 50 }"),
            ("both", "GET PATH?x=7", "", "{ x = 7 }"),
        ],
    },
    Case {
        row: "`\"Bearer {x}\"`",
        route: "rest = 'POST PATH'\nbody = { a = 'Bearer {x}, {y}' }\nparams = { x = '{x}', y = '{y}' }",
        calls: &[(
            "both",
            "POST PATH",
            "{ a = 'Bearer b, c, d' }",
            "{ x = 'b', y = 'c, d' }",
        )],
    },
    Case {
        row: "`{ \"...\" = \"{x}\" }`",
        route: "rest = 'POST PATH'\nbody = { a = '{a}', '...' = '{x}' }\nparams = { a = '{a}', more = '{x}' }",
        calls: &[(
            "both",
            "POST PATH",
            "{ a = 1, b = 2, c = [3] }",
            "{ a = 1, more = { b = 2, c = [3] } }",
        )],
    },
    Case {
        row: "`[ \"*\", pattern ]`",
        route: "rest = 'POST PATH'\nbody = { a = ['*', { n = '{n}' }] }\nparams = { b = ['*', '{n}'] }",
        calls: &[
            (
                "both",
                "POST PATH",
                "{ a = [{ n = 1 }, { n = 'b' }] }",
                "{ b = [1, 'b'] }",
            ),
            ("both", "POST PATH", "{ a = [] }", "{ b = [] }"),
        ],
    },
    Case {
        row: "`[ a, b, \"{x...}\" ]`",
        route: "rest = 'POST PATH'\nbody = { a = ['{f}', '{x...}'] }\nparams = { f = '{f}', more = '{x}' }",
        calls: &[(
            "both",
            "POST PATH",
            "{ a = [1, 2, 3] }",
            "{ f = 1, more = [2, 3] }",
        )],
    },
    Case {
        row: "`\"{_}\"`, `\"{_=v}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{a}', b = '{_}', c = '{_=v}' }\nparams = { a = '{a}' }",
        calls: &[
            ("rest", "POST PATH", "{ a = 1, b = 2, c = 3 }", "{ a = 1 }"),
            ("rest", "POST PATH", "{ a = 1 }", "{ a = 1 }"),
            ("rpc", "POST PATH", "{ a = 1, c = 'v' }", "{ a = 1 }"),
        ],
    },
    Case {
        row: "`\"{>x}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{x}', b = 'about {>x}' }\nparams = { a = '{x:string}' }",
        calls: &[
            (
                "rpc",
                "POST PATH",
                "{ a = 'c', b = 'about c' }",
                "{ a = 'c' }",
            ),
            (
                "rest",
                "POST PATH",
                "{ a = 'c', b = 'about d' }",
                "{ a = 'c' }",
            ),
        ],
    },
    Case {
        row: "`\"{=x}\"`",
        route: "rest = 'PATCH PATH/{id}'\nbody = { id = '{=id}', a = '{a}' }\nparams = { id = '{id}', a = '{a}' }",
        calls: &[
            (
                "both",
                "PATCH PATH/7",
                "{ id = '7', a = 1 }",
                "{ id = '7', a = 1 }",
            ),
            (
                "rest",
                "PATCH PATH/7",
                "{ id = 7, a = 1 }",
                "{ id = '7', a = 1 }",
            ),
        ],
    },
    Case {
        row: "`\"{=x:integer}\"`",
        route: "rest = 'PATCH PATH/{id}'\nbody = { id = '{=id:integer}', a = '{a}' }\nparams = { id = '{id}', a = '{a}' }",
        calls: &[(
            "both",
            "PATCH PATH/7",
            "{ id = 7, a = 1 }",
            "{ id = '7', a = 1 }",
        )],
    },
    Case {
        row: "`\"{=x?}\"`",
        route: "rest = 'PATCH PATH/{id}'\nbody = { id = '{=id?}', a = '{a}' }\nparams = { id = '{id}', a = '{a}' }",
        calls: &[
            ("both", "PATCH PATH/7", "{ a = 1 }", "{ id = '7', a = 1 }"),
            (
                "rest",
                "PATCH PATH/7",
                "{ id = '7', a = 1 }",
                "{ id = '7', a = 1 }",
            ),
        ],
    },
    Case {
        row: "`\"{>now}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{x}' }\nparams = { a = '{x}', at = '{>now}' }",
        calls: &[(
            "rpc",
            "POST PATH",
            "{ a = 1 }",
            "{ a = 1, at = 'whenever' }",
        )],
    },
    Case {
        row: "`\"{_:null}\"`",
        route: "rest = 'POST PATH'\nbody = { a = '{x}', b = '{_:null}' }\nparams = { a = '{x}' }",
        calls: &[],
    },
    Case {
        row: "",
        route: BODY,
        calls: &[("both", "POST PATH", "{ a = 1 }", "{ a = 1 }")],
    },
];

#[test]
fn each_row_of_the_table_of_holes_has_examples_that_hold() {
    let known: BTreeSet<_> = HOLES.iter().map(|case| case.row.to_owned()).collect();
    let mut wanted = rows("\n## Holes\n");
    // The short form, which has no hole.
    wanted.insert(String::new());
    assert_eq!(known, wanted);
    let mut faults = String::new();
    for (number, case) in HOLES.iter().enumerate() {
        let (is_well, said) = checked(&case.written(number));
        if !is_well {
            faults.push_str(&format!("{}: {said}\n", case.row));
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// A call of one side that becomes another one, or is refused.
struct Absent {
    row: &'static str,
    hole: &'static str,
    /// Whose call it is, the query, the params, and whether the one becomes the other.
    calls: &'static [(&'static str, &'static str, &'static str, bool)],
}

const ABSENT: [Absent; 6] = [
    Absent {
        row: "absent",
        hole: "{x?}",
        calls: &[("rpc", "", "{}", true)],
    },
    Absent {
        row: "absent",
        hole: "{x}",
        calls: &[("rpc", "?x=", "{}", false)],
    },
    Absent {
        row: "`\"\"`",
        hole: "{x?}",
        calls: &[("both", "?x=", "{ x = '' }", true)],
    },
    Absent {
        row: "`\"\"`",
        hole: "{x}",
        calls: &[
            ("rpc", "?x=", "{ x = '' }", false),
            ("rest", "?x=", "{ x = '' }", false),
        ],
    },
    Absent {
        row: "`[]`",
        hole: "{x:string[,]?}",
        calls: &[
            ("rpc", "", "{ x = [] }", true),
            ("rest", "?x=", "{ x = [] }", true),
        ],
    },
    Absent {
        row: "`{}`",
        hole: "{x:json}",
        calls: &[("both", "?x=%7B%7D", "{ x = {} }", true)],
    },
];

#[test]
fn each_row_of_the_table_of_absence_has_examples_that_hold() {
    let mut known: BTreeSet<_> = ABSENT.iter().map(|case| case.row.to_owned()).collect();
    // TOML has none, so no example can say it.
    known.insert("`null`".to_owned());
    assert_eq!(known, rows("\n## Absence\n"));
    let mut faults = String::new();
    for (number, case) in ABSENT.iter().enumerate() {
        for (way, query, params, holds) in case.calls {
            let route = Case {
                row: case.row,
                route: "",
                calls: &[],
            };
            let mut text = route.written(number);
            let hole = case.hole;
            text.push_str(&format!("rest = 'GET /r{number}?x={hole}'\n"));
            text.push_str(&example(
                number,
                &(way, &format!("GET PATH{query}"), "", params),
            ));
            let (is_well, said) = checked(&text);
            if is_well != *holds {
                faults.push_str(&format!(
                    "{} {hole} {way} {query:?} {params}: {said}\n",
                    case.row
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}
