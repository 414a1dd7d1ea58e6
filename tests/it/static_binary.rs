//! The program as the image has it: without a library of the system, in a root that holds nothing but itself.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::scene::{body_of, call, json, saying};
use crate::support::{Proxy, Upstream, Wire, run_to_end};

/// The user of the image.
const NOBODY: u32 = 65532;

/// What `.ci/static` has built.
fn built() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dualgauge"));
    let target = program.parent().unwrap().parent().unwrap();
    let program = target.join("static/dualgauge");
    assert!(program.exists(), "{program:?} is not there: run .ci/static");
    program
}

/// A root with the program, its files, and an empty folder for its state.
fn root(config: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["bin", "etc/dualgauge", "var/lib/dualgauge"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    fs::copy(built(), root.path().join("bin/dualgauge")).unwrap();
    fs::write(root.path().join("etc/dualgauge/dualgauge.toml"), config).unwrap();
    // As every container runtime writes one.
    fs::write(root.path().join("etc/hosts"), "127.0.0.1 upstream\n").unwrap();
    if is_root(root.path()) {
        chown(
            root.path().join("var/lib/dualgauge"),
            Some(NOBODY),
            Some(NOBODY),
        )
        .unwrap();
        // The folder of a test is its owner's alone.
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(root.path(), open).unwrap();
    }
    root
}

/// What a test has made belongs to who runs it.
fn is_root(own: &Path) -> bool {
    fs::metadata(own).unwrap().uid() == 0
}

/// The program with this root, as the user of the image where that may be chosen.
fn inside(root: &Path, arguments: &[&str]) -> Command {
    let mut command = if is_root(root) {
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={NOBODY}:{NOBODY}"));
        command
    } else {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "chroot"]);
        command
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .arg(root)
        .arg("/bin/dualgauge")
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("DUALGAUGE_ROLLOUT__STATE", "/var/lib/dualgauge")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
#[ignore = "needs a static binary"]
fn no_library_is_asked_for() {
    let ldd = Command::new("ldd").arg(built()).output().unwrap();
    let said = [ldd.stdout, ldd.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let is_static = said.contains("statically linked") || said.contains("not a dynamic executable");
    assert!(is_static, "{said}");
}

#[test]
#[ignore = "needs a static binary"]
fn a_call_is_served_translated_and_looked_after_in_an_empty_root() {
    let rest = Upstream::serving(|_| json(r#"{"by":"rest"}"#));
    let rpc = saying(r#""result":{"by":"rpc"}"#);
    let config = format!(
        "[listen]\nworkers = 1\n\
         [upstream.old]\nside = \"rest\"\nurl = \"http://upstream:{}\"\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://upstream:{}/rpc\"\n\
         [rollout]\nflags = \"flags.toml\"\n\
         [[route]]\nname = \"things.get\"\nrest = \"GET /things/{{id}}\"\nrpc = \"things/get\"\n\
         [[client]]\nname = \"mover\"\nmatch = {{ header = {{ x-client-id = \"mover\" }} }}\n",
        rest.address().port(),
        rpc.address().port()
    );
    let root = root(&config);
    let flags = "[[flag]]\nname = \"moved\"\nclient = \"mover\"\nstage = \"translate\"\n";
    fs::write(root.path().join("etc/dualgauge/flags.toml"), flags).unwrap();
    let own = root.path().to_owned();
    let run = ["run", "--config", "/etc/dualgauge/dualgauge.toml"];
    let addresses = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let proxy = Proxy::launch(inside(&own, &[&run[..], &addresses].concat()), root);

    let get = |client| proxy.rest("GET", "/things/7", &[("x-client-id", client)], "");
    assert_eq!(body_of(&get("other"), 200), r#"{"by":"rest"}"#);
    assert_eq!(body_of(&get("mover"), 200), r#"{"by":"rpc"}"#);
    let answer = proxy.rpc(call("things/get", r#"{"id":"7"}"#)).json();
    assert_eq!(answer["result"]["by"], "rpc");

    let admin = format!("http://{}", proxy.admin());
    let health = run_to_end(inside(&own, &["health", "--admin", &admin]));
    assert_eq!(
        (health.code, &*health.output),
        (Some(0), "ready"),
        "{health:?}"
    );
    // A flip is written into the one folder that may be written.
    let flip = proxy.ask(
        "PUT",
        "/api/v1/flags/moved",
        r#"{"stage":"passthrough","percent":100}"#,
    );
    assert_eq!(flip.status(), 200, "{flip:?}");
    assert!(own.join("var/lib/dualgauge/rollout.json").exists());
    assert!(proxy.stop().status.success());
}

#[cfg(feature = "demo")]
#[test]
#[ignore = "needs a static binary"]
fn the_database_of_the_sample_server_is_inside_as_well() {
    use std::io::{BufRead, BufReader};

    let root = root("");
    let mut sample = inside(root.path(), &["sample", "--listen", "127.0.0.1:0"])
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(sample.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("serving http://").unwrap();
    let mut wire = Wire::connect(address.parse().unwrap());
    let body = r#"{"name":"list_tables","arguments":{}}"#;
    let length = body.len();
    wire.send(format!(
        "POST /mcp/v1/tools/call HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    assert!(wire.read_answer().text().contains("users"));
    sample.kill().unwrap();
    sample.wait().unwrap();
}
