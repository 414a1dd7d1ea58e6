//! The proxy as a program of its own.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::peers;
use crate::production::{self, Extent};
use crate::work::Work;

/// What happens to a program between its start and its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) calls: u32,
    /// How many call at once.
    pub(crate) connections: u32,
    pub(crate) files: Files,
}

/// What becomes of the files that it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// They stay as they are.
    Stay,
    /// They change, and it reads them again.
    Change,
}

/// Which memory of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// What no file is behind.
    Anonymous,
    /// All that it has had at once, at its highest.
    Highest,
    /// All that it has now.
    Resident,
}

/// Serves calls by a program, from its start to its end, and some whose clients leave; where its files change, also some whose
/// heads and bodies come apart. Where that fails, the last lines of its log are told.
pub(crate) fn serve(
    command: Command,
    (work, extent): (&Work, &Extent),
    life: Life,
) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut proxy = Running::serving(command, folder.path(), (work, extent))?;
    let served = proxy.address().and_then(|address| {
        peers::load(address, work, life.calls, life.connections)?;
        if life.files == Files::Change {
            peers::apart(address, work, 2)?;
            production::change(folder.path(), work.kind)?;
            wait_for(&folder.path().join("log"), "is reloaded and in force")?;
        }
        peers::leave(address, work, life.connections)
    });
    let ended = proxy.end();
    served.and(ended).map_err(|error| {
        let said = fs::read(folder.path().join("log")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let last: Vec<_> = said.lines().rev().take(5).collect();
        io::Error::other(format!("{error}; the proxy's last lines: {last:#?}"))
    })
}

/// Waits until a file has a text, and gives what it has then.
pub(crate) fn wait_for(file: &Path, text: &str) -> io::Result<String> {
    /// Under valgrind, and with counts, a program is tens of times slower.
    const WITHIN: Duration = Duration::from_secs(60);
    let since = peers::now();
    loop {
        let said = fs::read_to_string(file)?;
        if said.contains(text) {
            return Ok(said);
        }
        if since.elapsed() > WITHIN {
            let file = file.display();
            let message = format!("{file} has not said within {WITHIN:?}: {text}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A proxy that is ended whatever happens.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it, with a file for what it logs.
    pub(crate) fn start(command: &mut Command, log: &Path) -> io::Result<Running> {
        command.stdout(Stdio::piped()).stderr(File::create(log)?);
        Ok(Running(command.spawn()?))
    }

    /// Starts it in front of an upstream of its own, with the files of both in a folder: what it logs is in `log`.
    pub(crate) fn serving(
        mut command: Command,
        folder: &Path,
        (work, extent): (&Work, &Extent),
    ) -> io::Result<Running> {
        let upstream = peers::upstream(work.size)?.to_string();
        // Named as in production, so that it is checked as there.
        let own = peers::free()?.to_string();
        let between = (own.as_str(), upstream.as_str());
        let config = production::write(folder, extent, work.kind, between)?;
        command.args(["run", "--config"]).arg(&config);
        Running::start(&mut command, &folder.join("log"))
    }

    /// Where it serves, once it does.
    pub(crate) fn address(&mut self) -> io::Result<SocketAddr> {
        let output = self.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line
            .trim_start_matches("serving http://")
            .split([',', ' ', '\n'])
            .next();
        let address = address
            .unwrap_or_default()
            .parse()
            .map_err(io::Error::other)?;
        std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
        Ok(address)
    }

    /// Memory of its own, in KiB.
    pub(crate) fn kib(&self, memory: Memory) -> io::Result<u64> {
        let name = match memory {
            Memory::Anonymous => "RssAnon:",
            Memory::Highest => "VmHWM:",
            Memory::Resident => "VmRSS:",
        };
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let mut lines = status.lines();
        let held = lines.find_map(|line| line.strip_prefix(name));
        let held = held.and_then(|held| held.trim().strip_suffix(" kB"));
        let held = held.ok_or_else(|| io::Error::other(format!("the kernel tells no {name}")))?;
        held.parse().map_err(io::Error::other)
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or(io::ErrorKind::InvalidInput)?, Signal::TERM)?;
        let status = self.0.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("the proxy ended with {status}")))
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or it is of no use.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
