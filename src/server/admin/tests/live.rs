//! The live stream, with a scripted owner.

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::sync::{mpsc, watch};

use super::{LOOPBACK, empty, request, within};
use crate::server::admin::live::Closing;
use crate::server::admin::{AdminApi, AdminBody, AdminCommand, AdminTokens, ViewCommand};

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
    let admin = AdminApi {
        address: LOOPBACK.parse().unwrap(),
        tokens: AdminTokens::default(),
        control,
    };
    let (open, closing) = watch::channel(());
    let mut request = empty(request("GET", "/api/v1/live"));
    request.extensions_mut().insert(Closing(closing));
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
async fn a_stream_ends_before_its_connection() {
    streaming(&["{}\n"], |mut body, open| async move {
        let _open = open;
        let began = dualgauge_net::clock::now();
        while next(&mut body).await.is_some() {}
        assert!(began.elapsed().as_secs() < 60);
    })
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
