//! The state over real files: what a flip, an edit and a restart leave in force.

mod dropped;
mod explained;
mod kill;
mod rearmed;
mod reload;
mod source;
mod source_changes;
mod task;
mod timeline;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use super::{Control, Files, Polled, StartError};
use crate::config::load::Sources;
use crate::server::admin::{ChangeRequest, FlagView, Refusal, Reloaded};
use crate::store::StoreError;
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::rollout::{Percent, Stage};

const MAIN: &str = "
include = ['routes/*.toml']
[admin]
address = '127.0.0.1:0'
[upstream.old]
side = 'rest'
url = 'http://127.0.0.1:9001'
[upstream.new]
side = 'rpc'
url = 'http://127.0.0.1:9002/rpc'
[rollout]
flags = 'flags.toml'
[[client]]
name = 'ios-app'
match = { header = { x-client-id = 'ios-*' } }
key = { header = 'x-device-id' }
";
const ROUTES: &str = "
[[route]]
name = 'tools.call'
rest = 'POST /tools/call'
rpc = 'tools/call'
";
const MORE_ROUTES: &str = "
[[route]]
name = 'items.read'
rest = 'GET /items/{id}'
rpc = 'items/read'
";
const FLAGS: &str = "
[[flag]]
name = 'ios-first'
client = 'ios-*'
stage = 'passthrough'
[[flag]]
name = 'rest-way'
side = 'rpc'
stage = 'translate'
[[flag]]
name = 'others'
client = 'other'
stage = 'passthrough'
";

/// A folder with a configuration in it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path("routes")).unwrap();
        folder.write("main.toml", MAIN);
        folder.write("routes/tools.toml", ROUTES);
        folder.write("flags.toml", FLAGS);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn sources(&self) -> Sources {
        Sources {
            file: Some(self.path("main.toml")),
            ..Sources::default()
        }
    }

    async fn begin(&self, at: SystemTime) -> Result<Control, StartError> {
        Control::open(Files::read(self.sources())?, at).await
    }

    async fn open(&self) -> Control {
        let control = self.begin(at(0)).await;
        control.unwrap_or_else(|error| panic!("{}", chain(&error)))
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn asked(change: Change) -> ChangeRequest {
    ChangeRequest {
        change,
        who: "anna".to_owned(),
        why: None,
        expected: None,
    }
}

fn flip(name: &str, stage: Stage, percent: &str) -> ChangeRequest {
    asked(Change::Flip {
        flag: name.to_owned(),
        stage,
        percent: Percent::parse(percent).unwrap(),
    })
}

fn unflip(name: &str) -> ChangeRequest {
    asked(Change::Unflip {
        flag: name.to_owned(),
    })
}

/// Stage and percentage of a flag as calls see it.
fn in_force(control: &Control, name: &str) -> (Stage, String) {
    let plan = control.plan();
    let mut flags = plan.rollout.flags.iter();
    let flag = flags.find(|flag| flag.name == name).unwrap();
    (flag.stage, flag.percent.to_string())
}

/// Polls until the files have come to rest, as the task does.
async fn poll(control: &mut Control) -> Polled {
    loop {
        match control.poll(at(60)).await {
            Polled::Settling => {}
            rested @ (Polled::Quiet | Polled::Reloaded(_)) => return rested,
        }
    }
}

/// A control whose first looks are over.
async fn watching(folder: &Folder) -> Control {
    let mut control = folder.open().await;
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Unchanged)
    );
    assert_eq!(poll(&mut control).await, Polled::Quiet);
    control
}

fn routes(control: &Control) -> Vec<String> {
    let view = control.plan_view();
    view.routes.into_iter().map(|route| route.name).collect()
}

fn shown(flag: &FlagView) -> (Stage, String, Option<&str>) {
    let who = flag.flipped.as_ref().map(|flipped| flipped.who.as_str());
    (flag.stage, flag.percent.to_string(), who)
}

#[tokio::test]
async fn a_flip_is_in_force_and_survives_a_restart() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let flip = flip("ios-first", Stage::Translate, "33.333");
    control.change(&flip, at(951_782_400)).await.unwrap();
    let flag = control.flag("ios-first").unwrap();
    let expected = (Stage::Translate, "33.333".to_owned(), Some("anna"));
    assert_eq!(shown(&flag), expected);
    assert_eq!(flag.file.stage, Stage::Passthrough);
    assert_eq!(flag.flipped.unwrap().at, "2000-02-29T00:00:00.000Z");
    assert_eq!(
        in_force(&control, "ios-first"),
        (Stage::Translate, "33.333".to_owned())
    );
    drop(control);

    let control = folder.open().await;
    assert_eq!(shown(&control.flag("ios-first").unwrap()), expected);
    assert_eq!(
        in_force(&control, "ios-first"),
        (Stage::Translate, "33.333".to_owned())
    );
    assert_eq!(control.flags().revision, 1);
    let order: Vec<_> = control.flags().flags.into_iter().map(|f| f.name).collect();
    assert_eq!(order, ["ios-first", "rest-way", "others"]);
}

#[tokio::test]
async fn a_flip_is_taken_back_to_what_the_file_says() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let flip = flip("ios-first", Stage::Retired, "100");
    control.change(&flip, at(1)).await.unwrap();
    control.change(&unflip("ios-first"), at(3)).await.unwrap();
    let flag = control.flag("ios-first").unwrap();
    let as_in_file = (Stage::Passthrough, "100".to_owned(), None);
    assert_eq!(shown(&flag), as_in_file);
    assert_eq!(control.flags().revision, 2);
    // Nothing to take back is no change.
    control.change(&unflip("ios-first"), at(3)).await.unwrap();
    assert_eq!(control.flags().revision, 2);
    drop(control);
    assert_eq!(
        shown(&folder.open().await.flag("ios-first").unwrap()),
        as_in_file
    );
}

#[tokio::test]
async fn the_last_flip_of_a_flag_holds() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    for percent in ["5", "25"] {
        let flip = flip("ios-first", Stage::Translate, percent);
        control.change(&flip, at(1)).await.unwrap();
    }
    let other = flip("rest-way", Stage::Retired, "100");
    control.change(&other, at(2)).await.unwrap();
    drop(control);
    let control = folder.open().await;
    assert_eq!(
        in_force(&control, "ios-first"),
        (Stage::Translate, "25".to_owned())
    );
    assert_eq!(
        in_force(&control, "rest-way"),
        (Stage::Retired, "100".to_owned())
    );
    assert_eq!(control.flags().revision, 3);
}

#[tokio::test]
async fn an_unknown_flag_is_told_with_the_nearest() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let refusal = control
        .change(&flip("ios-frist", Stage::Retired, "1"), at(1))
        .await
        .unwrap_err();
    assert!(matches!(refusal, Refusal::Unknown { nearest: Some(name) } if name == "ios-first"));
    let refusal = control
        .change(&unflip("nothing-like-it"), at(3))
        .await
        .unwrap_err();
    assert!(matches!(refusal, Refusal::Unknown { nearest: None }));
}

#[tokio::test]
async fn a_flip_that_does_not_compile_changes_nothing() {
    let folder = Folder::new();
    let one_sided = MAIN
        .replace("side = 'rpc'", "side = 'rest'")
        .replace("upstream.new", "x");
    let one_sided =
        one_sided.split("[x]").next().unwrap().to_owned() + "[rollout]\nflags = 'flags.toml'\n";
    folder.write("main.toml", &one_sided);
    folder.write(
        "flags.toml",
        "[[flag]]\nname = 'rest-only'\nside = 'rest'\nstage = 'passthrough'\n",
    );
    let mut control = folder.open().await;
    let plan = control.plan();
    let flip = flip("rest-only", Stage::Translate, "50");
    let Refusal::Invalid(problems) = control.change(&flip, at(1)).await.unwrap_err() else {
        panic!("a flip that cannot be");
    };
    let said = problems.to_string();
    assert!(
        said.contains("flip of `rest-only`: flag[0].stage: "),
        "{said}"
    );
    // Everything is said at once: nobody here can be told apart either.
    assert!(
        said.contains("flip of `rest-only`: flag[0].percent: "),
        "{said}"
    );
    assert!(Arc::ptr_eq(&plan, &control.plan()));
    assert_eq!(control.flags().revision, 0);
    assert!(!folder.path("state/rollout.json").exists());
}

#[tokio::test]
async fn a_flip_that_cannot_be_stored_is_not_in_force() {
    let folder = Folder::new();
    let mut control = folder.open().await;
    let obstacle = folder.path("state/rollout.json.new");
    fs::create_dir(&obstacle).unwrap();
    let flip = flip("ios-first", Stage::Retired, "100");
    let refusal = control.change(&flip, at(1)).await.unwrap_err();
    assert!(matches!(refusal, Refusal::Store(StoreError::Io { .. })));
    assert_eq!(in_force(&control, "ios-first").0, Stage::Passthrough);
    fs::remove_dir(&obstacle).unwrap();
    control.change(&flip, at(2)).await.unwrap();
    assert_eq!(in_force(&control, "ios-first").0, Stage::Retired);
}

#[tokio::test]
async fn an_edit_of_the_flag_drops_its_flip_and_no_other() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    for name in ["ios-first", "rest-way"] {
        let flip = flip(name, Stage::Retired, "100");
        control.change(&flip, at(1)).await.unwrap();
    }
    folder.write(
        "flags.toml",
        &FLAGS.replace("client = 'ios-*'\n", "client = 'ios-*'\npercent = 10\n"),
    );
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    let flag = control.flag("ios-first").unwrap();
    assert_eq!(shown(&flag), (Stage::Passthrough, "10".to_owned(), None));
    let other = control.flag("rest-way").unwrap();
    assert_eq!(shown(&other).2, Some("anna"));
    // It is off the disk as well.
    assert_eq!(control.flags().revision, 3);
    drop(control);
    folder.write("flags.toml", FLAGS);
    let control = folder.open().await;
    assert_eq!(in_force(&control, "ios-first").0, Stage::Passthrough);
    assert_eq!(in_force(&control, "rest-way").0, Stage::Retired);
}

#[tokio::test]
async fn a_flip_outlives_an_edit_that_does_not_change_its_flag() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    let flip = flip("ios-first", Stage::Retired, "100");
    control.change(&flip, at(1)).await.unwrap();
    let moved = format!("# a comment\n[[flag]]\nname = 'new'\nstage = 'passthrough'\n{FLAGS}");
    folder.write("flags.toml", &moved);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(in_force(&control, "ios-first").0, Stage::Retired);
    assert_eq!(control.flags().flags.len(), 4);
}

#[tokio::test]
async fn a_start_says_what_keeps_it() {
    let folder = Folder::new();
    let first = folder.open().await;
    let second = folder.begin(at(0)).await.unwrap_err();
    assert!(matches!(second, StartError::Store(StoreError::InUse(_))));
    drop(first);
    folder.write("state/rollout.json", "{");
    let damaged = folder.begin(at(0)).await.unwrap_err();
    assert!(chain(&damaged).contains("is damaged; repair it, or move it away"));
    folder.write("main.toml", "unknown = 1\n");
    let wrong = folder.begin(at(0)).await.unwrap_err();
    assert!(matches!(wrong, StartError::Config(_)));
}

#[tokio::test]
async fn the_plan_shows_what_calls_are_served_by() {
    let folder = Folder::new();
    folder.write("routes/items.toml", MORE_ROUTES);
    let view = folder.open().await.plan_view();
    let shown = serde_json::to_value(&view).unwrap();
    let expected = serde_json::json!({
        "routes": [
            {"name": "items.read", "rest": "GET /items/{id}", "rpc": "items/read", "effect": "safe"},
            {"name": "tools.call", "rest": "POST /tools/call", "rpc": "tools/call", "effect": "unsafe"},
        ],
        "clients": [{"name": "ios-app", "source": "header", "proof": "declared"}],
        "upstreams": [{"name": "old", "side": "rest"}, {"name": "new", "side": "rpc"}],
        "defaults": {"rest": "passthrough", "rpc": "passthrough"},
    });
    assert_eq!(shown, expected);
}
