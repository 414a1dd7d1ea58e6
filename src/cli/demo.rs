//! `dualgauge demo`: the proxy in front of the built-in sample server, with everything on one machine.
//!
//! The configuration is written into a temporary folder, so that it can be read, edited and reloaded like any other.
//! The folder is removed when the demo ends. Two built-in clients ([`clients`]) show a comparison and a rollback.
//!
//! Used by `cli`.

mod clients;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use clap::Args;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use self::clients::Clients;
use crate::app::bound_addresses::BoundAddresses;
use crate::app::run::{self, ProcessEnvironment};
use crate::cli::command_error::CommandError;
use crate::cli::schema::without_schema;
use crate::config::load::{Sources, environment};
use dualgauge_sample::{Database, Outage, serve_both};

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge demo
  dualgauge demo --listen 127.0.0.1:8080 --admin 127.0.0.1:9090";

#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Address for calls
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of metrics and the admin API
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// Start no clients: only serve
    #[arg(long)]
    no_traffic: bool,
}

/// The routes of the sample server, as in `config/`.
const ROUTES: &str = include_str!("../../config/sqlite.toml");

/// The flags of the demo.
const FLAGS: &str = r#"# The first flag that matches a call decides its stage. Edit and save: the change takes effect within a second.

[[flag]]
name   = "mover"
client = "mover"        # calls with the header `x-client-id: mover`
stage  = "translate"

[[flag]]
name   = "reports"
client = "reports"
stage  = "shadow"       # the client gets the old server's response; the new server's is compared with it

[[flag]]
name    = "mobile"
client  = "mobile"
stage   = "translate"
percent = 50            # of its devices
guard   = { window = "10s", min_calls = 20 }
"#;

pub(super) fn demo(arguments: &DemoArguments) -> Result<ExitCode, CommandError> {
    let sample = DemoServer::start()?;
    let folder = DemoDir::create()?;
    std::fs::write(
        folder.0.join("dualgauge.toml"),
        configuration(sample.old, sample.new),
    )?;
    std::fs::write(folder.0.join("sqlite.toml"), without_schema(ROUTES))?;
    std::fs::write(folder.0.join("flags.toml"), FLAGS)?;
    let sources = Sources {
        file: Some(folder.0.join("dualgauge.toml")),
        listen: arguments.listen.clone(),
        admin: arguments.admin.clone(),
        environment: environment(),
    };
    let mut clients = None;
    let result = run::run(sources, ProcessEnvironment::default(), |started| {
        introduce(started.addresses, sample.old, sample.new, &folder.0)?;
        if !arguments.no_traffic {
            clients = Some(Clients::start(started.addresses, sample.outage.clone())?);
        }
        Ok(())
    });
    drop(clients);
    sample.stop();
    result?;
    Ok(ExitCode::SUCCESS)
}

fn configuration(old: SocketAddr, new: SocketAddr) -> String {
    format!(
        r#"# The configuration of this demo. `dualgauge check --config dualgauge.toml` checks it after an edit.

include = ["sqlite.toml"]

[upstream.old]
side = "rest"
url  = "http://{old}"

[upstream.new]
side = "rpc"
url  = "http://{new}/rpc"

[rollout]
flags = "flags.toml"
state = "state/"

[log]
level = "error"         # `info` logs each call

[record]
directory = "recordings"    # `dualgauge record` writes here

[[client]]
name  = "mover"
match = {{ header = {{ x-client-id = "mover" }} }}

[[client]]
name  = "reports"
match = {{ header = {{ x-client-id = "reports" }} }}

[[client]]
name  = "mobile"
match = {{ header = {{ x-client-id = "mobile" }} }}
key   = {{ header = "x-device-id" }}
"#
    )
}

/// The sample server on its own thread: the old server and its rewrite.
struct DemoServer {
    old: SocketAddr,
    new: SocketAddr,
    outage: watch::Sender<Outage>,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<io::Result<()>>,
}

impl DemoServer {
    fn start() -> Result<DemoServer, CommandError> {
        let database = Database::seeded()?;
        let (old, new) = (listener()?, listener()?);
        let addresses = (old.local_addr()?, new.local_addr()?);
        let (stop, stopped) = oneshot::channel();
        let (outage, watched) = watch::channel(Outage::Over);
        let thread = thread::Builder::new()
            .name("sample".to_owned())
            .spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(async {
                    let listeners = [
                        tokio::net::TcpListener::from_std(old)?,
                        tokio::net::TcpListener::from_std(new)?,
                    ];
                    let shutdown = async {
                        let _ = stopped.await;
                    };
                    serve_both(listeners, database, watched, shutdown).await;
                    Ok(())
                })
            })?;
        Ok(DemoServer {
            old: addresses.0,
            new: addresses.1,
            outage,
            stop,
            thread,
        })
    }

    fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

fn listener() -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A temporary folder that is removed on drop.
struct DemoDir(PathBuf);

impl DemoDir {
    fn create() -> io::Result<DemoDir> {
        let folder = std::env::temp_dir().join(format!("dualgauge-demo-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(DemoDir(folder))
    }
}

impl Drop for DemoDir {
    fn drop(&mut self) {
        // A leftover in the temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn introduce(
    addresses: BoundAddresses,
    old: SocketAddr,
    new: SocketAddr,
    folder: &Path,
) -> io::Result<()> {
    let BoundAddresses { listen, admin, .. } = addresses;
    let folder = folder.display();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        r#"{addresses}

A sample server speaks legacy REST at http://{old}, and its rewrite speaks JSON-RPC 2.0 at http://{new}.
dualgauge stands before both. Calls pass through unchanged, except those of the client `mover`, which are
translated to the other protocol. Any MCP client can connect to http://{listen}/mcp.
The console at http://{admin}/ shows clients, flags and differences in a browser.
Paste these commands into another terminal:

  # REST client -> REST upstream: passed through
  curl -s http://{listen}/mcp/v1/tools/call -H 'content-type: application/json' \
    -d '{{"name":"query_records","arguments":{{"table_name":"users"}}}}'

  # REST client -> RPC upstream: translated
  curl -s http://{listen}/mcp/v1/tools/call -H 'content-type: application/json' -H 'x-client-id: mover' \
    -d '{{"name":"query_records","arguments":{{"table_name":"users"}}}}'

  # RPC client -> RPC upstream: passed through
  curl -s http://{listen}/rpc -H 'content-type: application/json' \
    -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"list_tables","arguments":{{}}}}}}'

  # RPC client -> REST upstream: translated
  curl -s http://{listen}/rpc -H 'content-type: application/json' -H 'x-client-id: mover' \
    -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"list_tables","arguments":{{}}}}}}'

  # metrics and flags; the last command moves the client `mover` back to passthrough
  curl -s http://{admin}/metrics | grep ^dualgauge_calls_total
  curl -s http://{admin}/api/v1/flags
  curl -s -X PUT http://{admin}/api/v1/flags/mover -H 'content-type: application/json' \
    -d '{{"stage":"passthrough","percent":100}}'

The configuration is in {folder}. An edit of `flags.toml` takes effect within a second.
Stop with Ctrl-C.
"#
    )?;
    out.flush()
}
