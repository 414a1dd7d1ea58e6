//! Tables made at random from a seed go through `check`, `explain` and the real program, in both directions; what
//! their maker knows of them is what must come.

use std::any::Any;
use std::fs;
use std::thread;

use tempfile::TempDir;

use crate::random::call::{Call, Reply};
use crate::random::dice::Dice;
use crate::random::explained::{assert_sent, explain};
use crate::random::pattern::Bindings;
use crate::random::route::{Route, Side};
use crate::random::row::Row;
use crate::random::scripted::Scripted;
use crate::random::table::Table;
use crate::random::verdicts::{Verdict, Verdicts, check};
use crate::support::{Proxy, Upstream};

const SEEDS: [u64; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
/// Another seed may be given by this variable; it runs alone.
const SEED: &str = "RANDOM_TABLE_SEED";
/// Calls of each route and side.
const CALLS: usize = 3;

/// Two proxies with one table, the outer before the inner, and the servers behind the inner one.
struct Bench {
    table: Table,
    folder: TempDir,
    rest: Scripted,
    rpc: Scripted,
    inner: Proxy,
    outer: Proxy,
}

/// A call and its answer, as the one who makes them up knows them.
struct Case {
    route: usize,
    from: Side,
    /// What the client sends, and what reaches a server of the other side.
    sent: Call,
    /// The same, perhaps with what no pattern names.
    with_more: Call,
    arrives: Call,
    answer: Option<Answer>,
}

/// What a server of the other side says, and what the client gets; and what one of the client's own side says.
struct Answer {
    row: usize,
    said: Reply,
    got: Reply,
    said_at_home: Reply,
}

fn config(rest: &str, rpc: &str) -> String {
    format!(
        "include = [\"routes.toml\"]\nunrouted = \"reject\"\n[listen]\nworkers = 1\n\
         [rollout]\ndefault = {{ rest = \"translate\", rpc = \"translate\" }}\n\
         [upstream.rest]\nside = \"rest\"\nurl = \"http://{rest}\"\n\
         [upstream.rpc]\nside = \"rpc\"\nurl = \"http://{rpc}/rpc\"\n"
    )
}

impl Bench {
    fn start(seed: u64) -> (Bench, Dice) {
        let mut dice = Dice::of(seed);
        let table = Table::make(&mut dice);
        let routes = table.toml();
        // For the eye: printed where the seed fails.
        eprintln!("# seed {seed}\n{routes}");
        let (rest, rpc) = (Scripted::start(), Scripted::start());
        let address = |upstream: &Upstream| upstream.address().to_string();
        let main = config(&address(&rest.upstream), &address(&rpc.upstream));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("routes.toml"), &routes).unwrap();
        fs::write(folder.path().join("dualgauge.toml"), &main).unwrap();
        let files = [("routes.toml", routes.as_str())];
        let inner = Proxy::start_with(&main, &files);
        let behind = inner.address().to_string();
        let outer = Proxy::start_with(&config(&behind, &behind), &files);
        let bench = Bench {
            table,
            folder,
            rest,
            rpc,
            inner,
            outer,
        };
        (bench, dice)
    }

    fn route(&self, case: &Case) -> &Route {
        &self.table.routes[case.route]
    }

    fn server(&self, side: Side) -> &Scripted {
        match side {
            Side::Rest => &self.rest,
            Side::Rpc => &self.rpc,
        }
    }

    fn cases(&self, dice: &mut Dice) -> Vec<Case> {
        let mut cases = Vec::new();
        for (index, route) in self.table.routes.iter().enumerate() {
            let rows = self.table.rows(index);
            for number in 0..CALLS.max(rows.len()) {
                for from in Side::ALL {
                    let thrown = route.holes.throw(from, dice);
                    let read = route.holes.read(from, &thrown);
                    let row = (!rows.is_empty()).then(|| number % rows.len());
                    let answer = row.map(|row| answer((row, rows[row].1), &read, from, dice));
                    let written = route.holes.written(from.other(), &read);
                    let mut sent = route.call(from, &thrown);
                    if dice.once_in(2) {
                        route.empty_otherwise(&mut sent);
                    }
                    let with_more = match dice.once_in(2) {
                        true => route.with_unknown(&sent),
                        false => sent.clone(),
                    };
                    cases.push(Case {
                        route: index,
                        from,
                        sent,
                        with_more,
                        arrives: route.call(from.other(), &written),
                        answer,
                    });
                }
            }
        }
        cases
    }

    /// One call before the inner proxy.
    fn goes(&self, case: &Case, explained: &crate::random::json::Json) {
        let route = self.route(case);
        let server = self.server(case.from.other());
        let said = case.answer.as_ref().map(|answer| &answer.said);
        server.says(said.unwrap_or(&fallback(case.from.other())));
        let before = server.count();
        let answer = case.with_more.make(&self.inner, &route.verb);
        let shown = format!("{:?} of {}: {answer:?}", case.with_more, route.name);
        assert_eq!(server.count(), before + 1, "it did not arrive: {shown}");
        let came = server.since(before);
        assert_sent(explained, &came);
        assert_eq!(
            Call::of(&came, &route.named_headers()),
            case.arrives,
            "{shown}"
        );
        if let Some(expected) = &case.answer {
            let named = self.table.rows(case.route)[expected.row].1.named_headers();
            let got = Reply::of(&answer, &case.sent, &named);
            assert_eq!(got, expected.got, "{:?} to {shown}", expected.said);
        }
    }

    /// One call there and back: the call that arrives, and what the client gets for a reply.
    fn trip(&self, case: &Case, call: &Call, reply: &Reply) -> (Call, Reply) {
        let route = self.route(case);
        let server = self.server(case.from);
        server.says(reply);
        let before = server.count();
        let answer = call.make(&self.outer, &route.verb);
        assert_eq!(
            server.count(),
            before + 1,
            "{call:?} did not arrive: {answer:?}"
        );
        let came = server.since(before);
        let row = case.answer.as_ref().map(|answer| answer.row);
        let named = row.map(|row| self.table.rows(case.route)[row].1.named_headers());
        let got = Reply::of(&answer, call, &named.unwrap_or_default());
        (Call::of(&came, &route.named_headers()), got)
    }

    /// One call before both proxies, held against the verdicts.
    fn comes_back(&self, case: &Case, verdicts: &Verdicts) {
        let route = self.route(case);
        let (call, said) = verdicts.of(&route.name, None, case.from);
        if call == Verdict::Lossy {
            return;
        }
        let home = case.answer.as_ref().map(|answer| &answer.said_at_home);
        let home = home.cloned().unwrap_or_else(|| fallback(case.from));
        let (came, got) = self.trip(case, &case.sent, &home);
        let (again, got_again) = self.trip(case, &came, &got);
        match call {
            Verdict::Lossless => assert_eq!(came, case.sent, "{said}"),
            Verdict::NormalForm => assert_eq!(again, came, "{said}"),
            Verdict::Lossy => {}
        }
        let Some(answer) = &case.answer else {
            return;
        };
        let key = &self.table.rows(case.route)[answer.row].0;
        let (reply, said) = verdicts.of(&route.name, Some(key), case.from);
        match reply {
            Verdict::Lossless => assert_eq!(got, home, "{said}"),
            Verdict::NormalForm => assert_eq!(got_again, got, "{said}"),
            Verdict::Lossy => {}
        }
    }

    /// What is marked as lossy is what is found to be.
    fn losses_are_as_made(&self, verdicts: &Verdicts) {
        for (index, route) in self.table.routes.iter().enumerate() {
            for side in Side::ALL {
                let known = |loses: &[Side], row: Option<&str>| {
                    let (verdict, said) = verdicts.of(&route.name, row, side);
                    assert_eq!(verdict == Verdict::Lossy, loses.contains(&side), "{said}");
                };
                if !route.may_lose() {
                    known(&route.loses, None);
                }
                for (key, row) in self.table.rows(index) {
                    known(&row.loses, Some(&key));
                }
            }
        }
    }
}

/// An answer where a route has no row of its own.
fn fallback(side: Side) -> Reply {
    let nothing = crate::random::json::Json::object([]);
    match side {
        Side::Rest => Reply::Rest {
            status: 200,
            headers: Default::default(),
            content: crate::random::call::Content::Json(nothing),
        },
        Side::Rpc => Reply::Rpc(crate::random::json::Json::object([("result", nothing)])),
    }
}

fn answer((index, row): (usize, &Row), call: &Bindings, from: Side, dice: &mut Dice) -> Answer {
    let with_call = |mut bindings: Bindings| {
        bindings.values.extend(call.values.clone());
        bindings
    };
    let thrown = with_call(row.holes.throw(from.other(), dice));
    let read = row.holes.read(from.other(), &thrown);
    let written = row.holes.written(from, &read);
    let mut said = row.reply(from.other(), &thrown);
    if dice.once_in(2) {
        said = row.by_another_number(said);
    }
    let at_home = with_call(row.holes.throw(from, dice));
    Answer {
        row: index,
        said,
        got: row.reply(from, &written),
        said_at_home: row.reply(from, &at_home),
    }
}

/// What the verdicts of one table are, in numbers.
fn run(seed: u64) -> [usize; 3] {
    let (bench, mut dice) = Bench::start(seed);
    let verdicts = check(bench.folder.path());
    bench.losses_are_as_made(&verdicts);
    let cases = bench.cases(&mut dice);
    let files = cases
        .iter()
        .map(|case| case.with_more.http_file(&bench.route(case).verb));
    let explained = explain(bench.folder.path(), &files.collect::<String>());
    assert_eq!(explained.len(), cases.len());
    for (case, explained) in cases.iter().zip(&explained) {
        bench.goes(case, explained);
    }
    for case in &cases {
        bench.comes_back(case, &verdicts);
    }
    [Verdict::Lossless, Verdict::NormalForm, Verdict::Lossy].map(|verdict| verdicts.count(verdict))
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("?")
}

#[test]
fn a_table_made_at_random_does_what_check_and_explain_say() {
    let given = std::env::var_os(SEED);
    let seeds = match &given {
        Some(seed) => vec![seed.to_str().unwrap().parse().unwrap()],
        None => SEEDS.to_vec(),
    };
    let runs = seeds.into_iter();
    let runs: Vec<_> = runs
        .map(|seed| (seed, thread::spawn(move || run(seed))))
        .collect();
    let mut totals = [0; 3];
    let mut failed = Vec::new();
    for (seed, run) in runs {
        match run.join() {
            Ok(counts) => {
                totals
                    .iter_mut()
                    .zip(counts)
                    .for_each(|(total, count)| *total += count);
            }
            Err(panic) => failed.push(format!("seed {seed}: {}", text_of(panic.as_ref()))),
        }
    }
    assert!(
        failed.is_empty(),
        "{SEED}=N runs a seed alone\n{}",
        failed.join("\n\n")
    );
    assert!(totals.iter().all(|total| *total > 5), "{totals:?}");
}
