//! What an edit of the files leads to.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{
    FLAGS, Folder, MAIN, MORE_ROUTES, ROUTES, at, chain, flip, in_force, poll, routes, watching,
};
use crate::app::control::Polled;
use crate::app::control::restart_only::RestartOnly;
use crate::config::load::load;
use crate::server::admin::Reloaded;
use dualgauge_model::rollout::Stage;

#[tokio::test]
async fn a_bad_edit_keeps_what_was_in_force_and_is_counted_once() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    let plan = control.plan();
    folder.write(
        "flags.toml",
        "[[flag]]\nname = 'ios-first'\nstage = 'sideways'\n",
    );
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Refused)
    );
    for _ in 0..3 {
        assert_eq!(
            poll(&mut control).await,
            Polled::Reloaded(Reloaded::Refused)
        );
    }
    assert_eq!(control.reloads().failed, 1);
    assert_eq!(control.reloads().succeeded, 0);
    assert_eq!(control.reloads().loaded_at, at(0));
    assert!(Arc::ptr_eq(&plan, &control.plan()));
    assert_eq!(control.flags().flags.len(), 3);
    assert_eq!(control.readiness().notes.len(), 1);
    assert!(control.readiness().obstacles.is_empty());
    // A flip still works, over the flags that are in force.
    let flipped = flip("rest-way", Stage::Retired, "100");
    control.change(&flipped, at(1)).await.unwrap();

    // Who asks is told each time.
    assert_eq!(control.reload(at(2)).await, Reloaded::Refused);
    assert_eq!(control.reloads().failed, 2);

    folder.write("flags.toml", FLAGS);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Unchanged)
    );
    assert!(control.readiness().notes.is_empty());
    assert_eq!(poll(&mut control).await, Polled::Quiet);
}

/// Nothing lies beside one main file, so all that is looked at was noted when it was read.
#[tokio::test]
async fn a_start_does_not_read_again_what_it_has_read() {
    let folder = Folder::new();
    let main = MAIN.replace("include = ['routes/*.toml']\n", "");
    folder.write("main.toml", &format!("{main}{ROUTES}"));
    let mut control = folder.open().await;
    assert_eq!(control.poll(at(60)).await, Polled::Quiet);
    folder.write("main.toml", &format!("{main}{ROUTES}{MORE_ROUTES}"));
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(routes(&control), ["tools.call", "items.read"]);
    assert_eq!(poll(&mut control).await, Polled::Quiet);
}

#[tokio::test]
async fn an_edit_between_a_start_and_the_first_look_is_found() {
    let folder = Folder::new();
    let main = MAIN.replace("include = ['routes/*.toml']\n", "");
    folder.write("main.toml", &format!("{main}{ROUTES}"));
    let mut control = folder.open().await;
    folder.write("flags.toml", "");
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert!(control.flags().flags.is_empty());
}

#[tokio::test]
async fn a_good_edit_is_swapped_in() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    folder.write("routes/tools.toml", &format!("{ROUTES}{MORE_ROUTES}"));
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(routes(&control), ["tools.call", "items.read"]);
    assert_eq!(control.plan().routes.routes().len(), 2);
    assert_eq!(control.reloads().succeeded, 1);
    assert_eq!(control.reloads().loaded_at, at(60));
    assert_eq!(poll(&mut control).await, Polled::Quiet);
}

#[tokio::test]
async fn a_file_that_is_still_written_is_not_read() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    folder.write("routes/tools.toml", MORE_ROUTES);
    assert_eq!(control.poll(at(60)).await, Polled::Settling);
    folder.write("routes/tools.toml", &format!("{MORE_ROUTES}{ROUTES}"));
    assert_eq!(control.poll(at(60)).await, Polled::Settling);
    assert_eq!(routes(&control), ["tools.call"]);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(routes(&control), ["items.read", "tools.call"]);
}

#[tokio::test]
async fn a_file_that_is_laid_beside_the_included_ones_is_read() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    folder.write("routes/items.toml", MORE_ROUTES);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(routes(&control), ["items.read", "tools.call"]);
    // The new file is watched from now on, and was read already.
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Unchanged)
    );
    assert_eq!(poll(&mut control).await, Polled::Quiet);
    assert_eq!(control.reloads().succeeded, 1);
}

#[tokio::test]
async fn what_mends_a_problem_is_found_where_nothing_was_before() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    let more = MAIN.replace("['routes/*.toml']", "['routes/*.toml', 'more/*.toml']");
    folder.write("main.toml", &more);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Refused)
    );
    fs::create_dir(folder.path("more")).unwrap();
    folder.write("more/items.toml", MORE_ROUTES);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(routes(&control), ["tools.call", "items.read"]);
    assert_eq!(control.reloads().failed, 1);
}

/// A volume of Kubernetes: the files are links through a folder that is itself a link, which is swapped.
#[cfg(unix)]
#[tokio::test]
async fn a_swapped_symbolic_link_is_a_change() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let retired = FLAGS.replace("passthrough", "retired");
    for (version, text) in [("v1", FLAGS), ("v2", &retired)] {
        fs::create_dir(folder.path(version)).unwrap();
        folder.write(&format!("{version}/flags.toml"), text);
    }
    let swap_to = |version: &str| {
        symlink(Path::new(version), folder.path("..next")).unwrap();
        fs::rename(folder.path("..next"), folder.path("..data")).unwrap();
    };
    swap_to("v1");
    fs::remove_file(folder.path("flags.toml")).unwrap();
    symlink(Path::new("..data/flags.toml"), folder.path("flags.toml")).unwrap();
    let mut control = watching(&folder).await;
    swap_to("v2");
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    assert_eq!(in_force(&control, "ios-first").0, Stage::Retired);
}

#[tokio::test]
async fn what_only_a_start_can_change_stays_and_is_named() {
    let folder = Folder::new();
    let mut control = watching(&folder).await;
    let before = control.config().clone();
    let changed = MAIN.replace("127.0.0.1:0", "127.0.0.1:9999")
        + "[listen]\naddress = '127.0.0.1:1234'\nworkers = 7\nhosts = ['a.example']\n[log]\nlevel = 'debug'\n[limits]\nin_flight = 70\n";
    let changed = changed.replace("flags = ", "state = 'elsewhere'\nflags = ");
    folder.write("main.toml", &changed);
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Swapped)
    );
    let after = control.config();
    assert_eq!(after.listen.address, before.listen.address);
    assert_eq!(after.listen.workers, before.listen.workers);
    // Which hosts are answered is no matter of the listener.
    assert_eq!(control.plan().hosts.len(), 1);
    assert_eq!(after.admin, before.admin);
    assert_eq!(after.rollout.state, before.rollout.state);
    assert_eq!(after.log, before.log);
    let workers = before.listen.workers.value;
    // The workers that were started share the whole.
    assert_eq!(control.plan().limits.in_flight, 70);
    assert!(!folder.path("elsewhere").exists());

    let said = load(&folder.sources()).unwrap();
    let said = RestartOnly::from_config(&said);
    let started = RestartOnly::from_config(&before);
    let mut expected = vec![
        "listen.address",
        "listen.workers",
        "admin.address",
        "rollout.state",
        "log.level",
    ];
    expected.retain(|key| *key != "listen.workers" || workers != 7);
    assert_eq!(said.changes(&started, &started), expected);
    // They are named once, and not when they are set back.
    assert_eq!(control.fixed, said);
    assert!(said.changes(&said, &started).is_empty());
    assert!(started.changes(&said, &started).is_empty());
}

/// The first flag translates for REST callers only, so that the RPC upstream is needed for nothing else.
const REST_FLAG: &str = "
[[flag]]
name = 'ios-first'
side = 'rest'
client = 'ios-*'
stage = 'passthrough'
";

#[tokio::test]
async fn an_edit_that_a_flip_cannot_live_with_is_refused_and_names_the_flip() {
    let folder = Folder::new();
    folder.write("flags.toml", REST_FLAG);
    let mut control = watching(&folder).await;
    let flipped = flip("ios-first", Stage::Translate, "25");
    control.change(&flipped, at(1)).await.unwrap();
    let (upstreams, rest) = MAIN.split_once("[upstream.new]").unwrap();
    let (_, rest) = rest.split_once("[rollout]").unwrap();
    folder.write("main.toml", &format!("{upstreams}[rollout]{rest}"));
    assert_eq!(
        poll(&mut control).await,
        Polled::Reloaded(Reloaded::Refused)
    );
    let said = control.refused.as_ref().unwrap().to_string();
    assert!(
        said.contains("flip of `ios-first`: flag[0].stage: "),
        "{said}"
    );
    assert_eq!(in_force(&control, "ios-first").0, Stage::Translate);

    // A start says how to go on without the flip.
    drop(control);
    let error = folder.begin(at(2)).await.unwrap_err();
    let said = chain(&error);
    assert!(
        said.contains("move `rollout.json` out of the state folder"),
        "{said}"
    );
    fs::remove_file(folder.path("state/rollout.json")).unwrap();
    assert_eq!(
        in_force(&folder.open().await, "ios-first").0,
        Stage::Passthrough
    );
}

#[tokio::test]
async fn the_problems_of_both_files_are_said_at_once() {
    let folder = Folder::new();
    folder.write("flags.toml", "[[flag]]\nname = 'f'\n");
    folder.write("routes/tools.toml", &ROUTES.replace("POST ", ""));
    let said = chain(&folder.begin(at(0)).await.unwrap_err());
    assert!(
        said.contains("flags.toml:1: flag[0]: `stage` is missing"),
        "{said}"
    );
    assert!(said.contains("tools.toml:4: route[0].rest: "), "{said}");
}
