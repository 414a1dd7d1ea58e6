//! The thread of the link tasks. The whole process has one link for each upstream that uses links.
//!
//! A link is kept as long as the plan of its upstream stays the same. Otherwise a new link is opened, and the old one
//! ends after its last call: the workers hold its handle, and this module does not. Clients on sockets hold the handles
//! of their own links. Those links stay while the same server is planned, and are ended from here when it no longer is.
//!
//! Used by `run` and `signals`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot, watch};

use super::sockets::Server;
use crate::telemetry::metrics::LinkState;
use crate::upstream::link::{
    LinkHandle, LinkLaunch, LinkLimits, LinkLoss, LinkOpener, LinkRoute, LinkSharing, LinkSlots,
    LinkStats, Links, RequestReceiver, WeakLinkHandle, WeakLinkOpener, open, opener, run_link,
};
use crate::upstream::{Mcp, SseServer, Stdio};
use dualgauge_model::plan::{McpTransport, Plan, Sharing, Transport, UpstreamPlan};
use dualgauge_net::{MemoryBudget, Tasks};

/// The capacity of the launch channel.
const LAUNCHES: usize = 16;

/// A request to run links.
struct LinkCommand {
    plan: UpstreamPlan,
    work: LinkWork,
    stats: Arc<LinkStats>,
}

/// The links to run.
enum LinkWork {
    /// One shared link.
    One(Box<RequestReceiver>),
    /// The links of clients, as they are opened.
    Each(mpsc::Receiver<LinkLaunch>, watch::Receiver<bool>),
}

/// The losses of links, by upstream.
#[derive(Debug, Default)]
pub struct LinkLosses(BTreeMap<String, Arc<LinkStats>>);

impl LinkLosses {
    /// Waits until a link of an upstream was lost or could not be opened, now or before. Cancel-safe.
    pub async fn of(&self, upstream: &str) -> LinkLoss {
        match self.0.get(upstream) {
            Some(stats) => stats.lost().await,
            None => pending().await,
        }
    }
}

/// The links of the process.
#[derive(Debug)]
pub(super) struct LinkThread {
    thread: RefCell<Option<RunningLink>>,
    known: RefCell<KnownUpstream>,
}

#[derive(Debug)]
struct RunningLink {
    launches: mpsc::Sender<LinkCommand>,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

/// The known links; borrowed only between awaits.
#[derive(Debug, Default)]
struct KnownUpstream {
    /// The shared links.
    links: Vec<(UpstreamPlan, WeakLinkHandle)>,
    /// The servers with links of clients.
    servers: Vec<OwnServer>,
    /// The statistics by the name of the upstream, including those of earlier plans, so that counters never decrease.
    stats: BTreeMap<String, Arc<LinkStats>>,
    /// The upstreams of the plan in force that use links.
    names: Vec<String>,
    /// Those of them whose links come and go with clients.
    apart: Vec<String>,
}

/// A server with links of clients.
#[derive(Debug)]
struct OwnServer {
    /// The current plan of the server.
    plan: UpstreamPlan,
    /// The opener of links by that plan.
    opener: WeakLinkOpener,
    places: LinkSlots,
}

impl LinkThread {
    /// Starts the thread. `memory` accounts for decoded bodies; children get the limit `open_files`, if set.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn start(memory: MemoryBudget, open_files: Option<u64>) -> io::Result<LinkThread> {
        let (launches, inbox) = mpsc::channel(LAUNCHES);
        let (over, ended) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("links".to_owned())
            .spawn(move || {
                if let Err(error) = serve(inbox, &memory, open_files) {
                    tracing::error!(%error, "the link thread failed");
                }
                // Dropping the sender has the same effect.
                let _ = over.send(());
            })?;
        Ok(LinkThread {
            thread: RefCell::new(Some(RunningLink {
                launches,
                ended,
                thread,
            })),
            known: RefCell::default(),
        })
    }

    /// Returns the links of a plan: existing ones, and new ones for upstreams that are new or have changed.
    pub(super) async fn follow(&self, plan: &Plan) -> Links {
        let (links, wanted) = self.known.borrow_mut().follow(plan);
        let launches = self
            .thread
            .borrow()
            .as_ref()
            .map(|own| own.launches.clone());
        if let Some(launches) = launches {
            for launch in wanted {
                // Without the thread the receiver is dropped, and its callers get an error.
                let _ = launches.send(launch).await;
            }
        }
        links
    }

    /// Returns the losses of the links.
    pub(super) fn losses(&self) -> LinkLosses {
        LinkLosses(self.known.borrow().stats.clone())
    }

    /// Returns the state of the links of the plan in force.
    pub(super) fn states(&self) -> Vec<LinkState> {
        let known = self.known.borrow();
        let state = |name: &String| {
            let stats = known.stats.get(name)?;
            Some(LinkState {
                is_idle: known.apart.contains(name) && stats.has_no_links(),
                ..stats.state(name)
            })
        };
        known.names.iter().filter_map(state).collect()
    }

    /// Returns true if an upstream of the plan in force uses a shared link.
    pub(super) fn is_linked(&self, upstream: &str) -> bool {
        let known = self.known.borrow();
        let named = |names: &[String]| names.iter().any(|name| name == upstream);
        named(&known.names) && !named(&known.apart)
    }

    /// Returns the upstreams whose shared links take no calls.
    pub(super) fn down(&self) -> Vec<String> {
        let down = self.states().into_iter().filter(|link| link.ready == 0);
        let down = down.map(|link| link.upstream);
        down.filter(|upstream| self.is_linked(upstream)).collect()
    }

    /// Waits until every link has ended, which happens when no caller can use it any more.
    pub(super) async fn end(&self) {
        let Some(running) = self.thread.borrow_mut().take() else {
            return;
        };
        drop(running.launches);
        let _ = running.ended.await;
        // The thread has signalled its end, so this does not block.
        let _ = running.thread.join();
    }
}

impl KnownUpstream {
    fn follow(&mut self, plan: &Plan) -> (Links, Vec<LinkCommand>) {
        let mut wanted = Vec::new();
        self.names.clear();
        self.apart.clear();
        self.links.retain(|(_, link)| link.upgrade().is_some());
        let all = plan.upstreams.all.iter();
        let all = all.map(|upstream| match &upstream.transport {
            Transport::Frames(_) => LinkRoute::Frames(self.framed(upstream)),
            Transport::Http | Transport::WebSocket(_) | Transport::Stdio(_) | Transport::Mcp(_) => {
                let link = self.link(upstream, &mut wanted);
                link.map_or(LinkRoute::Other, LinkRoute::Link)
            }
        });
        let links = Links::new(all.collect());
        self.servers.retain(|server| {
            let mut all = plan.upstreams.all.iter();
            let stays = all.any(|now| server.plan.is_same_server(now));
            if !stays {
                server.places.end();
            }
            stays
        });
        (links, wanted)
    }

    /// Returns the statistics of legacy sockets, which the workers own.
    fn framed(&mut self, plan: &UpstreamPlan) -> Arc<LinkStats> {
        self.names.push(plan.name.clone());
        self.apart.push(plan.name.clone());
        let own = self.stats.entry(plan.name.clone());
        let stats = own.or_insert_with(|| Arc::new(LinkStats::for_legacy_sockets()));
        stats.clone()
    }

    fn link(&mut self, plan: &UpstreamPlan, wanted: &mut Vec<LinkCommand>) -> Option<LinkSharing> {
        let queue = plan.transport.link()?.settings.queue;
        self.names.push(plan.name.clone());
        let (reach, work) = match plan.transport.sharing() {
            Sharing::Shared => {
                let (link, inbox) = self.shared(plan, queue);
                (
                    LinkSharing::Shared(link),
                    inbox.map(|inbox| LinkWork::One(Box::new(inbox))),
                )
            }
            Sharing::Client => {
                self.apart.push(plan.name.clone());
                let (opener, work) = self.apart(plan, queue);
                (LinkSharing::PerClient(opener), work)
            }
            Sharing::Authorization => {
                self.apart.push(plan.name.clone());
                let (opener, work) = self.apart(plan, queue);
                (LinkSharing::PerAuthorization(opener), work)
            }
        };
        let stats = self.stats.entry(plan.name.clone()).or_default();
        wanted.extend(work.map(|work| LinkCommand {
            plan: plan.clone(),
            work,
            stats: stats.clone(),
        }));
        Some(reach)
    }

    /// Returns the shared link, and its receiver if it has no task yet.
    fn shared(
        &mut self,
        plan: &UpstreamPlan,
        queue: usize,
    ) -> (LinkHandle, Option<RequestReceiver>) {
        let mut known = self.links.iter().filter(|(known, _)| known == plan);
        if let Some(link) = known.find_map(|(_, link)| link.upgrade()) {
            return (link, None);
        }
        let (link, inbox) = open(queue);
        self.links.push((plan.clone(), link.downgrade()));
        (link, Some(inbox))
    }

    /// Returns the opener of client links, and its work if that is not running yet. Links from an earlier plan stay,
    /// and count towards the limit.
    fn apart(&mut self, plan: &UpstreamPlan, queue: usize) -> (LinkOpener, Option<LinkWork>) {
        let mut servers = self.servers.iter_mut();
        let known = servers.find(|server| server.plan.is_same_server(plan));
        let opener_by = |places: &LinkSlots| {
            let bounds = LinkLimits {
                most: plan.connections,
                idle: plan.idle_timeout,
                queue,
            };
            opener(bounds, places.clone())
        };
        if let Some(server) = known {
            let same = server.opener.upgrade().filter(|_| server.plan == *plan);
            if let Some(opener) = same {
                return (opener, None);
            }
            let (opener, links) = opener_by(&server.places);
            (server.plan, server.opener) = (plan.clone(), opener.downgrade());
            return (
                opener,
                Some(LinkWork::Each(links, server.places.subscribe_end())),
            );
        }
        let places = LinkSlots::default();
        let (opener, links) = opener_by(&places);
        let over = places.subscribe_end();
        self.servers.push(OwnServer {
            plan: plan.clone(),
            opener: opener.downgrade(),
            places,
        });
        (opener, Some(LinkWork::Each(links, over)))
    }
}

/// Runs the link tasks until no more can be launched and all have ended.
fn serve(
    mut launches: mpsc::Receiver<LinkCommand>,
    memory: &MemoryBudget,
    open_files: Option<u64>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let tasks = Tasks::default();
        while let Some(launch) = launches.recv().await {
            let shared = Shared {
                tasks: tasks.clone(),
                memory: memory.clone(),
                open_files,
            };
            tasks.start(begin(launch, shared));
        }
        tasks.idle().await;
    });
    Ok(())
}

/// The resources that all links of the process share.
#[derive(Clone)]
struct Shared {
    tasks: Tasks,
    memory: MemoryBudget,
    /// The limit of open files for children, if it differs from that of this process.
    open_files: Option<u64>,
}

async fn begin(launch: LinkCommand, shared: Shared) {
    let LinkCommand { plan, work, stats } = launch;
    match work {
        LinkWork::One(inbox) => conduct(plan, *inbox, stats, shared).await,
        LinkWork::Each(mut links, over) => {
            while let Some(LinkLaunch { inbox, permit }) = links.recv().await {
                let inbox = inbox.ending_with(over.clone());
                let (plan, stats) = (plan.clone(), stats.clone());
                let own = shared.clone();
                shared.tasks.start(async move {
                    conduct(plan, inbox, stats, own).await;
                    drop(permit);
                });
            }
        }
    }
}

async fn conduct(
    plan: UpstreamPlan,
    inbox: RequestReceiver,
    stats: Arc<LinkStats>,
    shared: Shared,
) {
    let Shared {
        tasks,
        memory,
        open_files,
    } = shared;
    match plan.transport.clone() {
        // These transports have no link that the process owns.
        Transport::Http | Transport::Frames(_) => {}
        Transport::Mcp(server) => {
            let settings = server.link.settings.clone();
            match server.transport {
                McpTransport::Streamable => {
                    let transport = Mcp::new(&plan, *server, tasks, memory)
                        .with_authorization(inbox.authorization());
                    run_link(&plan.name, transport, settings, inbox, &stats).await;
                }
                McpTransport::Sse => {
                    let transport = SseServer::new(&plan, *server, tasks, memory);
                    run_link(&plan.name, transport, settings, inbox, &stats).await;
                }
            }
        }
        Transport::Stdio(child) => {
            let settings = child.link.settings.clone();
            let transport = Stdio::new(&plan.name, *child).with_open_files(open_files);
            run_link(&plan.name, transport, settings, inbox, &stats).await;
        }
        Transport::WebSocket(ref socket) => {
            let server = Server::new(&plan, socket, tasks);
            match (socket.sharing, socket.sockets) {
                (Sharing::Client, _) => server.own(inbox.with_max_age(plan.max_age), stats).await,
                (Sharing::Shared | Sharing::Authorization, ..=1) => {
                    server.conduct(inbox, stats).await
                }
                (Sharing::Shared | Sharing::Authorization, several) => {
                    server.spread(several, inbox, stats).await
                }
            }
        }
    }
}
