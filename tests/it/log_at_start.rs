//! What goes wrong while a process starts is in its log: nothing is said before the log runs.

use std::fs;
use std::sync::Arc;

use crate::support::{Proxy, Upstream, program, rest_only};
use crate::two_servers::{MOVER, Servers, answers};

#[test]
fn damaged_counts_are_logged_at_the_start() {
    let upstream = Upstream::nowhere();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("watch.json"), "{").unwrap();
    fs::write(folder.path().join("dualgauge.toml"), rest_only(&upstream)).unwrap();
    let proxy = Proxy::run(folder);
    proxy.log_line(&["WARN", "`watch.json` is damaged and was set aside"]);
    assert!(state.join("watch.json.damaged-1").exists());
}

#[test]
fn a_change_of_a_flag_that_was_edited_while_nothing_ran_is_dropped_and_logged() {
    let servers = Servers::start();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let config = format!("{}\n[rollout]\nflags = \"flags.toml\"\n", servers.config());
    fs::write(folder.path().join("dualgauge.toml"), config).unwrap();
    let flags = |stage: &str| {
        let text = MOVER.replace("translate", stage);
        fs::write(folder.path().join("flags.toml"), text).unwrap();
    };
    flags("passthrough");
    let proxy = Proxy::run(folder.clone());
    let flip = r#"{"stage":"translate","percent":100}"#;
    assert_eq!(proxy.ask("PUT", "/api/v1/flags/mover", flip).status(), 200);
    assert_eq!(answers(&proxy, "mover"), "rpc");
    proxy.stop();

    flags("shadow");
    let proxy = Proxy::run(folder.clone());
    proxy.log_line(&[
        "WARN",
        "flag=mover",
        "a runtime change is dropped: the flag was edited in the flags file since",
    ]);
    assert_eq!(answers(&proxy, "mover"), "rest");
}

#[test]
fn a_shared_store_that_is_away_is_logged_at_once() {
    let upstream = Upstream::nowhere();
    let store = Upstream::nowhere();
    let config = format!(
        "{}[rollout.store]\nurl = \"redis://{}/0\"\n",
        rest_only(&upstream),
        store.address()
    );
    let proxy = Proxy::start(&config);
    proxy.log_line(&["ERROR", "the store is unavailable; the flags file applies"]);
    let printed = proxy.printed("  store ");
    assert!(printed.contains(&store.address().to_string()), "{printed}");
}

#[test]
fn an_admin_api_that_nobody_can_use_is_logged() {
    let upstream = Upstream::nowhere();
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("dualgauge.toml");
    fs::write(&main, rest_only(&upstream)).unwrap();
    let mut command = program(&["run", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"]);
    command.arg("--config").arg(main);
    let proxy = Proxy::launch(command, folder);
    proxy.log_line(&[
        "WARN",
        "the admin API is disabled, because other machines can reach `admin.address`",
    ]);
}
