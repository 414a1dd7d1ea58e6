//! Parts of the state for the console, in pages. Used by `admin::response`.

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use tokio::sync::oneshot::Sender;

use super::api::AdminApi;
use super::differences::differences;
use super::page::ListQuery;
use super::problem::{AdminProblem, JSON, ok, response};
use super::query;
use super::routes::View;
use super::verdict_view::VerdictView;
use crate::server::admin::{AdminCommand, FlagView, FlagsView, ViewCommand};
use dualgauge_model::check::check_route;

/// A page of flags, with the state that all flags share.
#[derive(Debug, Serialize)]
pub(super) struct FlagsPage {
    /// The number of found flags on all pages.
    total: usize,
    /// The number of flags before this page.
    offset: usize,
    #[serde(flatten)]
    shared: FlagsView,
    /// The place of each flag in the order of evaluation.
    positions: Vec<usize>,
}

impl FlagsPage {
    /// Cuts a page out of all flags. A search looks at names and globs.
    pub(super) fn new(mut all: FlagsView, query: &ListQuery) -> FlagsPage {
        let flags = std::mem::take(&mut all.flags).into_iter().enumerate();
        let finds = |flag: &FlagView| query.finds(&[&flag.name, &flag.client, &flag.route]);
        let page = query.cut(flags.filter(|(_, flag)| finds(flag)).collect());
        let (positions, flags): (Vec<usize>, Vec<FlagView>) = page.items.into_iter().unzip();
        FlagsPage {
            total: page.total,
            offset: page.offset,
            shared: FlagsView { flags, ..all },
            positions: positions.into_iter().map(|index| index + 1).collect(),
        }
    }
}

impl AdminApi {
    /// Responds with a part of the state.
    pub(super) async fn view(
        &self,
        head: &Parts,
        view: View,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let text = head.uri.query();
        match view {
            View::Overview => {
                let page = self.show(ViewCommand::Overview).await?;
                Ok(response(StatusCode::OK, JSON, page))
            }
            View::Status => Ok(ok(&self.show(ViewCommand::Status).await?)),
            View::Clients => {
                let query = query::list(text)?;
                let ask = |reply| ViewCommand::Clients { query, reply };
                Ok(ok(&self.show(ask).await?))
            }
            View::Routes => {
                let query = query::list(text)?;
                let ask = |reply| ViewCommand::Routes { query, reply };
                Ok(ok(&self.show(ask).await?))
            }
            View::Route(name) => {
                let ask = |reply| ViewCommand::Route { name, reply };
                Ok(ok(&self.show(ask).await??))
            }
            View::Verdict(name) => self.verdict(name).await,
            View::Performance => {
                let query = query::list(text)?;
                let ask = |reply| ViewCommand::Performance { query, reply };
                Ok(ok(&self.show(ask).await?))
            }
            View::Differences => {
                let (routes, query) = query::differences(text)?;
                let found = self.ask(AdminCommand::Mismatches).await?;
                Ok(ok(&query.cut(differences(&found, &routes, &query))))
            }
            View::Unrouted => Ok(ok(&self.show(ViewCommand::Unrouted).await?)),
            View::Preview(name) => {
                let values = query::preview(text)?;
                let ask = |reply| ViewCommand::Preview {
                    name,
                    values,
                    reply,
                };
                Ok(ok(&self.show(ask).await??))
            }
        }
    }

    pub(super) async fn show<T>(
        &self,
        command: impl FnOnce(Sender<T>) -> ViewCommand,
    ) -> Result<T, AdminProblem> {
        self.ask(|reply| AdminCommand::View(command(reply))).await
    }

    /// Checks one route, away from the thread of the listener.
    async fn verdict(&self, name: String) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let ask = |reply| ViewCommand::FindRoute { name, reply };
        let (plan, index) = self.show(ask).await??;
        let check = move || {
            let report = check_route(&plan.routes, index);
            ok(&VerdictView::new(plan.routes.route(index), report.as_ref()))
        };
        self.calculate(check).await
    }
}
