//! The live stream, with a scripted owner.

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::sync::{mpsc, watch};

use super::{LOOPBACK, ask, empty, read, request, within};
use crate::server::admin::live::Closing;
use crate::server::admin::{
    AdminApi, AdminBody, AdminCommand, AdminTokens, LiveStreams, ViewCommand,
};

/// Answers overviews only.
pub(super) fn obey(command: ViewCommand) {
    if let ViewCommand::Overview(reply) = command {
        reply.send(Bytes::from_static(b"{}\n")).unwrap();
    }
}

/// Opens a stream whose owner answers the texts in order, and the last one for ever.
async fn streaming<F: Future>(
    texts: &[&'static str],
    test: impl FnOnce(AdminBody, watch::Sender<()>) -> F,
) {
    let (control, mut commands) = mpsc::channel(1);
    let admin = AdminApi::new(
        LOOPBACK.parse().unwrap(),
        AdminTokens::default(),
        control,
        LiveStreams::default(),
    );
    let (open, closing) = Closing::channel();
    let mut request = empty(request("GET", "/api/v1/live"));
    request.extensions_mut().insert(closing);
    let owner = async {
        let mut asked = 0;
        while let Some(command) = commands.recv().await {
            let AdminCommand::View(ViewCommand::Overview(reply)) = command else {
                panic!("an overview is asked for");
            };
            let text = texts[asked.min(texts.len() - 1)];
            asked += 1;
            // A test that has ended waits for no reply.
            let _ = reply.send(Bytes::from_static(text.as_bytes()));
        }
    };
    let asked = async {
        let response = admin.answer(request).await;
        drop(admin);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        test(response.into_body(), open).await;
    };
    within(async { tokio::join!(owner, asked) }).await;
}

async fn next(body: &mut AdminBody) -> Option<String> {
    let frame = body.frame().await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_overview_is_sent_again_only_when_it_has_changed() {
    streaming(
        &["{\"a\":1}\n", "{\"a\":1}\n", "{\"a\":2}\n"],
        |mut body, open| async move {
            let _open = open;
            let event = |json: &str| Some(format!("event: overview\ndata: {json}\n\n"));
            assert_eq!(next(&mut body).await, event("{\"a\":1}"));
            assert_eq!(next(&mut body).await, event("{\"a\":2}"));
            let quiet = next(&mut body).await.unwrap();
            assert!(quiet.starts_with(':'), "{quiet}");
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_listener() {
    streaming(&["{}\n"], |mut body, open| async move {
        next(&mut body).await.unwrap();
        drop(open);
        assert_eq!(next(&mut body).await, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_owner_does_not_reply_is_refused_with_the_reason() {
    let (control, _commands) = mpsc::channel(1);
    let admin = AdminApi::new(
        LOOPBACK.parse().unwrap(),
        AdminTokens::default(),
        control,
        LiveStreams::default(),
    );
    let answer = within(admin.answer(empty(request("GET", "/api/v1/live")))).await;
    let (status, problem) = read(answer).await;
    assert_eq!(status, 503);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("no response within 5 s"), "{detail}");
}

#[tokio::test]
async fn a_page_of_another_site_reads_nothing_of_the_api() {
    let from_elsewhere = |path| empty(request("GET", path).header("sec-fetch-site", "cross-site"));
    for path in ["/api/v1/live", "/api/v1/flags", "/api/v1/openapi.json"] {
        let answer = ask(LOOPBACK, from_elsewhere(path)).await;
        assert_eq!(answer.status(), 403, "{path}");
    }
    // A link of another site may lead to a page.
    for path in ["/", "/api/v1/docs", "/healthz"] {
        let answer = ask(LOOPBACK, from_elsewhere(path)).await;
        assert_eq!(answer.status(), 200, "{path}");
    }
}
