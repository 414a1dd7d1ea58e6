//! Handling of one admin request, from the Host check to the response.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, IF_MATCH};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use tokio::time;

use crate::server::admin::access::{admit, check_fetch_site, is_plain_probe};
use crate::server::admin::api::AdminApi;
use crate::server::admin::console::ConsoleFile;
use crate::server::admin::decode::{Attribution, RecordingBody};
use crate::server::admin::explain::{self, Explained};
use crate::server::admin::live::{AdminBody, whole};
use crate::server::admin::mismatches::{ForgottenView, MismatchesView};
use crate::server::admin::problem::{AdminProblem, JSON, ok, response, tagged};
use crate::server::admin::routes::{AdminEndpoint, NotFound, is_write, needs_token, parse};
use crate::server::admin::token::AuthError;
use crate::server::admin::views::FlagsPage;
use crate::server::admin::{
    AdminCommand, ChangeRequest, HypotheticalCall, Readiness, RecordingCommand, decode, query,
};
use crate::telemetry::clock;
use dualgauge_model::hosts::is_loopback;
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::rollout::{Glob, Percent, Stage};

/// The maximum size of a request body.
const MAX_BODY: usize = 64 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The OpenAPI document of the API.
pub(super) const API: &str = include_str!("admin.json");

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl AdminApi {
    /// Responds to any request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<AdminBody>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let response = match self.admit(&head) {
            Ok((AdminEndpoint::Live, _)) => return self.live(&head).await,
            Ok((endpoint, bearer)) => self.respond(endpoint, &head, body, bearer).await,
            Err(problem) => Err(problem),
        };
        response
            .unwrap_or_else(|problem| problem.render())
            .map(whole)
    }

    /// Checks a request, before its body is read. Returns its endpoint and the owner of its token.
    fn admit(&self, head: &Parts) -> Result<(AdminEndpoint, Option<&str>), AdminProblem> {
        if !is_plain_probe(head) {
            admit(self.address, &head.uri, &head.headers)?;
        }
        if needs_token(head.uri.path()) {
            // A page of another site could not read a response, but it could use up connections, as with streams.
            check_fetch_site(&head.headers)?;
        }
        let bearer = self.authenticate(head)?;
        let endpoint = parse(&head.method, head.uri.path())?;
        if is_write(&head.method) && bearer.is_none() {
            // Without a token, only this keeps pages of other sites from writing with an old browser.
            require_json(head)?;
        }
        Ok((endpoint, bearer))
    }

    async fn respond<B>(
        &self,
        endpoint: AdminEndpoint,
        head: &Parts,
        body: B,
        bearer: Option<&str>,
    ) -> Result<Response<Full<Bytes>>, AdminProblem>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        match endpoint {
            AdminEndpoint::Page(file) => Ok(page(file)),
            AdminEndpoint::View(view) => self.view(head, view).await,
            // `answer` has answered it, since its body is a stream.
            AdminEndpoint::Live => Err(NotFound::NotFound.into()),
            AdminEndpoint::Health => Ok(response(StatusCode::OK, TEXT, "ok\n")),
            AdminEndpoint::Readiness => Ok(readiness(&self.ask(AdminCommand::Ready).await?)),
            AdminEndpoint::Metrics => {
                let page = self.ask(AdminCommand::Metrics).await?;
                Ok(response(StatusCode::OK, METRICS, page))
            }
            AdminEndpoint::Flags => self.flags(head).await,
            AdminEndpoint::Evaluate(key) => self.evaluate(key, head, body).await,
            AdminEndpoint::Plan => Ok(ok(&self.ask(AdminCommand::Plan).await?)),
            AdminEndpoint::Usage => self.usage(head).await,
            AdminEndpoint::ExplainQuery => self.explain(explain::query(head.uri.query())?).await,
            AdminEndpoint::ExplainBody => {
                require_json(head)?;
                self.explain(explain::body(&read(body).await?)?).await
            }
            AdminEndpoint::Mismatches => self.mismatches(head).await,
            AdminEndpoint::ForgetMismatches => {
                let routes = query::routes_to_delete(head.uri.query())?;
                let attribution = attribution(head, body, bearer).await?;
                self.forget_mismatches(routes, attribution).await
            }
            AdminEndpoint::Api => Ok(response(StatusCode::OK, JSON, API)),
            AdminEndpoint::Document(side) => {
                let document = self
                    .ask(|reply| AdminCommand::Document { side, reply })
                    .await?;
                Ok(response(StatusCode::OK, JSON, document.into_bytes()))
            }
            AdminEndpoint::Flag(name) => {
                let flag = self
                    .ask(|reply| AdminCommand::Flag { name, reply })
                    .await??;
                Ok(tagged(ok(&flag), &flag.tag))
            }
            AdminEndpoint::Flip(name) => {
                require_json(head)?;
                let ((stage, percent), attribution) = decode::flip(&read(body).await?)?;
                let attribution = decode::with_token_owner(attribution, bearer);
                self.change(head, flip(name, stage, percent), attribution)
                    .await
            }
            AdminEndpoint::Change(change) => {
                let attribution = attribution(head, body, bearer).await?;
                self.change(head, change, attribution).await
            }
            AdminEndpoint::Recording => self.recording().await,
            AdminEndpoint::Record => self.start_recording(head, body, bearer).await,
            AdminEndpoint::StopRecording => {
                self.stop_recording(attribution(head, body, bearer).await?)
                    .await
            }
            AdminEndpoint::Reload => self.reload(attribution(head, body, bearer).await?).await,
            AdminEndpoint::History => Ok(ok(&self.ask(AdminCommand::History).await?)),
        }
    }

    /// Returns the state of the recorder.
    async fn recording(&self) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let show = |reply| AdminCommand::Recording(RecordingCommand::Show(reply));
        Ok(ok(&self.ask(show).await?))
    }

    /// Starts a recording.
    async fn start_recording<B>(
        &self,
        head: &Parts,
        body: B,
        bearer: Option<&str>,
    ) -> Result<Response<Full<Bytes>>, AdminProblem>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        require_json(head)?;
        let asked = decode::recording(&read(body).await?)?;
        let RecordingBody {
            request,
            attribution,
        } = asked.with_token_owner(bearer);
        let start = |reply| {
            AdminCommand::Recording(RecordingCommand::Start {
                request,
                attribution,
                reply,
            })
        };
        Ok(ok(&self.ask(start).await??))
    }

    /// Stops the recording.
    async fn stop_recording(
        &self,
        attribution: Attribution,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let stop = |reply| AdminCommand::Recording(RecordingCommand::Stop { attribution, reply });
        Ok(ok(&self.ask(stop).await?))
    }

    async fn reload(
        &self,
        attribution: Attribution,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let reloaded = self.ask(|reply| AdminCommand::ReloadForApi { attribution, reply });
        Ok(ok(&reloaded.await??))
    }

    async fn usage(&self, head: &Parts) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let (route, idle) = query::usage(head.uri.query())?;
        let ask = |reply| AdminCommand::Usage { route, idle, reply };
        Ok(ok(&self.ask(ask).await?))
    }

    async fn mismatches(&self, head: &Parts) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let wanted = query::mismatches(head.uri.query(), clock::wall())?;
        let found = self.ask(AdminCommand::Mismatches).await?;
        Ok(ok(&MismatchesView::new(&found, &wanted)))
    }

    async fn forget_mismatches(
        &self,
        routes: Glob,
        attribution: Attribution,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let ask = |reply| AdminCommand::ForgetMismatches {
            routes,
            attribution,
            reply,
        };
        Ok(ok(&ForgottenView {
            routes: self.ask(ask).await?,
        }))
    }

    /// Explains a call without making it.
    async fn explain(&self, call: HypotheticalCall) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let call = Box::new(call);
        let explained = self
            .ask(|reply| AdminCommand::Explain { call, reply })
            .await?;
        Ok(ok(&Explained::new(explained)))
    }

    /// Applies a change; responds with the changed flag, or with all flags.
    async fn change(
        &self,
        head: &Parts,
        change: Change,
        attribution: Attribution,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let flag = change.flag().map(str::to_owned);
        let kills = change == Change::Kill;
        let asked = ChangeRequest {
            change,
            who: attribution.who,
            why: attribution.why,
            expected: if_match_tags(head),
        };
        let view = self
            .ask(|reply| AdminCommand::Change { asked, reply })
            .await??;
        match view
            .flags
            .iter()
            .find(|view| Some(&view.name) == flag.as_ref())
        {
            Some(flag) => Ok(tagged(ok(flag), &flag.tag)),
            None => {
                let mut response = tagged(ok(&view), &view.revision.to_string());
                if kills && view.kill_unstored.is_some() {
                    // The switch is active and not stored yet (RFC 9110 §15.3.3).
                    *response.status_mut() = StatusCode::ACCEPTED;
                }
                Ok(response)
            }
        }
    }

    async fn flags(&self, head: &Parts) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let page = query::flags(head.uri.query())?;
        let flags = self.ask(AdminCommand::Flags).await?;
        let tag = flags.revision.to_string();
        let response = match page {
            Some(query) => ok(&FlagsPage::new(flags, &query)),
            None => ok(&flags),
        };
        Ok(tagged(response, &tag))
    }

    /// Authenticates an API request; returns the owner of its token. Without tokens the API is open to this machine
    /// only.
    fn authenticate(&self, head: &Parts) -> Result<Option<&str>, AuthError> {
        if !needs_token(head.uri.path()) {
            return Ok(None);
        }
        if self.tokens.is_empty() {
            let open = is_loopback(self.address.ip());
            return if open {
                Ok(None)
            } else {
                Err(AuthError::Closed)
            };
        }
        self.tokens.bearer(&head.headers).map(Some)
    }
}

/// Returns a file of the console.
fn page(file: &ConsoleFile) -> Response<Full<Bytes>> {
    let mut response = response(StatusCode::OK, file.kind(), file.body());
    response.headers_mut().extend(file.headers());
    response
}

/// Returns the tags of `If-Match` (RFC 9110 §13.1.1); a weak one never matches.
fn if_match_tags(head: &Parts) -> Option<Vec<String>> {
    if !head.headers.contains_key(IF_MATCH) {
        return None;
    }
    let values = head.headers.get_all(IF_MATCH).iter();
    let tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let bare = tags.map(|tag| tag.trim().trim_matches('"').to_owned());
    Some(bare.collect())
}

fn readiness(readiness: &Readiness) -> Response<Full<Bytes>> {
    let (status, mut text) = if readiness.obstacles.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned())
    };
    for obstacle in &readiness.obstacles {
        text.push_str(&format!("{obstacle}\n"));
    }
    for note in &readiness.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    response(status, TEXT, text)
}

/// Requires `application/json`: browsers send some other types across origins without a preflight request.
pub(super) fn require_json(head: &Parts) -> Result<(), AdminProblem> {
    let unsupported = |detail| AdminProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
    if head.headers.contains_key(CONTENT_ENCODING) {
        return Err(unsupported("send the body without Content-Encoding"));
    }
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let essence = media_type.and_then(|text| text.split(';').next());
    if essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(JSON)) {
        return Ok(());
    }
    Err(unsupported("send the body as application/json"))
}

/// Reads the author and the reason from an optional body.
async fn attribution<B>(
    head: &Parts,
    body: B,
    bearer: Option<&str>,
) -> Result<Attribution, AdminProblem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let body = read(body).await?;
    if !body.is_empty() || head.headers.contains_key(CONTENT_TYPE) {
        require_json(head)?;
    }
    Ok(decode::with_token_owner(
        decode::attribution(&body)?,
        bearer,
    ))
}

/// Reads the whole body within its size and time limits.
pub(super) async fn read<B>(body: B) -> Result<Bytes, AdminProblem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let too_large = || {
        let detail = format!("the body is larger than {MAX_BODY} bytes");
        AdminProblem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    // A declared length over the limit is rejected before any byte is read.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    let whole = Limited::new(body, MAX_BODY).collect();
    match time::timeout(BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(AdminProblem::new(
            StatusCode::BAD_REQUEST,
            "the body ends before it is complete",
        )),
        Err(_) => Err(AdminProblem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive within 5 s",
        )),
    }
}

fn flip(flag: String, stage: Stage, percent: Percent) -> Change {
    Change::Flip {
        flag,
        stage,
        percent,
    }
}
