//! Children that do not want to end, and that cannot be started at first; candidates that a child answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{ROUTE, STARTS, ask, child, metric};
use crate::scene::{body_of, json, rpc_failure};
use crate::support::{Proxy, Upstream, becomes, eventually};

/// A shell that ignores the end of its input and has a child of its own; it answers nothing. The script does what `trap`
/// says on SIGTERM.
fn stubborn(trap: &str) -> Proxy {
    let script = format!(
        "trap '{trap}' TERM\nsleep 1000 &\necho $! > members\necho $$ >> members\nmv members group\n\
         while :; do wait; done\n"
    );
    let config = "[upstream.child]\nside = \"rpc\"\ncommand = [\"/bin/sh\", \"stubborn.sh\"]\n\
        directory = \".\"\nhandshake = \"none\"\n";
    Proxy::start_with(config, &[("stubborn.sh", &script)])
}

/// The processes of the child's group, once they are all there.
fn group(folder: &Path) -> Vec<u32> {
    let told = eventually("the group of the child", || {
        fs::read_to_string(folder.join("group")).ok()
    });
    told.lines().map(|line| line.parse().unwrap()).collect()
}

fn runs(process: u32) -> bool {
    // One that is dead and not yet taken note of by its parent runs no more.
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = state.rsplit(')').next().unwrap_or_default().trim();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn a_child_that_ignores_the_end_of_its_input_is_told_by_signals_with_its_whole_group() {
    std::thread::scope(|scope| {
        for (trap, kills) in [("exit 0", false), ("", true)] {
            scope.spawn(move || {
                let proxy = stubborn(trap);
                let members = group(proxy.folder());
                assert_eq!(members.len(), 2);
                assert!(members.iter().all(|member| runs(*member)), "{members:?}");
                let stopped = proxy.stop();
                assert!(stopped.status.success(), "{stopped:?}");
                let told = |signal: &str| {
                    let lines = stopped.log.lines();
                    let mut lines =
                        lines.filter(|line| line.contains("the child process does not exit"));
                    lines.any(|line| line.contains(signal))
                };
                assert!(told("TERM"), "{stopped:?}");
                assert_eq!(told("KILL"), kills, "{stopped:?}");
                for member in members {
                    becomes(|| runs(member), &false);
                }
            });
        }
    });
}

/// Two processes leave the group of the child: one keeps its standard output and has lost its parent, the other has a
/// parent in the group and none of the pipes.
#[test]
fn processes_of_a_child_that_leave_its_group_and_survive_it_are_logged() {
    let stays = |file: &str, output: &str, ends: &str| {
        format!(
            "(setsid sh -c 'echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000' {output} {ends}\n"
        )
    };
    let script = [
        stays("holds", "2> /dev/null", "&)"),
        stays("detached", "> /dev/null 2>&1", ") &"),
        "while read -r line; do :; done\n".to_owned(),
    ]
    .concat();
    let config = "[upstream.child]\nside = \"rpc\"\ncommand = [\"/bin/sh\", \"leaves.sh\"]\n\
        directory = \".\"\nhandshake = \"none\"\n";
    let proxy = Proxy::start_with(config, &[("leaves.sh", &script)]);
    let survivors = ["holds", "detached"].map(|file| {
        let pid = eventually("a process that leaves", || {
            fs::read_to_string(proxy.folder().join(file)).ok()
        });
        pid.trim().parse::<u32>().unwrap()
    });
    let stopped = proxy.stop();
    for pid in survivors {
        let killed = std::process::Command::new("kill")
            .args(["-s", "KILL", &pid.to_string()])
            .status();
        assert!(killed.unwrap().success(), "it was alive");
        let told = format!("pid={pid}");
        let mut lines = stopped.log.lines();
        assert!(
            lines
                .any(|line| line.contains("left its process group and survived")
                    && line.contains(&told)),
            "{stopped:?}"
        );
    }
}

#[test]
fn a_child_that_cannot_be_started_at_first_is_tried_again() {
    let keys = child::command();
    let (_, variables) = keys.split_once('\n').unwrap();
    let config = format!(
        "[upstream.child]\nside = \"rpc\"\ncommand = [\"./late.sh\"]\nconnect_timeout = \"50ms\"\n{variables}"
    );
    let proxy = Proxy::start(&config);
    // It fails soon, and not after the time of a call.
    let failure = ask(&proxy, "echo");
    assert_eq!(rpc_failure(&failure), (-31021, "upstream_unreachable"));
    proxy.log_line(&["the link is lost", "cannot start"]);
    becomes(|| metric(&proxy, STARTS) >= 2.0, &true);
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nexec {} stdio::child::speaks --exact --nocapture --test-threads=2\n",
        program.display()
    );
    let (written, late) = (
        proxy.folder().join("written"),
        proxy.folder().join("late.sh"),
    );
    fs::write(&written, script).unwrap();
    fs::set_permissions(&written, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&written, &late).unwrap();
    let answer = eventually("the child", || {
        Some(ask(&proxy, "echo")).filter(|answer| answer["result"].is_object())
    });
    assert_eq!(answer["id"], 1);
}

#[test]
fn a_child_answers_candidates_and_only_they_notice_when_it_does_not() {
    let old = Upstream::answering(json(r#"{"said":"now"}"#));
    let address = old.address();
    let route = ROUTE.replace("rpc = \"ask\"", "rpc = \"ask\"\neffect = \"safe\"");
    let config = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"http://{address}\"\n{}[rollout]\ndefault = {{ rest = \"shadow\", rpc = \"passthrough\" }}\n\
         [rollout.candidates]\nnoise = 0\n{route}",
        super::config("").replace("workers = 2\n", "workers = 1\n"),
    );
    let proxy = Proxy::start(&config);
    let verdicts = |verdict: &str| {
        let table = proxy.metrics().table(
            "dualgauge_verdicts_total",
            &["route", "client", "side", "stage", "verdict"],
        );
        table
            .get(&format!("ask other rest shadow {verdict}"))
            .copied()
            .unwrap_or(0.0)
    };
    for (what, verdict) in [("now", "match"), ("then", "mismatch")] {
        let answer = proxy.rest("POST", &format!("/ask/{what}"), &[], "");
        assert_eq!(body_of(&answer, 200), r#"{"said":"now"}"#);
        becomes(|| verdicts(verdict), &1.0);
    }
    assert_eq!(old.requests().len(), 2);
    // The next candidate finds the child gone, and its client is answered as before.
    assert_eq!(ask(&proxy, "leave")["result"], "bye");
    let answer = proxy.rest("POST", "/ask/now", &[], "");
    assert_eq!(body_of(&answer, 200), r#"{"said":"now"}"#);
    becomes(|| verdicts("match"), &2.0);
    becomes(|| metric(&proxy, "dualgauge_candidates_in_flight"), &0.0);
}
