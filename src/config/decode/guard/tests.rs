//! Guards and ramps, decoded and compiled as the flags file has them.

use std::path::Path;
use std::time::Duration;

use crate::config::compile;
use crate::config::key::{SubTable, TableShape, table};
use crate::config::layer::{Layer, Merged};
use crate::config::problem::Problems;
use crate::config::table_reader;
use crate::config::toml::{KeyPath, TomlDocument};
use dualgauge_model::rollout::{Fast, Guard, Limits, Mode, Percent, Ramp, Ratio, Share};

static FLAGS: SubTable = table("flag", &super::GUARD).of(TableShape::List);
static OF_GUARD: SubTable = table("guard", &super::GUARD);
static OF_RAMP: SubTable = table("ramp", &super::RAMP);

/// The guard and the ramp of a flag.
type Both = (Option<Guard>, Option<Ramp>);

/// Returns the guards and ramps of the flags of a text.
fn flags(text: &str) -> Result<Vec<Both>, Problems> {
    let document = TomlDocument::new(Path::new("flags.toml"), text.to_owned());
    let mut layer = Layer::new("flags");
    let mut problems = document.add_to(&mut layer, KeyPath::Main)?;
    let merged = Merged::new(vec![layer])?;
    let flags = table_reader::read(&merged, &mut problems, |table| {
        Some(table.tables(&FLAGS, |flag| {
            for other in ["name", "client", "route", "side", "stage"] {
                flag.shape(other);
            }
            let guard = flag.table(&OF_GUARD, super::guard);
            let ramp = flag.table(&OF_RAMP, super::ramp);
            Some((guard, ramp))
        }))
    });
    let compiled = flags.unwrap_or_default().into_iter().map(|(guard, ramp)| {
        let guard = guard.map(|guard| compile::guard::guard(&guard, &mut problems));
        let ramp = ramp.and_then(|raw| compile::guard::ramp(&raw, guard.as_ref(), &mut problems));
        (guard, ramp)
    });
    let compiled = compiled.collect();
    Problems::unless(problems, compiled)
}

fn one(text: &str) -> (Option<Guard>, Option<Ramp>) {
    let flags = flags(&format!("[[flag]]\nname = 'f'\n{text}\n"));
    flags
        .unwrap_or_else(|problems| panic!("{problems}"))
        .remove(0)
}

fn problems(text: &str) -> String {
    flags(&format!("[[flag]]\n{text}\n"))
        .unwrap_err()
        .to_string()
}

fn share(millionths: u32) -> Option<Share> {
    Share::from_millionths(millionths)
}

#[test]
fn a_guard_of_nothing_has_the_usual_limits() {
    assert_eq!(one("guard = {}"), (Some(Guard::default()), None));
}

#[test]
fn every_key_of_a_guard_is_read() {
    let (guard, _) = one(
        "[flag.guard]\nwindow = '5m'\nmin_calls = 1000\nfailure_delta = 0.005\n\
        refused_delta = 'off'\ntool_error_delta = 0.04\nlatency_ratio = 1.25\nmismatch = 0\nfast = { in_row = 5, share = 0.75 }\ndry_run = true",
    );
    let expected = Guard {
        window: Duration::from_secs(300),
        min_calls: 1000,
        limits: Limits {
            failure_delta: share(5_000),
            refused_delta: None,
            tool_error_delta: share(40_000),
            latency_ratio: Ratio::from_thousandths(1_250),
            mismatch: share(0),
        },
        fast: share(750_000).map(|share| Fast {
            in_row: 5,
            calls: 20,
            share,
        }),
        mode: Mode::DryRun,
    };
    assert_eq!(guard, Some(expected));
    let (guard, _) = one("guard = { fast = 'off' }");
    assert_eq!(guard.and_then(|guard| guard.fast), None);
}

#[test]
fn a_ramp_has_steps_and_a_time() {
    let (_, ramp) = one("guard = {}\nramp = { steps = [0.5, 5, '25%', 100], every = '10m' }");
    let ramp = ramp.expect("there is one");
    let steps = ramp.steps().iter().map(|step| step.thousandths());
    assert_eq!(steps.collect::<Vec<_>>(), [500, 5_000, 25_000, 100_000]);
    assert_eq!(ramp.percent(3), Percent::ALL);
    assert_eq!(ramp.every(), Duration::from_secs(600));
}

#[test]
fn every_problem_is_reported_at_once() {
    assert_eq!(
        problems(
            "[flag.guard]\nwindow = '5s'\nmin_calls = 1\nfailure_delta = 2\nrefused_delta = 0.0001\n\
             latency_ratio = 1\nmismatch = '0.1'\nfast = true\nfailures = 3"
        ),
        "flags.toml:3: flag[0].guard.window: a window must be from `10s` to `24h`
flags.toml:4: flag[0].guard.min_calls: the number `1` is not a whole number from 10 to 1000000
flags.toml:5: flag[0].guard.failure_delta: the number `2` is not a share from 0.001 to 0.5; write one, or `\"off\"`
  hint: 2 % is 0.02
flags.toml:6: flag[0].guard.refused_delta: the number `0.0001` is not a share from 0.001 to 0.5; write one, or `\"off\"`
flags.toml:7: flag[0].guard.latency_ratio: the number `1` is not a ratio from 1.1 to 100; write one, or `\"off\"`
flags.toml:8: flag[0].guard.mismatch: the string `0.1` is not a share from 0 to 0.5; write one, or `\"off\"`
flags.toml:9: flag[0].guard.fast: the boolean `true` is not allowed here; write `\"off\"`, or a table such as `{ in_row = 10, calls = 20, share = 0.5 }`
flags.toml:10: flag[0].guard.failures: unknown key"
    );
}

#[test]
fn what_would_never_act_or_never_stop_is_refused() {
    assert_eq!(
        problems(
            "guard = { failure_delta = 'off', refused_delta = 'off', tool_error_delta = 'off', latency_ratio = 'off' }"
        ),
        "flags.toml:2: flag[0].guard: every limit is off, so the guard would never trip; set one, or remove the guard"
    );
    assert_eq!(
        problems("ramp = { steps = [1, 100], every = '10m' }"),
        "flags.toml:2: flag[0].ramp: a ramp needs a `guard`: without one nothing would ever stop it\n  hint: write `guard = {}` for the default limits"
    );
    assert_eq!(
        problems("guard = {}\nramp = { steps = [5, 1], every = '10m' }"),
        "flags.toml:3: flag[0].ramp.steps[1]: the step 1 does not rise above 5; write steps such as `[1, 5, 25, 50, 100]`"
    );
    assert_eq!(
        problems("guard = {}\nramp = { steps = [], every = '30s' }"),
        "flags.toml:3: flag[0].ramp: a ramp has at least one step\n  hint: write `steps = [1, 5, 25, 50, 100]`"
    );
    assert_eq!(
        problems("guard = {}\nramp = { steps = [5], every = '30s' }"),
        "flags.toml:3: flag[0].ramp.every: a step of 30s is shorter than the guard's window of 60s"
    );
    assert_eq!(
        problems("guard = {}\nramp = {}"),
        "flags.toml:3: flag[0].ramp: `every` is missing\nflags.toml:3: flag[0].ramp: `steps` is missing"
    );
}

#[test]
fn every_flag_in_the_documentation_is_accepted() {
    let page = include_str!("../../../../docs/explanation/guard.md");
    let blocks = page.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|rest| Some(rest.split_once("\n```")?.0))
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let read = flags(block).unwrap_or_else(|problems| panic!("{block}\n{problems}"));
        assert!(read.iter().any(|(guard, _)| guard.is_some()), "{block}");
    }
}
