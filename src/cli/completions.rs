//! `dualgauge completions`: scripts that complete commands, options, files and names in a shell.
//!
//! A script does not contain the candidates. At each completion it calls the installed program, with [`VARIABLE`] and
//! the words of the command line, and the program prints them.
//!
//! Used by `cli`.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::cli::command_error::CommandError;

pub(super) const EXAMPLES: &str = "\
Examples:
  source <(dualgauge completions bash)
  source <(dualgauge completions zsh)
  dualgauge completions fish > ~/.config/fish/completions/dualgauge.fish";

/// The variable with which a script asks for candidates. The script for bash names it as well.
const VARIABLE: &str = "_DUALGAUGE_COMPLETE";
/// The name of the program, as users type it.
const PROGRAM: &str = "dualgauge";
/// The script for bash. That of the library passes parts of words that contain `=` or `:`, such as URLs.
const BASH: &str = include_str!("completions/dualgauge.bash");
/// The end of the script for zsh: as the file `_dualgauge` of a folder in `fpath`, it runs at the first completion.
const AUTOLOADED: &str = r#"
if [[ "${funcstack[1]}" == _dualgauge ]]; then
    _clap_dynamic_completer_dualgauge
fi
"#;

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// bash 4.4 or newer
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        }
    }
}

pub(super) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    let mut register = |completer: &dyn EnvCompleter| {
        completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
    };
    match arguments.shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Zsh => {
            register(&Zsh)?;
            script.extend_from_slice(AUTOLOADED.as_bytes());
        }
        Shell::Fish => register(&Fish)?,
    }
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the candidates for a script; returns `None` if no script asks.
pub(super) fn complete(command: impl FnOnce() -> Command) -> Option<ExitCode> {
    // It is no key of the configuration, and so `config::load` does not read it.
    let shell = env::var_os(VARIABLE)?;
    let shell = Shell::from_str(shell.to_str()?, false).ok()?;
    let mut candidates = Vec::new();
    let folder = env::current_dir().ok();
    let written = shell.completer().write_complete(
        &mut command(),
        words(),
        folder.as_deref(),
        &mut candidates,
    );
    let printed = written.and_then(|()| io::stdout().lock().write_all(&candidates));
    Some(printed.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

/// Returns the words of the command line that is completed, which a script passes behind `--`.
pub(super) fn words() -> Vec<OsString> {
    let words = env::args_os().skip_while(|word| word != "--");
    words.skip(1).collect()
}
