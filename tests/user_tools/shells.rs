//! Completions in real shells: a partial word and the tab key are typed, and the shell prints its words.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{DUALGAUGE, ROOT, succeed};

const PROMPT: &str = "READY> ";

/// Writes a configuration with a flag and a route.
fn configuration(folder: &Path, main: &str, flag: &str, route: &str) {
    let flags = format!("{main}-flags.toml");
    let text = format!(
        "[listen]\naddress = '127.0.0.1:0'\n[admin]\naddress = '127.0.0.1:0'\n\
         [upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:9'\n\
         [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:9'\n\
         [rollout]\nflags = '{flags}'\n\
         [[client]]\nname = 'app'\nmatch = {{ user_agent = 'app' }}\n\
         [[route]]\nname = '{route}'\nrest = 'GET /{route}'\nrpc = '{route}'\n"
    );
    fs::write(folder.join(format!("{main}.toml")), text).unwrap();
    let text = format!("[[flag]]\nname = '{flag}'\nclient = 'app'\nstage = 'shadow'\n");
    fs::write(folder.join(flags), text).unwrap();
}

/// A running proxy.
struct Proxy {
    child: Child,
    admin: String,
}

impl Proxy {
    fn start(main: &Path) -> Proxy {
        let mut command = Command::new(DUALGAUGE);
        command.args(["run", "--config"]).arg(main);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let admin = lines.map_while(Result::ok).find_map(|line| {
            let (_, admin) = line.split_once(", admin http://")?;
            Some(format!("http://{}", admin.split(',').next()?))
        });
        let admin = admin.unwrap();
        Proxy { child, admin }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Lines of which the last word is completed, and the whole word.
fn cases(running: &str) -> Vec<(String, &'static str)> {
    let unreachable = "http://127.0.0.1:1";
    vec![
        ("dualgauge sch".to_owned(), "schema"),
        ("dualgauge check --conf".to_owned(), "--config"),
        (
            "dualgauge check --config dualgauge.t".to_owned(),
            "dualgauge.toml",
        ),
        ("dualgauge kit ether".to_owned(), "ethereum"),
        ("dualgauge flags set mobile trans".to_owned(), "translate"),
        // The configuration at hand.
        (
            format!("dualgauge flags --admin {unreachable} set mob"),
            "mobile",
        ),
        // The running proxy.
        (
            format!("dualgauge flags --admin {running} set str"),
            "stranger",
        ),
        (
            format!("dualgauge usage --admin={running} --route ord"),
            "orders.read",
        ),
        // The configuration that the line names.
        (
            "dualgauge replay a.jsonl --config other.toml --only ord".to_owned(),
            "orders.read",
        ),
    ]
}

/// Types lines into a shell, whose start file is written before.
fn complete(folder: &Path, shell: &[&str], environment: &[(&str, &str)]) {
    configuration(folder, "dualgauge", "mobile", "items.read");
    configuration(folder, "other", "stranger", "orders.read");
    let proxy = Proxy::start(&folder.join("other.toml"));
    let mut steps = vec![json!(["", PROMPT])];
    for (line, whole) in cases(&proxy.admin) {
        // The tab key completes; then the line becomes an argument of printf.
        let keys = format!("{line}\t\u{1}printf '<%s>' \r");
        steps.push(json!([keys, format!("<{whole}>")]));
        steps.push(json!(["", PROMPT]));
    }
    let own = Path::new(DUALGAUGE).parent().unwrap().to_str().unwrap();
    let home = folder.to_str().unwrap();
    let mut variables = json!({
        "PATH": format!("{own}:/usr/local/bin:/usr/bin:/bin"),
        "HOME": home,
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
    });
    for (name, value) in environment {
        variables[name] = Value::from(*value);
    }
    let job = json!({ "folder": home, "shell": shell, "environment": variables, "steps": steps });
    let mut python = Command::new("python3");
    python.arg("tests/user_tools/type.py").current_dir(ROOT);
    let mut typist = python
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = job.to_string();
    typist
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    assert!(typist.wait().unwrap().success());
}

#[test]
fn candidates_have_descriptions_and_come_from_a_configuration_with_problems() {
    let folder = tempfile::tempdir().unwrap();
    configuration(folder.path(), "dualgauge", "mobile", "items.read");
    let main = folder.path().join("dualgauge.toml");
    let text = fs::read_to_string(&main).unwrap() + "[limts]\n";
    fs::write(&main, text).unwrap();
    let candidates = |words: &[&str]| {
        let mut asked = Command::new(DUALGAUGE);
        asked.env_clear().env("_DUALGAUGE_COMPLETE", "fish");
        asked.args(["--", "dualgauge"]).args(words);
        succeed(asked.current_dir(&folder))
    };
    let routes = "items.read\tGET /items.read, items.read\n";
    let only = ["replay", "a", "--config", "dualgauge.toml", "--only", ""];
    assert_eq!(candidates(&only), routes);
    // Nothing listens on this port.
    let nowhere = "--admin=http://127.0.0.1:1";
    assert_eq!(candidates(&["usage", nowhere, "--route", "it"]), routes);
    let flags = ["flags", nowhere, "undo", ""];
    let first = candidates(&flags).lines().next().map(str::to_owned);
    assert_eq!(first.as_deref(), Some("mobile\tshadow"));
    let unreadable = ["replay", "a", "--config", "none.toml", "--only", "it"];
    assert_eq!(candidates(&unreadable), "");
}

/// Returns the script for a shell.
fn script(shell: &str) -> String {
    succeed(Command::new(DUALGAUGE).args(["completions", shell]))
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn bash_completes_commands_files_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let start = "PS1='READY> '\nbind 'set enable-bracketed-paste off'\nsource <(dualgauge completions bash)\n";
    fs::write(folder.path().join("start"), start).unwrap();
    let shell = ["/bin/bash", "--noprofile", "--rcfile", "start", "-i"];
    complete(folder.path(), &shell, &[]);
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn zsh_completes_commands_files_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let start = "PS1='READY> '\nbindkey -e\nunsetopt prompt_sp\nautoload -U compinit\ncompinit -u\nsource <(dualgauge completions zsh)\n";
    fs::write(folder.path().join(".zshrc"), start).unwrap();
    complete(folder.path(), &["/bin/zsh", "-d", "-i"], &[]);
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn zsh_completes_with_the_file_of_a_package() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("functions")).unwrap();
    fs::write(folder.path().join("functions/_dualgauge"), script("zsh")).unwrap();
    let start = "PS1='READY> '\nbindkey -e\nunsetopt prompt_sp\nfpath=($HOME/functions $fpath)\nautoload -U compinit\ncompinit -u\n";
    fs::write(folder.path().join(".zshrc"), start).unwrap();
    complete(folder.path(), &["/bin/zsh", "-d", "-i"], &[]);
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn fish_completes_commands_files_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let fish = folder.path().join("fish");
    fs::create_dir_all(fish.join("completions")).unwrap();
    fs::write(fish.join("completions/dualgauge.fish"), script("fish")).unwrap();
    let start = "set fish_greeting\nfunction fish_prompt\n    printf 'READY> '\nend\n";
    fs::write(fish.join("config.fish"), start).unwrap();
    let home = folder.path().to_str().unwrap();
    let folders = [("XDG_CONFIG_HOME", home), ("XDG_DATA_HOME", home)];
    complete(folder.path(), &["/usr/bin/fish", "-i"], &folders);
}
