//! One question over a link, within its time, and what its failures are called.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::sync::watch;

use super::ask::{Reply, held_up, in_time, late, stays};
use super::intake::no_room;
use super::record::Record;
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::jsonrpc::{RequestId, Unnumbered, ended_subscription};
use crate::domain::pending::{Repeat, Say, Unanswered};
use crate::domain::plan::UpstreamPlan;
use crate::telemetry::clock;
use crate::upstream::Full;
use crate::upstream::link::{Asker, LinkUpstream, Recall, Said};

/// The id of a response that the proxy writes, which no call has on a link.
const NO_ID: u64 = 0;

/// What is asked.
pub(super) struct Question<'a> {
    pub(super) method: &'a str,
    pub(super) call: Unnumbered,
    pub(super) repeat: Repeat,
    /// Where its client says that it does not want the answer any more.
    pub(super) recall: Option<Arc<Recall>>,
    /// The id that its client gave it, where it is a subscription.
    pub(super) subscription: Option<RequestId>,
}

/// Asks, and gives the answer with the id that the call had on the link.
pub(super) async fn ask(
    record: &mut Record,
    link: &LinkUpstream,
    question: Question<'_>,
    limit: Duration,
) -> Result<(Reply, u64), Failure> {
    let Question {
        method,
        call,
        repeat,
        recall,
        subscription,
    } = question;
    let say = match &subscription {
        Some(id) => Say::Subscription(call, id.clone()),
        // The server has met the link, and nobody else; what it said then it says to all.
        None if link.plan().greets() && method == "initialize" => Say::Greeting,
        None => Say::Call(call),
    };
    let limit = in_time(record, limit)?;
    let most = record.installed().plan.limits.answer;
    let said = match &subscription {
        None => said(record, link, (say, repeat, recall), limit).await?,
        Some(_) => {
            let mut leaving = record.worker().leaving();
            // Dropped, the question takes the subscription back from its server.
            tokio::select! {
                said = said(record, link, (say, repeat, recall), limit) => said?,
                () = leaves(&mut leaving) => Said::Ended,
            }
        }
    };
    match (said, subscription) {
        (Said::Ended, Some(client)) => {
            let reply = Reply {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: ended_subscription(NO_ID, &client),
            };
            Ok((reply, NO_ID))
        }
        (Said::Told | Said::Ended, _) => Err(Failure::new(
            Reason::Internal,
            "a call that waits for an answer got none",
        )),
        (Said::Answer(id, body), _) => {
            let body = match record.purse() {
                _ if body.len() > most => return Err(too_large(most)),
                // What is read only to compare takes no room of what is answered.
                Some(purse) if purse.charge(body.len()) => body,
                Some(_) => return Err(too_large(most)),
                None => record.worker().memory().keep(body).map_err(no_room)?,
            };
            let reply = Reply {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body,
            };
            Ok((reply, id))
        }
    }
}

/// Waits until the program ends.
async fn leaves(leaving: &mut watch::Receiver<bool>) {
    // The worker that would tell is there for as long as its calls are.
    let _ = leaving.wait_for(|leaves| *leaves).await;
}

/// Tells something that is not answered. It is written before the caller is answered, so that a server that is away or
/// busy is the caller's to know.
pub(super) async fn tell(
    record: &mut Record,
    link: &LinkUpstream,
    (method, message): (&str, Bytes),
    limit: Duration,
) -> Result<(), Failure> {
    if link.plan().keeps(method) {
        return Ok(());
    }
    let told = (Say::Notice(message), Repeat::Never, None);
    said(record, link, told, limit).await.map(|_| ())
}

async fn said(
    record: &mut Record,
    link: &LinkUpstream,
    (say, repeat, recall): (Say, Repeat, Option<Arc<Recall>>),
    limit: Duration,
) -> Result<Said, Failure> {
    stays(record)?;
    let since = clock::now();
    record.asks(since);
    let asker = Asker {
        own: record.links(),
        recall,
        ear: record.ear(),
    };
    let asking = link.ask_for(asker, (say, repeat), limit);
    let said = record.worker().unless_it_ends(asking).await;
    record.spent(since);
    said?.map_err(|why| match (why, held_up(record, Duration::ZERO)) {
        (Unanswered::Late, Some(held_up)) => held_up,
        (why, _) => unanswered(why, link.plan(), limit),
    })
}

pub(super) fn unanswered(why: Unanswered, upstream: &UpstreamPlan, limit: Duration) -> Failure {
    match why {
        Unanswered::Busy => {
            let message =
                "the server is busy with other calls, and this one was not begun; try again later";
            Failure::new(Reason::UpstreamBusy, message).advise(Advice::RetryAfter(1))
        }
        Unanswered::Unreachable => {
            let cause = format!("there is no link to the upstream `{}`", upstream.name);
            Failure::new(Reason::UpstreamUnreachable, "the server cannot be reached").because(cause)
        }
        Unanswered::Cut => {
            let cause = format!("the link to the upstream `{}` broke", upstream.name);
            let message = "the server closed the connection before it answered";
            Failure::new(Reason::UpstreamCut, message).because(cause)
        }
        Unanswered::Late => late(limit),
        Unanswered::TooLarge(status) => {
            let message = "the server's answer is longer than the limit of a message";
            Failure::new(Reason::UpstreamTooLarge, message).upstream_status(status)
        }
        Unanswered::NoRoom => no_room(Full),
        Unanswered::CodedStream => {
            let message =
                "the server's event stream has a content coding; such a stream is not read";
            Failure::new(Reason::UpstreamNotProtocol, message)
        }
        Unanswered::Misnumbered => {
            let message = "the server answered a call with an id of another type";
            Failure::new(Reason::UpstreamWrongId, message)
        }
        Unanswered::Unusable(0) => {
            let message = "the server's answer is not valid HTTP";
            Failure::new(Reason::UpstreamMalformedHttp, message)
        }
        Unanswered::Unusable(status @ 300..400) => {
            let message = format!("the server answered {status}, and redirects are not followed");
            Failure::new(Reason::UpstreamRedirect, message)
        }
        Unanswered::Unusable(status) => {
            let message =
                format!("the server answered {status} with something else than a message of MCP");
            Failure::new(Reason::UpstreamNotProtocol, message).upstream_status(status)
        }
    }
}

fn too_large(limit: usize) -> Failure {
    Failure::new(
        Reason::UpstreamTooLarge,
        format!("the server's answer is longer than {limit} bytes"),
    )
}
