//! Pipelines of users: the action for GitHub, the hook for pre-commit, and the report as SARIF.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{DUALGAUGE, Ended, ROOT, files, installed, python_tool, run, succeed};

const ACTION: &str = ".github/actions/check/action.yml";
const VALID: &str = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:9001'\n";

/// Writes a configuration whose included file has a problem in line 2.
fn write_invalid(folder: &Path) {
    let main = format!("include = ['routes/*.toml']\n{VALID}");
    fs::write(folder.join("dualgauge.toml"), main).unwrap();
    fs::create_dir_all(folder.join("routes")).unwrap();
    let route = "[[route]]\nnaem = 'items.read'\nrest = 'GET /items/{id}'\nrpc = 'items/read'\n";
    fs::write(folder.join("routes/items.toml"), route).unwrap();
}

/// Returns PATH with the program under test in front.
fn path() -> String {
    let own = Path::new(DUALGAUGE).parent().unwrap();
    let others = std::env::var_os("PATH").unwrap();
    format!("{}:{}", own.display(), others.display())
}

#[test]
fn annotations_name_the_line_of_each_problem() {
    let folder = tempfile::tempdir().unwrap();
    write_invalid(folder.path());
    let mut check = Command::new(DUALGAUGE);
    check.args([
        "check",
        "--format",
        "github",
        "--config",
        "./dualgauge.toml",
    ]);
    let ended = run(check
        .env("DUALGAUGE_LIMITS__BODY", "a")
        .current_dir(&folder));
    assert!(!ended.is_success);
    let lines: Vec<&str> = ended.text.lines().collect();
    let (file, variable) = ("file=routes/items.toml,line=2", "DUALGAUGE_LIMITS__BODY");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with(&format!("::error {file},title=route[0].naem::"))),
        "{lines:?}"
    );
    let of_variable = format!("::error file=dualgauge.toml,title=limits.body::{variable}: ");
    assert!(
        lines.iter().any(|line| line.starts_with(&of_variable)),
        "{lines:?}"
    );
    assert_eq!(
        *lines.last().unwrap(),
        format!("{} problems, 0 notes", lines.len() - 1)
    );
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn reports_fit_the_schema_of_sarif() {
    let folder = tempfile::tempdir().unwrap();
    write_invalid(folder.path());
    let schema = installed(
        "user-tools-npm/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json",
    );
    let shipped = format!("{ROOT}/config/dualgauge.toml");
    for (config, has_results) in [("dualgauge.toml", true), (&*shipped, false), ("none", true)] {
        let mut check = Command::new(DUALGAUGE);
        check.args(["check", "--format", "sarif", "--config", config]);
        let report = run(check.current_dir(&folder)).text;
        let document: Value = report.parse().unwrap();
        let levels = document["runs"][0]["results"].as_array().unwrap().iter();
        let mut levels = levels.map(|result| &result["level"]);
        assert_eq!(
            levels.any(|level| level == "error"),
            has_results,
            "{report}"
        );
        let file = folder.path().join("report.sarif");
        fs::write(&file, &report).unwrap();
        let mut validate = python_tool("check-jsonschema");
        validate.args(["--regex-variant", "python", "--schemafile"]);
        succeed(validate.arg(&schema).arg(&file));
    }
}

/// Prints the scripts of the action's steps as JSON, with their inputs as variables.
const STEPS: &str = "
import json, re, sys, yaml
action = yaml.safe_load(open(sys.argv[1], encoding='utf-8'))
given = json.loads(sys.argv[2])
inputs = {name: given.get(name, about['default']) for name, about in action['inputs'].items()}
def value(text):
    text = text.replace('${{ github.action_path }}', 'action')
    return re.sub(r'\\$\\{\\{ inputs\\.(\\w+) \\}\\}', lambda found: inputs[found[1]], text)
steps = [step for step in action['runs']['steps'] if 'if' not in step or inputs['sarif']]
print(json.dumps([[step['run'], {k: value(v) for k, v in step['env'].items()}] for step in steps]))
";

/// Runs the steps of the action in a folder, as a runner would, up to the first that fails.
fn run_action(folder: &Path, inputs: &str) -> Ended {
    let mut python = python_tool("python");
    python.args(["-c", STEPS, ACTION, inputs]).current_dir(ROOT);
    let steps: Vec<(String, Value)> = serde_json::from_str(&succeed(&mut python)).unwrap();
    let mut text = String::new();
    for (script, variables) in steps {
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]);
        for (name, value) in variables.as_object().unwrap() {
            bash.env(name, value.as_str().unwrap());
        }
        let ended = run(bash.current_dir(folder).env("PATH", path()));
        text += &ended.text;
        if !ended.is_success {
            let is_success = false;
            return Ended { is_success, text };
        }
    }
    let is_success = true;
    Ended { is_success, text }
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn the_action_annotates_problems_and_writes_the_report() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("proxy.toml"), VALID).unwrap();
    let ended = run_action(folder.path(), r#"{"config": "proxy.toml"}"#);
    assert!(ended.is_success, "{}", ended.text);
    assert!(ended.text.contains("0 problems"), "{}", ended.text);
    write_invalid(folder.path());
    let ended = run_action(folder.path(), r#"{"sarif": "report.sarif"}"#);
    assert!(!ended.is_success, "{}", ended.text);
    let annotation = "::error file=routes/items.toml,line=2,title=route[0].naem::";
    assert!(ended.text.contains(annotation), "{}", ended.text);
    let report = fs::read_to_string(folder.path().join("report.sarif")).unwrap();
    assert!(
        report.contains("\"uri\": \"routes/items.toml\""),
        "{report}"
    );
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn linters_find_nothing_in_the_action_the_hook_and_the_documented_workflows() {
    let mut action = python_tool("check-jsonschema");
    action.args(["--builtin-schema", "vendor.github-actions", ACTION]);
    succeed(action.current_dir(ROOT));
    let mut hooks = python_tool("pre-commit");
    hooks.args(["validate-manifest", ".pre-commit-hooks.yaml"]);
    succeed(hooks.current_dir(ROOT));
    for (page, input) in [
        ("check-in-a-pipeline.md", "config:"),
        ("prove-a-flip.md", "path:"),
    ] {
        lint_documented_workflow(page, input);
    }
}

/// Lints the workflow of a page, also with a wrong name of an input, which the linter must find.
fn lint_documented_workflow(page: &str, input: &str) {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/how-to").join(page)).unwrap();
    let workflow = page.split("```yaml\n# .github/workflows/").nth(1).unwrap();
    let workflow = workflow.split("```").next().unwrap();
    let (file, text) = workflow.split_once('\n').unwrap();
    let published = concat!(
        "dualgauge/dualgauge/.github/actions/check@v",
        env!("CARGO_PKG_VERSION")
    );
    assert!(text.contains(published), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(repository.join(".github/actions/check")).unwrap();
    fs::create_dir_all(repository.join(".github/workflows")).unwrap();
    fs::copy(Path::new(ROOT).join(ACTION), repository.join(ACTION)).unwrap();
    let file = repository.join(".github/workflows").join(file);
    // The linter knows the inputs of an action in the same repository.
    let local = text.replace(published, "./.github/actions/check");
    let lint = |text: &str| {
        fs::write(&file, text).unwrap();
        run(python_tool("actionlint").current_dir(repository))
    };
    let linted = lint(&local);
    assert!(linted.is_success, "{}", linted.text);
    let wrong = format!("un{input}");
    let linted = lint(&local.replace(input, &wrong));
    assert!(
        linted.text.contains(&wrong.replace(':', "")),
        "{}",
        linted.text
    );
    assert!(!linted.is_success);
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn the_workflows_of_this_repository_are_valid() {
    let workflows: Vec<_> = ["ci.yml", "release.yml"]
        .map(|name| Path::new(ROOT).join(".github/workflows").join(name))
        .into();
    let linted = run(python_tool("actionlint").args(&workflows));
    assert!(linted.is_success, "{}", linted.text);
    let mut updates = python_tool("check-jsonschema");
    updates.args([
        "--builtin-schema",
        "vendor.dependabot",
        ".github/dependabot.yml",
    ]);
    succeed(updates.current_dir(ROOT));
}

/// Returns true for a line such as `uses: owner/action@COMMIT # v1.2.3`.
fn is_pinned(line: &str) -> bool {
    let Some((_, commit)) = line.split_once('@') else {
        return false;
    };
    let Some((commit, version)) = commit.split_once(" # v") else {
        return false;
    };
    let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit && version.starts_with(|first: char| first.is_ascii_digit())
}

#[test]
fn workflows_name_actions_by_commit_with_few_permissions() {
    assert!(!is_pinned("uses: actions/checkout@v5"));
    let folder = Path::new(ROOT).join(".github");
    let workflows = files(&folder, "yml");
    assert!(workflows.len() >= 4, "{workflows:?}");
    for workflow in workflows {
        let text = fs::read_to_string(&workflow).unwrap();
        let steps = text.lines().filter(|line| line.contains("uses: "));
        let unpinned: Vec<&str> = steps.filter(|line| !is_pinned(line)).collect();
        assert_eq!(unpinned, [""; 0], "{}", workflow.display());
        if text.contains("\njobs:") {
            let is_limited = text.contains("\npermissions:\n  contents: read\n");
            assert!(is_limited, "{}", workflow.display());
            let checkouts = text.matches("actions/checkout@").count();
            let without_credentials = text.matches("persist-credentials: false").count();
            assert_eq!(checkouts, without_credentials, "{}", workflow.display());
        }
    }
}

#[test]
fn the_minimum_version_of_rust_is_tested() {
    let read = |file: &str| fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let manifest = read("Cargo.toml");
    let (_, version) = manifest.split_once("\nrust-version = \"").unwrap();
    let version = version.split('"').next().unwrap();
    let tested = format!("rust: \"{version}\" }}");
    assert!(read(".github/workflows/ci.yml").contains(&tested));
    assert!(read("README.md").contains(&format!("({version} or newer)")));
}

/// Makes a repository of a folder, with all its files in one commit, and returns the commit.
fn commit(folder: &Path) -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        git.args(identity).args(arguments).current_dir(folder);
        succeed(&mut git)
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "a"]);
    git(&["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn pre_commit_runs_the_hook() {
    let hooks = tempfile::tempdir().unwrap();
    let manifest = ".pre-commit-hooks.yaml";
    fs::copy(Path::new(ROOT).join(manifest), hooks.path().join(manifest)).unwrap();
    let revision = commit(hooks.path());
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "repos:\n  - repo: {}\n    rev: {revision}\n    hooks:\n      - id: dualgauge-check\n",
        hooks.path().display()
    );
    fs::write(folder.path().join(".pre-commit-config.yaml"), config).unwrap();
    fs::write(folder.path().join("dualgauge.toml"), VALID).unwrap();
    commit(folder.path());
    let home = tempfile::tempdir().unwrap();
    let run_hook = || {
        let mut hook = python_tool("pre-commit");
        hook.args(["run", "--all-files", "--color", "never"]);
        hook.env("PRE_COMMIT_HOME", home.path()).env("PATH", path());
        run(hook.current_dir(&folder))
    };
    let passed = run_hook();
    assert!(passed.is_success, "{}", passed.text);
    assert!(passed.text.contains("Passed"), "{}", passed.text);
    write_invalid(folder.path());
    commit(folder.path());
    let failed = run_hook();
    assert!(!failed.is_success, "{}", failed.text);
    let problem = "routes/items.toml:2: route[0].naem: unknown key";
    assert!(failed.text.contains(problem), "{}", failed.text);
}
