//! Commands for the parts of the state that the console shows. Used by `admin::command`, `admin::live` and `admin::views`.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot::Sender;

use crate::server::admin::{
    ClientRow, ListQuery, Page, PerformanceView, PreviewView, Refusal, RouteDetail, RouteRow,
    StatusView,
};
use dualgauge_model::flag_preview::FlagValues;
use dualgauge_model::plan::Plan;
use dualgauge_model::unrouted::UnroutedReport;

/// A command that reads a part of the state.
#[derive(Debug)]
pub enum ViewCommand {
    /// Returns the overview as JSON.
    Overview(Sender<Bytes>),
    /// Returns the state of the process and of its configuration.
    Status(Sender<StatusView>),
    /// Returns a page of clients with their calls.
    Clients {
        /// The page.
        query: ListQuery,
        /// The clients.
        reply: Sender<Page<ClientRow>>,
    },
    /// Returns a page of routes with their calls.
    Routes {
        /// The page.
        query: ListQuery,
        /// The routes.
        reply: Sender<Page<RouteRow>>,
    },
    /// Returns errors, latency and verdicts, in total and of a page of routes.
    Performance {
        /// The page.
        query: ListQuery,
        /// The result.
        reply: Sender<PerformanceView>,
    },
    /// Returns one route in detail.
    Route {
        /// The name of the route.
        name: String,
        /// The route.
        reply: Sender<Result<RouteDetail, Refusal>>,
    },
    /// Returns the plan in force, and the index of a route in it.
    FindRoute {
        /// The name of the route.
        name: String,
        /// The plan and the index.
        reply: Sender<Result<(Arc<Plan>, usize), Refusal>>,
    },
    /// Returns the calls without a route.
    Unrouted(Sender<UnroutedReport>),
    /// Returns the effect that new values of a flag would have.
    Preview {
        /// The name of the flag.
        name: String,
        /// The new values.
        values: FlagValues,
        /// The effect.
        reply: Sender<Result<PreviewView, Refusal>>,
    },
}
