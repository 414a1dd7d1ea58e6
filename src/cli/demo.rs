//! `dualgauge demo`: the proxy in front of the built-in sample server, with everything on one machine.
//!
//! The configuration is written into a folder of its own, so that it can be read, edited and reloaded like
//! any other; the folder goes when the demo ends.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::app::run::{self, Addresses, Surroundings};
use crate::cli::{CommandError, DemoArguments};
use crate::config::load::{Sources, environment};
use crate::sample::{Database, serve};

/// The routes of the sample server, as they stand in `config/`.
const ROUTES: &str = include_str!("../../config/sqlite.toml");

/// Who is moved in the demo.
const FLAGS: &str = r#"# Who is moved from one protocol to the other. Edit and save: it acts within a second.

[[flag]]
name   = "mover"
client = "mover"        # calls with the header `x-client-id: mover`
stage  = "translate"
"#;

pub(super) fn demo(arguments: &DemoArguments) -> Result<ExitCode, CommandError> {
    let sample = Sample::start()?;
    let folder = Folder::create()?;
    std::fs::write(
        folder.0.join("dualgauge.toml"),
        configuration(sample.address),
    )?;
    std::fs::write(folder.0.join("sqlite.toml"), ROUTES)?;
    std::fs::write(folder.0.join("flags.toml"), FLAGS)?;
    let sources = Sources {
        file: Some(folder.0.join("dualgauge.toml")),
        listen: arguments.listen.clone(),
        admin: arguments.admin.clone(),
        environment: environment(),
    };
    let result = run::run((sources, Surroundings::default()), |started| {
        introduce(started.addresses, sample.address, &folder.0)
    });
    sample.stop();
    result?;
    Ok(ExitCode::SUCCESS)
}

fn configuration(sample: SocketAddr) -> String {
    format!(
        r#"# The configuration of this demo; `dualgauge check --config` tells what is wrong with a changed one.

include = ["sqlite.toml"]

[upstream.old]
side = "rest"
url  = "http://{sample}"

[upstream.new]
side = "rpc"
url  = "http://{sample}/rpc"

[rollout]
flags = "flags.toml"
state = "state/"

[[client]]
name  = "mover"
match = {{ header = {{ x-client-id = "mover" }} }}
"#
    )
}

/// The sample server on a thread of its own.
struct Sample {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<io::Result<()>>,
}

impl Sample {
    fn start() -> Result<Sample, CommandError> {
        let database = Database::seeded()?;
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("sample".to_owned())
            .spawn(move || {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(async {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    let shutdown = async {
                        let _ = stopped.await;
                    };
                    serve(listener, database, shutdown).await;
                    Ok(())
                })
            })?;
        Ok(Sample {
            address,
            stop,
            thread,
        })
    }

    fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn create() -> io::Result<Folder> {
        let folder = std::env::temp_dir().join(format!("dualgauge-demo-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What remains in a temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn introduce(addresses: Addresses, sample: SocketAddr, folder: &Path) -> io::Result<()> {
    let Addresses { listen, admin, .. } = addresses;
    let folder = folder.display();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        r#"{addresses}

A sample server at http://{sample} speaks legacy REST and JSON-RPC 2.0 over one SQLite database.
dualgauge stands before it. Calls pass through as they came, except those of the client `mover`,
which are translated to the other protocol. Paste these into another terminal:

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

  # what it counted, and the flags; take the client `mover` back to passthrough at run time
  curl -s http://{admin}/metrics | grep ^dualgauge_calls_total
  curl -s http://{admin}/api/v1/flags
  curl -s -X PUT http://{admin}/api/v1/flags/mover -H 'content-type: application/json' \
    -d '{{"stage":"passthrough","percent":100}}'

The configuration is in {folder}; edit `flags.toml` there and it acts within a second.
Stop with Ctrl-C.
"#
    )?;
    out.flush()
}
