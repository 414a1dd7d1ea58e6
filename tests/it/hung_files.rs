//! Files on a file system that does not answer: the rest of the process goes on, and ends when it is told to.
//!
//! The program is real. A library that is loaded before it lets the system's `open64` hang on some paths, as a mount does
//! whose server is away.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Proxy, Upstream, becomes, both, program};

/// Paths that begin with `HUNG_PATHS` are opened once there is no file `HUNG_MARK` any more.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    unsigned mode = va_arg(more, unsigned);
    va_end(more);
    const char *paths = getenv("HUNG_PATHS");
    const char *mark = getenv("HUNG_MARK");
    if (paths && mark && strncmp(path, paths, strlen(paths)) == 0)
        while (access(mark, F_OK) == 0) usleep(10000);
    int (*open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    return open(path, flags, mode);
}
"#;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const FLAGS: &str = "[[flag]]\nname = 'f'\nstage = 'passthrough'\n";
const ROUTE: &str = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";
const FLIP: &str = r#"{"stage":"translate","percent":100}"#;

/// A proxy whose files below `paths` hang while [`hang`] has marked them.
fn start(paths: &str) -> (Proxy, Upstream) {
    let upstream = Upstream::answering(ANSWER);
    let folder = tempfile::tempdir().unwrap();
    let main = both(&upstream, &upstream);
    let main = format!("{main}[rollout]\nflags = 'flags.toml'\n{ROUTE}");
    fs::write(folder.path().join("dualgauge.toml"), main).unwrap();
    fs::write(folder.path().join("flags.toml"), FLAGS).unwrap();
    let mut command = program(&["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command
        .arg("--config")
        .arg(folder.path().join("dualgauge.toml"))
        .env("LD_PRELOAD", library(&folder))
        .env("HUNG_PATHS", folder.path().join(paths))
        .env("HUNG_MARK", mark(folder.path()));
    (Proxy::launch(command, folder), upstream)
}

fn library(folder: &TempDir) -> std::path::PathBuf {
    let library = folder.path().join("hung.so");
    let mut compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-x", "c", "-o"])
        .arg(&library)
        .args(["-", "-ldl"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut source = compiler.stdin.take().unwrap();
    source.write_all(LIBRARY.as_bytes()).unwrap();
    drop(source);
    assert!(compiler.wait().unwrap().success());
    library
}

fn mark(folder: &Path) -> std::path::PathBuf {
    folder.join("hung")
}

fn hang(proxy: &Proxy) {
    fs::write(mark(proxy.folder()), "").unwrap();
}

fn answer_again(proxy: &Proxy) {
    fs::remove_file(mark(proxy.folder())).unwrap();
}

/// What an operator and a caller need is there.
fn lives(proxy: &Proxy) {
    assert_eq!(proxy.ask("GET", "/healthz", "").status(), 200);
    assert_eq!(proxy.rest("GET", "/a", &[], "").status(), 200);
    let ready = proxy.ask("GET", "/readyz", "");
    assert_eq!(ready.status(), 200, "{ready:?}");
}

#[test]
fn a_flags_file_that_hangs_stops_neither_probes_nor_the_kill_switch_nor_the_end() {
    let (proxy, _upstream) = start("flags.toml");
    hang(&proxy);
    proxy.signal("HUP");
    let late = "flags.toml` has not responded within 3 s; check its file system";
    proxy.log_line(&["ERROR", "cannot be read", late]);
    lives(&proxy);
    let ready = proxy.ask("GET", "/readyz", "");
    assert!(ready.text().contains(late), "{ready:?}");
    let asked = proxy.ask("POST", "/api/v1/reload", "{}");
    assert_eq!(asked.status(), 503, "{asked:?}");
    assert!(asked.text().contains(late), "{asked:?}");
    assert_eq!(proxy.ask("PUT", "/api/v1/flags/f", FLIP).status(), 200);
    assert_eq!(proxy.ask("PUT", "/api/v1/kill", "{}").status(), 200);

    // An edit meanwhile is in force once the file is there again.
    let path = proxy.folder().join("flags.toml");
    fs::write(path, FLAGS.replace("'f'", "'g'")).unwrap();
    answer_again(&proxy);
    becomes(|| proxy.ask("GET", "/api/v1/flags/g", "").status(), &200);
    let ready = proxy.ask("GET", "/readyz", "");
    assert_eq!(ready.text(), "ready\n");

    // A reload that is under way does not delay the end.
    hang(&proxy);
    proxy.signal("HUP");
    proxy.signal("TERM");
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(stopped.log.contains("drained"), "{stopped:?}");
}

#[test]
fn a_state_folder_that_hangs_stops_neither_probes_nor_the_kill_switch_nor_the_end() {
    let (proxy, _upstream) = start("state/");
    hang(&proxy);
    let killed = proxy.ask("PUT", "/api/v1/kill", "{}");
    assert_eq!(killed.status(), 202, "{killed:?}");
    let late = "has not responded within 2 s; check its file system";
    assert!(killed.text().contains(late), "{killed:?}");
    lives(&proxy);
    let ready = proxy.ask("GET", "/readyz", "");
    assert!(ready.text().contains(late), "{ready:?}");
    let flipped = proxy.ask("PUT", "/api/v1/flags/f", FLIP);
    assert_eq!(flipped.status(), 503, "{flipped:?}");

    answer_again(&proxy);
    let is_stored = || {
        let flags = proxy.ask("GET", "/api/v1/flags", "").json();
        flags.get("kill_unstored").is_none()
    };
    becomes(is_stored, &true);
    becomes(
        || proxy.ask("GET", "/readyz", "").text().to_owned(),
        &"ready\n".to_owned(),
    );
    let stored = fs::read_to_string(proxy.folder().join("state/rollout.json")).unwrap();
    assert!(stored.contains("\"kill\""), "{stored}");

    hang(&proxy);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(stopped.log.contains("drained"), "{stopped:?}");
}
