//! Flags among clients, routes and upstreams.

use super::{BOTH, Fixture, NEW, OLD, problems_of, read};

const PEOPLE: &str = "
[[client]]
name = 'ios-app'
match = { header = { x-client-id = 'ios-*' } }
key = { header = 'x-device-id' }
[[client]]
name = 'batch'
match = { header = { x-client-id = 'batch' } }
[[route]]
name = 'agent.search'
rest = 'GET /search'
rpc = 'agent/search'
[[route]]
name = 'tools.list'
rest = 'GET /tools'
rpc = 'tools/list'
";

fn fixture(upstreams: &str, flag: &str) -> Fixture {
    let main = format!("rollout.flags = 'flags.toml'\n{upstreams}{PEOPLE}");
    Fixture::new(&main).file("flags.toml", format!("[[flag]]\nname = 'f'\n{flag}\n"))
}

/// The problems of one flag, whose own keys begin at the third line.
fn wrong(upstreams: &str, flag: &str) -> String {
    problems_of(&fixture(upstreams, flag)).replace("flags.toml:", "")
}

fn right(upstreams: &str, flag: &str) {
    let read = read(&fixture(upstreams, flag));
    read.unwrap_or_else(|problems| panic!("{flag}: {problems}"));
}

#[test]
fn a_flag_speaks_of_somebody_and_something() {
    let cases = [
        (
            "client = 'ios-ap'",
            "3: flag[0].client: `ios-ap` matches no client\n  hint: did you mean `ios-app`?",
        ),
        (
            "client = 'oother'",
            "3: flag[0].client: `oother` matches no client\n  hint: did you mean `other`?",
        ),
        (
            "client = 'android'",
            "3: flag[0].client: `android` matches no client",
        ),
        (
            "route = 'agnt.*'",
            "3: flag[0].route: `agnt.*` matches no route\n  hint: did you mean `agent.*`?",
        ),
        (
            "route = 'tool.list'",
            "3: flag[0].route: `tool.list` matches no route\n  hint: did you mean `tools.list`?",
        ),
    ];
    for (flag, expected) in cases {
        assert_eq!(
            wrong(BOTH, &format!("{flag}\nstage = 'translate'")),
            expected
        );
    }
    right(
        BOTH,
        "client = 'other'\nroute = 'tools.*'\nstage = 'retired'",
    );
}

#[test]
fn a_flag_without_any_route_has_the_location_of_its_table() {
    let main = format!("rollout.flags = 'flags.toml'\n{BOTH}");
    let fixture =
        Fixture::new(&main).file("flags.toml", "\n[[flag]]\nname = 'f'\nstage = 'retired'\n");
    assert_eq!(
        problems_of(&fixture),
        "flags.toml:2: flag[0].route: `*` matches no route"
    );
}

#[test]
fn a_stage_that_cannot_run_is_refused_with_a_way_out() {
    assert_eq!(
        wrong(OLD, "stage = 'translate'"),
        "3: flag[0].stage: `translate` sends calls of the `rest` side to an upstream of the `rpc` side, but none is configured\n  \
         hint: add `[upstream.NAME]` with `side = \"rpc\"`, or limit the flag by `side = \"rpc\"`"
    );
    assert_eq!(
        wrong(NEW, "stage = 'passthrough'\nside = 'rest'\npercent = 0"),
        "3: flag[0].stage: `passthrough` sends calls of the `rest` side to an upstream of the `rest` side, but none is configured\n  \
         hint: add `[upstream.NAME]` with `side = \"rest\"`, or choose another stage"
    );
    right(OLD, "stage = 'translate'\nside = 'rpc'");
    right(OLD, "stage = 'passthrough'\nside = 'rest'");
    right(OLD, "stage = 'retired'");
    right(BOTH, "stage = 'translate'");
}

#[test]
fn a_percentage_needs_callers_with_a_key() {
    let share = |client: &str, more: &str| {
        format!("stage = 'translate'\npercent = 25\nclient = '{client}'\n{more}")
    };
    let hint = "hint: name a client that has a `key`, or write `percent = 100`";
    assert_eq!(
        wrong(BOTH, &share("batch", "")),
        format!(
            "4: flag[0].percent: 25 % of the callers cannot be selected: there is no key for `batch`\n  {hint}"
        )
    );
    assert_eq!(
        wrong(BOTH, &share("b*", "without_key = 'in'")),
        wrong(BOTH, &share("batch", "")),
        "`in` would take everybody, whatever the percentage says"
    );
    assert_eq!(
        wrong(BOTH, &share("*t*h*", "")),
        format!(
            "4: flag[0].percent: 25 % of the callers cannot be selected: there is no key for `batch`, `other`\n  {hint}"
        )
    );
    right(BOTH, &share("*", ""));
    right(BOTH, &share("*", "without_key = 'in'"));
    right(BOTH, &share("ios-app", ""));
    right(BOTH, "stage = 'translate'\nclient = 'batch'\npercent = 0");
    right(BOTH, "stage = 'translate'\nclient = 'batch'\npercent = 100");
    assert!(
        wrong(
            BOTH,
            "stage = 'translate'\nclient = 'other'\npercent = 0\nwithout_key = 'in'"
        )
        .starts_with("5: flag[0].percent: 0 % of the callers")
    );
}

#[test]
fn problems_of_both_files_are_reported_together() {
    let main = "rollout.flags = 'flags.toml'\n[upstream.a]\nside = 'rest'\nurl = 'http://h/?a=1'\n";
    let fixture = Fixture::new(main).file("flags.toml", "[[flag]]\nname = 'f'\n");
    assert_eq!(
        problems_of(&fixture),
        "dualgauge.toml:4: upstream.a.url: a server address cannot have a query; remove `?` and everything after it\n\
         flags.toml:1: flag[0]: `stage` is missing"
    );
    let fixture = Fixture::new(&format!("rollout.flags = 'none.toml'\n{OLD}"));
    assert_eq!(
        problems_of(&fixture),
        "none.toml: cannot be read: No such file or directory (os error 2)\n  \
         hint: `rollout.flags` at dualgauge.toml:1 names this file"
    );
}

#[test]
fn a_flag_of_one_side_needs_a_route_that_is_entered_from_it() {
    let main = |from: &str| {
        let routes = PEOPLE.replace(
            "rpc = 'tools/list'",
            &format!("rpc = 'tools/list'\nfrom = '{from}'"),
        );
        format!("rollout.flags = 'flags.toml'\n{OLD}{routes}")
    };
    let flag = |route: &str, side: &str, stage: &str| {
        format!("[[flag]]\nname = 'f'\nroute = '{route}'\n{side}\nstage = '{stage}'\n")
    };
    let problems = |from: &str, flag: String| {
        let fixture = Fixture::new(&main(from)).file("flags.toml", flag);
        read(&fixture).err().map(|_| problems_of(&fixture))
    };
    assert_eq!(
        problems("rest", flag("tools.*", "side = 'rpc'", "translate")).unwrap(),
        "flags.toml:4: flag[0].side: the flag matches no route that accepts calls of the `rpc` side: each is entered from the other side only\n  \
         hint: write `side = \"rest\"`, or name another route"
    );
    // The other route is entered from both sides.
    assert_eq!(
        problems("rest", flag("*", "side = 'rpc'", "translate")),
        None
    );
    // No call of the REST side can come, so it does not matter that there is no RPC upstream for it.
    assert_eq!(problems("rpc", flag("tools.*", "", "translate")), None);
    assert!(problems("rest", flag("tools.*", "", "translate")).is_some());
}
