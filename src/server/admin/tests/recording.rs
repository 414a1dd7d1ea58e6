//! The recording of calls.

use serde_json::Value;

use super::*;
use crate::server::admin::{RecordingCommand, RecordingRequest, RecordingView};
use crate::telemetry::recorder::StartRefused;
use dualgauge_model::record::RecordedBodies;

/// Starts a recording of up to 600 seconds only.
pub(super) fn obey(command: RecordingCommand) {
    match command {
        RecordingCommand::Show(reply) => reply.send(RecordingView::new(None, false)).unwrap(),
        RecordingCommand::Start { request, reply, .. } => {
            let asked = RecordingRequest {
                time: Duration::from_secs(600),
                sample: Percent::parse("2.5").unwrap(),
                bodies: Some(RecordedBodies::Redacted),
            };
            let answer = match request == asked {
                true => Ok(RecordingView::new(None, false)),
                false => Err(Refusal::Recording(StartRefused::Running)),
            };
            reply.send(answer).unwrap();
        }
        RecordingCommand::Stop { reply, .. } => {
            reply.send(RecordingView::new(None, false)).unwrap()
        }
    }
}

async fn asked(method: &str, body: &str) -> (u16, Value) {
    let request = request(method, "/api/v1/recording")
        .header("content-type", "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap();
    let response = ask(LOOPBACK, request).await;
    let status = response.status().as_u16();
    (status, serde_json::from_str(&text(response).await).unwrap())
}

#[tokio::test]
async fn a_recording_is_started_shown_and_stopped() {
    let none = serde_json::json!({ "running": false, "stopping": false, "recording": null });
    let body = r#"{"seconds":600,"sample":2.5,"bodies":true,"who":"anna"}"#;
    assert_eq!(asked("PUT", body).await, (200, none.clone()));
    assert_eq!(asked("GET", "").await, (200, none.clone()));
    assert_eq!(asked("DELETE", "{}").await, (200, none));
    let (status, problem) = asked("PUT", r#"{"seconds":600}"#).await;
    assert_eq!(status, 409);
    assert_eq!(
        problem["detail"],
        "no recording was started: a recording is running already"
    );
}

#[tokio::test]
async fn every_problem_of_the_body_is_reported() {
    let body = r#"{"seconds":0,"sample":"1","bodies":1,"fro":2}"#;
    let (status, problem) = asked("PUT", body).await;
    assert_eq!(status, 400);
    let problems = problem["problems"].as_array().unwrap().iter();
    let places: Vec<_> = problems.map(|one| one["place"].as_str().unwrap()).collect();
    assert_eq!(places, ["fro", "seconds", "sample", "bodies"]);
}
