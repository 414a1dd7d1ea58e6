//! Whole configurations, as files in a folder, and the text of every problem.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::load::{Sources, load};
use crate::config::problem::Problems;
use crate::config::raw::{RawConfig, RawMatch, RawServer};
use dualgauge_model::plan::{Credentials, Unrouted};
use dualgauge_model::rollout::{KeySource, Stage};
use dualgauge_model::route::Effect;
use dualgauge_patterns::side::Side;

mod any_route;
mod any_text;
mod defaults;
mod documented;
mod documented_rows;
mod face;
mod flags;
mod irregular;
mod json_schema;
mod kind;
mod layers;
mod mcp;
mod routes;
mod source;
mod stdio;
mod store;
mod tls;
mod websocket;

/// A folder with a configuration and other files, with variables and arguments.
pub(super) struct Fixture {
    folder: tempfile::TempDir,
    pub(super) sources: Sources,
}

impl Fixture {
    pub(super) fn new(main: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dualgauge.toml");
        fs::write(&file, main).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        Fixture { folder, sources }
    }

    pub(super) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        let variable = (name.to_owned(), value.to_owned());
        self.sources.environment.push(variable);
        self
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self) -> Result<RawConfig, Problems> {
        load(&self.sources)
    }

    fn config(&self) -> RawConfig {
        self.load().unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// The text of the problems, with file names from the folder on.
    fn problems(&self) -> String {
        shown(&self.load().unwrap_err(), self.folder.path())
    }
}

fn shown(problems: &Problems, folder: &Path) -> String {
    let prefix = format!("{}/", folder.display());
    problems.to_string().replace(&prefix, "")
}

#[test]
fn without_any_file_the_defaults_hold() {
    let config = load(&Sources::default()).unwrap();
    assert_eq!(config.listen.address.value.to_string(), "127.0.0.1:8080");
    assert!(config.listen.workers.value >= 1);
    assert_eq!(config.admin.value.to_string(), "127.0.0.1:9090");
    let paths: Vec<_> = config.rpc.paths.iter().map(|p| p.value.as_str()).collect();
    assert_eq!(paths, ["/rpc"]);
    assert_eq!(config.rpc.notification_status, None);
    assert_eq!(config.limits.body.value, 8 << 20);
    assert_eq!(config.limits.answer.value, 16 << 20);
    assert_eq!(config.limits.head.value, 64 << 10);
    assert_eq!(config.limits.target.value, 8 << 10);
    assert_eq!(config.limits.in_flight.value, 10_000);
    assert_eq!(config.limits.drain.value, Duration::from_secs(30));
    assert_eq!(config.unrouted.value, Unrouted::Passthrough);
    assert!(!config.rejects_irregular.value);
    assert_eq!(config.rollout.api_key_header.value, "x-api-key");
    assert_eq!(config.rollout.state.value, Path::new("state/"));
    assert_eq!(config.rollout.flags, None);
    assert_eq!(config.limits.body.place.to_string(), "default");
}

const RICH: &str = r#"
include = ["routes/*.toml"]
unrouted = "reject"

[listen]
workers = 2

[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"
timeout = "10s"
credentials = "drop"
forward = ["X-Tenant"]

[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/rpc"

[rollout]
flags = "flags.toml"
default = {
  rest = "passthrough",   # TOML 1.1: an inline table over several lines,
  rpc = "translate",      # with comments and a comma at the end
}

[[client]]
name = "ios-app"
match = { header = { x-client-id = "ios-*" } }
key = { header = "x-device-id" }

[[client]]
name = "batch"
match = { api_key = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" }
key = "api_key"

[[route]]
name = "tools.call"
rest = "POST /face/v1/tools/call"
rpc = "tools/call"
effect = "safe"
timeout = "500ms"
"#;

#[test]
fn a_whole_configuration_is_read() {
    let fixture = Fixture::new(RICH).file(
        "routes/more.toml",
        "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\nsuccessor = 'b'\n",
    );
    let config = fixture.config();
    assert_eq!(config.listen.workers.value, 2);
    let [new, old] = config.upstreams.as_slice() else {
        panic!("two upstreams, sorted by name");
    };
    assert_eq!(
        (new.name.value.as_str(), new.side.value),
        ("new", Side::Rpc)
    );
    let RawServer::Url(url) = &new.server else {
        panic!("an address");
    };
    assert_eq!(url.value.path(), "/rpc");
    assert_eq!(new.timeout.value, Duration::from_secs(30));
    assert_eq!(new.keep_alive.value, Duration::from_secs(4));
    assert_eq!(new.idle_timeout.value, Duration::from_secs(300));
    assert_eq!(old.credentials.value, Credentials::Drop);
    assert_eq!(old.forward[0].value, "x-tenant");
    assert_eq!(old.forward[0].key, "upstream.old.forward[0]");
    assert_eq!(config.rollout.state.value, fixture.path("state/"));
    let flags = config.rollout.flags.unwrap();
    assert_eq!(flags.value, fixture.path("flags.toml"));
    assert_eq!(config.rollout.default_rpc.unwrap().value, Stage::Translate);
    let key = config.clients[0].key.as_ref().unwrap();
    assert!(matches!(&key.value, KeySource::Header(name) if name == "x-device-id"));
    let RawMatch::ApiKeys(hashes) = &config.clients[1].matches else {
        panic!("an API key");
    };
    assert_eq!((hashes[0].value[0], hashes[0].value[31]), (0x2b, 0x5b));
    let route = &config.routes[0];
    assert_eq!(route.effect.as_ref().unwrap().value, Effect::Safe);
    assert_eq!(
        route.timeout.as_ref().unwrap().value,
        Duration::from_millis(500)
    );
    assert_eq!(
        config.files,
        [
            fixture.path("dualgauge.toml"),
            fixture.path("routes/more.toml")
        ]
    );
}

#[test]
fn included_routes_keep_their_file_and_line_after_the_join() {
    let route = |name: &str| format!("\n[[route]]\nname = '{name}'\nrest = 'GET /'\nrpc = 'x'\n");
    let fixture = Fixture::new(&format!(
        "include = ['r/b*.toml', 'r/*.toml']\n{}",
        route("m")
    ))
    .file(
        "r/a.toml",
        format!("# later\n{}{}", route("a0"), route("a1")),
    )
    .file("r/b.toml", route("b"));
    let routes = fixture.config().routes;
    let places: Vec<_> = routes
        .iter()
        .map(|route| {
            let place = route.place.to_string();
            let file = place.rsplit('/').next().unwrap().to_owned();
            (route.name.value.clone(), file, route.key.clone())
        })
        .collect();
    let row =
        |name: &str, place: &str, key: &str| (name.to_owned(), place.to_owned(), key.to_owned());
    assert_eq!(
        places,
        [
            row("m", "dualgauge.toml:3", "route[0]"),
            row("b", "b.toml:2", "route[1]"),
            row("a0", "a.toml:3", "route[2]"),
            row("a1", "a.toml:8", "route[3]"),
        ]
    );
}

#[test]
fn every_problem_of_every_file_is_reported_at_once() {
    let fixture = Fixture::new(
        r#"include = ["routes/*.toml", "none/*.toml", "more/*.toml"]

[listen]
adress = "127.0.0.1:1"
workers = 0

[upstream.old]
side = "rst"
url = "gopher://example.com"
timeout = "10x"

[upstream.new]
url = { host = "x" }
keep_alive = 4

[limits]
body = "8 megabytes"
depth = 513
batch = 1.5

[rpc]
notification_status = 201
paths = ["rpc", 3]

[[client]]
name = "two words"
match = { api_key = ["hunter2"] }

[[client]]
name = "c"
match = { header = { "bad name" = "x" } }
key = "api-key"
"#,
    )
    .file(
        "routes/a.toml",
        r#"[listen]
address = "0.0.0.0:80"

[[route]]
name = "a"
rest = "GET /a"
rset = "GET /a"
frame = {}
effect = true
"#,
    )
    .file("more/b.toml", "\n[[route]]\nname = \"a\"\nrest = \"GET /b\"\nrpc = \"b\"\n[[route]]\nname = \"a\"\nrest = \"GET /c\"\nrpc = \"c\"\n")
    .variable("DUALGAUGE_LIMITS__DRAIN", "soon")
    .variable("DUALGAUGE_LIMIT__DRAIN", "1s");
    assert_eq!(fixture.problems(), EVERY_PROBLEM);
}

const EVERY_PROBLEM: &str = r#"dualgauge.toml:1: include[1]: `none` cannot be read: No such file or directory (os error 2)
dualgauge.toml:4: listen.adress: unknown key
  hint: did you mean `address`?
dualgauge.toml:5: listen.workers: the number `0` is not a whole number from 1 to 1024
dualgauge.toml:8: upstream.old.side: `rst` is not allowed here; write `rest` or `rpc`
  hint: did you mean `rest`?
dualgauge.toml:9: upstream.old.url: `gopher://example.com` is not the address of a server; write one such as `http://127.0.0.1:9001`
dualgauge.toml:10: upstream.old.timeout: `10x` is not a duration; write a number and a unit, such as `500ms`, `10s` or `5m`
dualgauge.toml:12: upstream.new: `side` is missing
dualgauge.toml:13: upstream.new.url: a table is not a string
dualgauge.toml:14: upstream.new.keep_alive: the number `4` is not a duration; write a number and a unit, such as `500ms`, `10s` or `5m`
dualgauge.toml:17: limits.body: `8 megabytes` is not a size up to 1024GiB; write a number of bytes, or a number and a unit, such as `64KiB` or `8MiB`
dualgauge.toml:18: limits.depth: the number `513` is not a whole number from 1 to 512
dualgauge.toml:19: limits.batch: the number `1.5` is not a whole number from 1 to 1000000
dualgauge.toml:22: rpc.notification_status: the number `201` is not allowed here; write 200, 202 or 204
dualgauge.toml:23: rpc.paths[0]: `rpc` is not a path; write one that begins with `/`, without a query
dualgauge.toml:23: rpc.paths[1]: the number `3` is not a string
dualgauge.toml:26: client[0].name: `two words` is not a name; write 1 to 100 bytes without spaces
dualgauge.toml:27: client[0].match.api_key[0]: an API key is written as its hash: `sha256:` and 64 hexadecimal digits
  hint: `printf %s KEY | sha256sum` prints the digits
dualgauge.toml:31: client[1].match.header."bad name": `bad name` is not an HTTP header name
dualgauge.toml:32: client[1].key: `api-key` is not allowed here; write `api_key` or `address`, or `{ header = "x-device-id" }`, `{ claim = "sub" }` or `{ cookie = "sid" }`
  hint: did you mean `api_key`?
more/b.toml:7: route[2].name: the name `a` is already used by route[1].name at more/b.toml:3
routes/a.toml:1: listen: an included file can contain only routes; write this key in the main file
routes/a.toml:4: route[0]: `rpc` is missing
routes/a.toml:6: route[0].rest: `rest` and `frame` exclude each other; write one
routes/a.toml:7: route[0].rset: unknown key
  hint: did you mean `rest`?
routes/a.toml:9: route[0].effect: the boolean `true` is not allowed here; write `safe`, `idempotent` or `unsafe`
DUALGAUGE_LIMITS__DRAIN: limits.drain: `soon` is not a duration; write a number and a unit, such as `500ms`, `10s` or `5m`
DUALGAUGE_LIMIT__DRAIN: limit: unknown key
  hint: did you mean `limits`?"#;

#[test]
fn a_syntax_error_has_a_column_and_the_parsers_words() {
    let fixture = Fixture::new("[listen]\naddress = \n[limits\n");
    assert_eq!(
        fixture.problems(),
        "dualgauge.toml:2:11: string values must be quoted, expected literal string"
    );
    let fixture = Fixture::new("include = ['r.toml']\nunrouted = 'no'\n")
        .file("r.toml", "[[route]]\nname = 'ä' x\n");
    assert_eq!(
        fixture.problems(),
        "dualgauge.toml:2: unrouted: `no` is not allowed here; write `passthrough`, `reject` or `unavailable`\n\
         r.toml:2:12: unexpected key or value, expected newline, `#`"
    );
    let fixture = Fixture::new("include = ['r.toml']\n").file("r.toml", b"a = 1\nb = '\xff'\n");
    assert_eq!(fixture.problems(), "r.toml:2:6: is not UTF-8 text");
}

#[test]
fn a_main_file_that_is_no_toml_hides_no_problem_of_other_files() {
    let main =
        "include = ['r.toml', 'none.toml']\n[limits]\nbody = \n[rollout]\nflags = 'flags.toml'\n";
    let route = "[[route]]\nname = 'a'\nrset = 'GET /'\nrpc = 'a'\noutcomes = ['of-main']\n";
    let fixture = Fixture::new(main)
        .file("r.toml", route)
        .file("flags.toml", "[[flag]]\nname = 'f'\nstage = 'on'\n")
        .variable("DUALGAUGE_RPC__PATHS", "[")
        .variable("DUALGAUGE_UPSTREAM__OLD__TIMEOUT", "1s");
    let problems = fixture.problems();
    let reported = problems.lines().filter(|line| !line.starts_with(' '));
    let reported: Vec<_> = reported.collect();
    let expected = [
        "dualgauge.toml:3:8: ",
        "flags.toml:3: flag[0].stage: ",
        "r.toml:1: route[0]: `rest` is missing",
        "r.toml:3: route[0].rset: unknown key",
        "DUALGAUGE_RPC__PATHS: rpc.paths: ",
    ];
    assert_eq!(reported.len(), expected.len(), "{problems}");
    for (reported, expected) in reported.iter().zip(expected) {
        assert!(reported.starts_with(expected), "{problems}");
    }
}

#[test]
fn a_main_file_that_is_no_toml_names_no_file_by_a_value_that_is_broken() {
    for main in [
        "include = ['r.toml, 'x']\n",
        "include = [r.toml]\n",
        "a = \n[[include]]\nb = 'r.toml'\n",
        "a = \n[rollout]\nflags = r.toml\n",
    ] {
        let fixture = Fixture::new(main).file("r.toml", "[[route]]\n");
        let problems = fixture.problems();
        assert_eq!(problems.lines().count(), 1, "{main}: {problems}");
    }
}

#[test]
fn a_file_is_included_once_and_the_main_file_never() {
    let fixture = Fixture::new("include = ['*.toml', 'r.toml']\n").file(
        "r.toml",
        "[[route]]\nname = 'a'\nrest = 'GET /'\nrpc = 'a'\n",
    );
    let config = fixture.config();
    assert_eq!(config.routes.len(), 1);
    assert_eq!(
        config.files,
        [fixture.path("dualgauge.toml"), fixture.path("r.toml")]
    );
}

#[test]
fn a_table_of_another_shape_is_one_problem() {
    let fixture = Fixture::new(
        "include = 'x'\nlimits = 3\nroute = ['a']\n[client]\nname = 'c'\n\
         [upstream]\nside = 'rest'\n[rpc]\npaths = []\n[log]\nlevel = 2026-01-01\n",
    );
    assert_eq!(
        fixture.problems(),
        r#"dualgauge.toml:1: include: the string `x` is not a list; write one such as `["a", "b"]`
dualgauge.toml:2: limits: the number `3` is not a table
dualgauge.toml:3: route[0]: the string `a` is not a table
dualgauge.toml:4: client: a table is not a list of tables; write `[[client]]`
dualgauge.toml:7: upstream.side: the string `rest` is not a table; write `[upstream.side]`
dualgauge.toml:9: rpc.paths: the list is empty; write at least one path
dualgauge.toml:11: log.level: `2026-01-01` is not allowed here; write `error`, `warn`, `info`, `debug` or `trace`"#
    );
}

#[test]
fn a_missing_main_file_is_one_problem() {
    let mut fixture = Fixture::new("");
    fixture.sources.file = Some(fixture.path("none.toml"));
    assert_eq!(
        fixture.problems(),
        "none.toml: cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn an_address_with_a_password_and_a_key_are_not_shown() {
    let fixture = Fixture::new(
        "[upstream.a]\nside = 'rest'\nurl = 'http://u:hunter2@h/'\n\
         [[client]]\nname = 'c'\nmatch = { api_key = 'hunter2' }\n",
    );
    let shown = fixture.problems();
    // The second one has a hint.
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
