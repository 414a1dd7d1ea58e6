//! `dualgauge kit`: ready configurations for known systems, compiled into the program. Used by `cli`.

mod fault;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::cli::command_error::CommandError;
use crate::cli::schema;

pub(super) use fault::KitFault;

pub(super) const EXAMPLES: &str = "\
Examples:
  dualgauge kit
  dualgauge kit ethereum
  dualgauge kit ethereum --write eth && dualgauge check --config eth/dualgauge.toml";

/// The arguments of `kit`.
#[derive(Debug, Args)]
pub(super) struct KitArguments {
    /// The kit to show or to write; without it, all kits are listed
    #[arg(value_name = "NAME", add = ArgValueCandidates::new(candidates))]
    name: Option<String>,
    /// Write the files of the kit into this folder; existing files are not replaced
    #[arg(long, value_name = "DIR", requires = "name")]
    write: Option<PathBuf>,
}

/// A ready configuration for a known system.
#[derive(Debug)]
struct Kit {
    name: &'static str,
    /// The migration that it serves, in one line.
    summary: &'static str,
    /// The names of its files, with their texts.
    files: &'static [KitFile],
}

/// A file of a kit.
#[derive(Debug)]
struct KitFile {
    name: &'static str,
    text: &'static str,
}

const README: &str = "README.md";

macro_rules! kit {
    ($name:literal, $summary:literal $(, $more:literal)*) => {
        Kit {
            name: $name,
            summary: $summary,
            files: &[
                kit!(file $name, "README.md"),
                kit!(file $name, "dualgauge.toml"),
                kit!(file $name, "routes.toml"),
                $(kit!(file $name, $more),)*
                kit!(file $name, "flags.toml"),
            ],
        }
    };
    (file $kit:literal, $file:literal) => {
        KitFile {
            name: $file,
            text: include_str!(concat!("../../config/kits/", $kit, "/", $file)),
        }
    };
}

/// All kits, in the order of their names.
const KITS: &[Kit] = &[
    kit!(
        "a2a",
        "both bindings of an A2A 1.0 agent, with streams",
        "v03.toml",
        "v03-rest.toml",
        "agent-v03.toml",
        "to-v03.toml",
        "to-v03-rest.toml"
    ),
    kit!("aria2", "aria2's JSON-RPC methods as a REST API"),
    kit!(
        "bitcoin",
        "the REST interface of Bitcoin Core and its JSON-RPC, both ways"
    ),
    kit!(
        "ethereum",
        "the execution API of an Ethereum node as a REST API",
        "subscriptions.toml"
    ),
    kit!("odoo", "Odoo's JSON-RPC and its JSON-2 API, both ways"),
    kit!(
        "transmission",
        "Transmission's old messages and its JSON-RPC, both ways"
    ),
    kit!(
        "truenas",
        "TrueNAS's REST v2.0 and its JSON-RPC on a WebSocket, both ways"
    ),
    kit!(
        "zabbix",
        "Zabbix's member `auth` and its header `Authorization`, both ways"
    ),
];

/// Returns all kits, for completions.
fn candidates() -> Vec<CompletionCandidate> {
    let kits = KITS.iter();
    kits.map(|kit| CompletionCandidate::new(kit.name).help(Some(kit.summary.into())))
        .collect()
}

pub(super) fn kit(arguments: &KitArguments) -> Result<ExitCode, CommandError> {
    let mut out = io::stdout().lock();
    let Some(name) = &arguments.name else {
        list(&mut out)?;
        return Ok(ExitCode::SUCCESS);
    };
    let kit = find(name)?;
    match &arguments.write {
        None => out.write_all(kit.readme().as_bytes())?,
        Some(folder) => {
            kit.write_files(folder)?;
            report(kit, folder, &mut out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<&'static Kit, KitFault> {
    let found = KITS.iter().find(|kit| kit.name == name);
    found.ok_or_else(|| KitFault::Unknown {
        name: name.to_owned(),
        known: KITS
            .iter()
            .map(|kit| format!("`{}`", kit.name))
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// Lists all kits, with the command that writes one.
fn list(out: &mut impl Write) -> io::Result<()> {
    let width = KITS.iter().map(|kit| kit.name.len()).max().unwrap_or(0);
    for kit in KITS {
        writeln!(out, "{:width$}  {}", kit.name, kit.summary)?;
    }
    writeln!(
        out,
        "\n`dualgauge kit NAME` describes a kit, `dualgauge kit NAME --write DIR` writes it."
    )
}

/// Lists the written files, and the commands that come next.
fn report(kit: &Kit, folder: &Path, out: &mut impl Write) -> io::Result<()> {
    for (name, _) in kit.written() {
        writeln!(out, "wrote {}", folder.join(name).display())?;
    }
    let main = folder.join("dualgauge.toml");
    writeln!(
        out,
        "\nSet the `url` of each upstream in `{}`, as `{}` says, then:",
        main.display(),
        folder.join(README).display()
    )?;
    writeln!(out, "  dualgauge check --config {}", main.display())?;
    writeln!(out, "  dualgauge run --config {}", main.display())
}

impl Kit {
    fn readme(&self) -> &'static str {
        let readme = self.files.iter().find(|file| file.name == README);
        readme.map_or("", |file| file.text)
    }

    /// Returns the names and texts of the files to write: those of the kit, and the schemas that they name.
    fn written(&self) -> impl Iterator<Item = (&'static str, String)> {
        let own = self.files.iter();
        let own = own.map(|file| (file.name, schema::with_schema_beside(file.text)));
        own.chain(schema::all())
    }

    /// Writes the files into a folder, which is created if it is missing.
    ///
    /// Fails if one of them exists, and then writes none.
    fn write_files(&self, folder: &Path) -> Result<(), KitFault> {
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |cause| KitFault::Unwritable { path, cause }
        };
        let files: Vec<(PathBuf, String)> = (self.written())
            .map(|(name, text)| (folder.join(name), text))
            .collect();
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            return Err(KitFault::Exists { path: path.clone() });
        }
        fs::create_dir_all(folder).map_err(unwritable(folder))?;
        for (path, text) in files {
            let opened = OpenOptions::new().write(true).create_new(true).open(&path);
            let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
            written.map_err(unwritable(&path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every folder of `config/kits` is a kit with exactly its files, and the list is sorted.
    #[test]
    fn the_list_has_every_folder_and_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/kits");
        let names = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.collect::<BTreeSet<String>>()
        };
        let listed: Vec<&str> = KITS.iter().map(|kit| kit.name).collect();
        assert!(listed.is_sorted());
        assert_eq!(listed, names(&root).iter().collect::<Vec<_>>());
        for kit in KITS {
            let files = kit.files.iter().map(|file| file.name.to_owned());
            assert_eq!(files.collect::<BTreeSet<_>>(), names(&root.join(kit.name)));
        }
    }

    #[test]
    fn a_file_that_exists_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("flags.toml");
        fs::write(&kept, "mine").unwrap();
        let written = KITS[0].write_files(folder.path());
        assert!(matches!(written, Err(KitFault::Exists { path }) if path == kept));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
        assert!(!folder.path().join("dualgauge.toml").exists());
    }
}
