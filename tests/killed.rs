//! The state folder under `kill -9`: a process commits as fast as it can, is killed at any moment, and what it had
//! been told to be stored is there.

#![expect(
    clippy::unwrap_used,
    reason = "what cannot be started or read fails the test"
)]

use std::env;
use std::hint;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dualgauge::store::{ReplicaReport, Store, StoreSettings, Versioned};

/// Where the process that is to be killed works; without it, that test does nothing.
const FOLDER: &str = "STATE_FOLDER_OF_THE_KILLED";
const ROUNDS: u64 = 40;
/// The words that it says: what it was told to be stored.
const STATE: &str = "state ";
const WATCH: &str = "watch ";

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

async fn open(folder: &Path) -> Store {
    let folder = folder.to_path_buf();
    Store::open(&StoreSettings::File { folder }).await.unwrap()
}

/// A text that shows whether it is whole, and is longer than the system writes at once.
fn text(revision: u64) -> String {
    let filling = "x".repeat(20_000 + (revision as usize % 7) * 10_000);
    format!("{{\"revision\":{revision},\"filling\":\"{filling}\",\"end\":{revision}}}")
}

fn report(at: u64) -> ReplicaReport {
    ReplicaReport {
        replica: "one".to_owned(),
        boot: "one".to_owned(),
        at,
        text: text(at).into(),
    }
}

/// Not a test of its own: what is run as a process and killed.
#[test]
fn the_process_that_is_killed_commits_until_then() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    block_on(async {
        let mut store = open(&folder).await;
        let mut revision = store.read(0).await.unwrap().unwrap_or_default().revision;
        let mut out = std::io::stderr();
        loop {
            revision = store.commit(revision, &text(revision + 1)).await.unwrap();
            say(&mut out, STATE, revision);
            store.exchange(&report(revision)).await.unwrap();
            store.flush().await;
            say(&mut out, WATCH, revision);
        }
    });
}

/// In one piece, so that no word is cut by the end.
fn say(out: &mut impl Write, word: &str, revision: u64) {
    out.write_all(format!("{word}{revision}\n").as_bytes())
        .unwrap();
}

/// Runs it until it has said so many words more, and a little longer; gives the last state and the last report that it was told to be stored.
fn run_and_kill(folder: &Path, (words, spins): (u64, u64)) -> (u64, u64) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "the_process_that_is_killed_commits_until_then",
            "--nocapture",
        ])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = (0, 0);
    let mut note = |line: String| {
        if let Some(revision) = line.strip_prefix(STATE) {
            said.0 = revision.parse().unwrap();
        } else if let Some(revision) = line.strip_prefix(WATCH) {
            said.1 = revision.parse().unwrap();
        }
    };
    // It is at work from its first word on.
    for _ in 0..=words {
        note(lines.next().unwrap().unwrap());
    }
    for _ in 0..spins {
        hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lines.map_while(Result::ok).for_each(note);
    said
}

#[test]
fn what_was_confirmed_survives_kill_9_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut before = 0;
    for round in 0..ROUNDS {
        // From at once to several commits later, and at uneven moments within one.
        let moment = (round % 8, round * 7_919_000 % 230_000);
        let (state, watch) = run_and_kill(folder.path(), moment);
        assert!(state > before, "round {round}: nothing was committed");
        block_on(async {
            let mut store = open(folder.path()).await;
            let Versioned {
                revision,
                text: found,
            } = store.read(0).await.unwrap().unwrap();
            // One more may have been stored than it could tell.
            assert!(
                (state..=state + 1).contains(&revision),
                "round {round}: {state}, {revision}"
            );
            assert_eq!(found, text(revision), "round {round}");
            let own = ReplicaReport {
                boot: "checker".to_owned(),
                ..report(1)
            };
            let told = store.exchange(&own).await.unwrap().reports;
            store.flush().await;
            let left = told
                .iter()
                .find(|report| report.boot == "one")
                .unwrap_or(&own);
            assert!(left.at >= watch, "round {round}: {watch}, {}", left.at);
            assert!(
                left.boot == "checker" || *left.text == text(left.at),
                "round {round}"
            );
            before = revision;
        });
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(
            names,
            ["lock", "rollout.json", "watch.json"],
            "round {round}"
        );
    }
}
