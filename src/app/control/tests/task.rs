//! The task that owns the state, on a clock that only waits when everything else does.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::{FLAGS, Folder, asked, flip, unflip};
use crate::app::control::{Facts, Hooks, ReportCounts, own};
use crate::app::recordings::Recordings;
use crate::server::admin::{
    AdminApi, AdminCommand, AdminTokens, ChangeRequest, FlagView, LiveStreams, Readiness, Refusal,
    Reloaded,
};
use crate::telemetry::clock::now;
use crate::telemetry::metrics::{CallTable, LabelNames};
use crate::telemetry::recorder::Recorder;
use dualgauge_model::compare::{MismatchDetail, Mismatches};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::rollout::{Glob, Kill, Stage};
use dualgauge_model::time::Timestamp;

type Commands = mpsc::Sender<AdminCommand>;

async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(600), future).await.unwrap()
}

async fn ask<T>(
    commands: &Commands,
    command: impl FnOnce(oneshot::Sender<T>) -> AdminCommand,
) -> T {
    let (reply, answer) = oneshot::channel();
    commands.send(command(reply)).await.unwrap();
    within(answer).await.unwrap()
}

async fn change(commands: &Commands, asked: ChangeRequest) -> Result<FlagView, Refusal> {
    let flags = ask(commands, |reply| AdminCommand::Change { asked, reply }).await?;
    Ok(flags.flags.into_iter().next().unwrap())
}

async fn flip_to(commands: &Commands, stage: Stage) -> Result<FlagView, Refusal> {
    change(commands, flip("ios-first", stage, "100")).await
}

async fn ready(commands: &Commands) -> Readiness {
    ask(commands, AdminCommand::Ready).await
}

/// What the workers of a test were given.
#[derive(Default)]
struct Workers {
    plans: RefCell<Vec<Arc<Plan>>>,
    stuck: Cell<bool>,
}

impl Workers {
    async fn install(&self, plan: Arc<Plan>) {
        if self.stuck.get() {
            pending::<()>().await;
        }
        self.plans.borrow_mut().push(plan);
    }

    fn stages(&self) -> Vec<Stage> {
        let plans = self.plans.borrow();
        let stages = plans.iter().map(|plan| plan.rollout.flags[0].stage);
        stages.collect()
    }

    fn kills(&self) -> Vec<Kill> {
        let plans = self.plans.borrow();
        plans.iter().map(|plan| plan.rollout.kill).collect()
    }
}

/// Runs the task over a folder, and `test` beside it; both end.
async fn owning(folder: &Folder, workers: &Workers, test: impl AsyncFnOnce(Commands)) {
    let (commands, received) = mpsc::channel(4);
    let hooks = Hooks {
        install: async |plan| workers.install(plan).await,
        metrics: async |plan: Arc<Plan>, facts: Facts| {
            format!("{} {}", plan.rollout.flags.len(), facts.reloads.failed)
        },
        counts: async |_: Arc<Plan>, _: Timestamp| ReportCounts::default(),
        mismatches: async |_: MismatchDetail| Mismatches::default(),
        calls: async || CallTable::new(&LabelNames::new(), Vec::new(), UNIX_EPOCH),
        forget: async |routes: &Glob| vec![routes.as_str().to_owned()],
        upstreams: async |_: Arc<Plan>| Readiness::default(),
        recordings: Rc::new(Recordings::new(Recorder::open().0)),
    };
    let owner = Box::pin(own(folder.open().await, received, hooks));
    within(async { tokio::join!(owner, test(commands)) }).await;
}

#[tokio::test(start_paused = true)]
async fn a_flip_is_answered_once_it_is_stored_and_with_the_workers() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        let flag = flip_to(&commands, Stage::Translate).await.unwrap();
        assert_eq!(flag.stage, Stage::Translate);
        assert_eq!(workers.stages(), [Stage::Translate]);
        assert!(folder.path("state/rollout.json").exists());
        let flag = change(&commands, unflip("ios-first")).await.unwrap();
        assert_eq!(flag.flipped, None);
        assert_eq!(workers.stages(), [Stage::Translate, Stage::Passthrough]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_the_whole_way() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        let address = "127.0.0.1:9090".parse().unwrap();
        let admin = AdminApi::new(
            address,
            AdminTokens::default(),
            commands,
            LiveStreams::default(),
        );
        let ask = async |method: &str, path: &str, body: &'static str| {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", "localhost:9090")
                .header("content-type", "application/json")
                .body(Full::<Bytes>::from(body))
                .unwrap();
            let (head, body) = within(admin.answer(request)).await.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            (head.status.as_u16(), value)
        };
        let body = r#"{"stage": "translate", "percent": 0.001}"#;
        let (status, flag) = ask("PUT", "/api/v1/flags/ios-first", body).await;
        assert_eq!((status, &flag["percent"]), (200, &json!(0.001)));
        assert_eq!(flag["flipped"]["who"], "admin api");
        assert_eq!(workers.stages(), [Stage::Translate]);
        let (_, listed) = ask("GET", "/api/v1/flags", "").await;
        assert_eq!(
            (&listed["revision"], &listed["flags"][0]),
            (&json!(1), &flag)
        );
        assert_eq!(listed["flags"][1]["side"], "rpc");
        // No client of this flag has a key, so a share of them is nobody.
        let (status, problem) = ask("PUT", "/api/v1/flags/others", body).await;
        assert_eq!(status, 422, "{problem}");
        assert_eq!(problem["problems"][0]["key"], "flag[2].percent");
        let (status, flag) = ask("DELETE", "/api/v1/flags/ios-first", "").await;
        assert_eq!((status, &flag["stage"]), (200, &json!("passthrough")));
        assert_eq!(ask("GET", "/api/v1/flags/nobody", "").await.0, 404);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_with_the_workers_within_a_second() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        // Some time after the start, at no particular moment between two looks.
        sleep(Duration::from_millis(7_130)).await;
        assert_eq!(workers.stages(), []);
        folder.write("flags.toml", &FLAGS.replace("passthrough", "retired"));
        let edited = now();
        while workers.stages().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        assert!(now() - edited < Duration::from_secs(1));
        assert_eq!(workers.stages(), [Stage::Retired]);
        drop(commands);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reload_that_is_asked_for_does_not_wait_for_a_look() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        let asked = now();
        assert_eq!(
            ask(&commands, AdminCommand::Reload).await,
            Reloaded::Unchanged
        );
        folder.write("flags.toml", &FLAGS.replace("passthrough", "retired"));
        assert_eq!(
            ask(&commands, AdminCommand::Reload).await,
            Reloaded::Swapped
        );
        assert_eq!(workers.stages(), [Stage::Retired]);
        folder.write("flags.toml", "x");
        assert_eq!(
            ask(&commands, AdminCommand::Reload).await,
            Reloaded::Refused
        );
        assert_eq!(now(), asked);
        assert_eq!(ask(&commands, AdminCommand::Metrics).await, "3 1");
        assert_eq!(ask(&commands, AdminCommand::Flags).await.flags.len(), 3);
        assert_eq!(ask(&commands, AdminCommand::Plan).await.routes.len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn workers_that_do_not_take_a_plan_are_offered_it_again() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        workers.stuck.set(true);
        let refusal = flip_to(&commands, Stage::Retired).await.unwrap_err();
        assert!(matches!(refusal, Refusal::Pending(_)));
        assert_eq!(ready(&commands).await.obstacles.len(), 1);
        // Told what is true: the flip is stored.
        let name = "ios-first".to_owned();
        let flag = ask(&commands, |reply| AdminCommand::Flag { name, reply }).await;
        assert_eq!(flag.unwrap().stage, Stage::Retired);
        workers.stuck.set(false);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(workers.stages(), [Stage::Retired]);
        assert_eq!(ready(&commands).await, Readiness::default());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_kill_switch_is_with_the_workers_before_it_is_stored() {
    let (folder, workers) = (Folder::new(), Workers::default());
    let stored = folder.path("state/rollout.json");
    let obstacle = folder.path("state/rollout.json.new");
    owning(&folder, &workers, async |commands| {
        std::fs::create_dir(&obstacle).unwrap();
        // It acts for somebody who no longer waits as well.
        let (reply, answer) = oneshot::channel();
        drop(answer);
        let asked = asked(Change::Kill);
        commands
            .send(AdminCommand::Change { asked, reply })
            .await
            .unwrap();
        let flags = ask(&commands, AdminCommand::Flags).await;
        assert_eq!(flags.kill.unwrap().who, "anna");
        assert!(flags.kill_unstored.is_some());
        assert_eq!(workers.kills(), [Kill::On]);
        std::fs::remove_dir(&obstacle).unwrap();
        sleep(Duration::from_secs(2)).await;
        assert_eq!(
            ask(&commands, AdminCommand::Flags).await.kill_unstored,
            None
        );
        assert!(stored.exists());
        assert!(workers.kills().iter().all(|kill| *kill == Kill::On));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_for_who_no_longer_waits() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        let (reply, answer) = oneshot::channel();
        drop(answer);
        let asked = flip("ios-first", Stage::Retired, "100");
        let flip = AdminCommand::Change { asked, reply };
        commands.send(flip).await.unwrap();
        assert_eq!(ask(&commands, AdminCommand::Flags).await.revision, 0);
        assert_eq!(workers.stages(), []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn draining_is_not_ready() {
    let (folder, workers) = (Folder::new(), Workers::default());
    owning(&folder, &workers, async |commands| {
        assert_eq!(ready(&commands).await, Readiness::default());
        ask(&commands, AdminCommand::Drain).await;
        assert_eq!(ready(&commands).await.obstacles, ["draining"]);
    })
    .await;
}
