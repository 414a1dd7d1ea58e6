//! `dualgauge reload`: what it prints, and its exit codes.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Ended, Proxy, Upstream, program, rest_only, run_to_end};

fn reload(admin: &str) -> Ended {
    run_to_end(program(&["reload", "--admin", admin]))
}

#[test]
fn a_good_change_is_told_and_so_is_none() {
    let upstream = Upstream::nowhere();
    let main = rest_only(&upstream);
    let proxy = Proxy::start_with_flags(&main, "");
    let admin = format!("http://{}", proxy.admin());
    let same = reload(&admin);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert_eq!(same.output, "unchanged: 0 routes, 0 flags");
    let flag = "[[flag]]\nname = 'f'\nstage = 'translate'\nside = 'rpc'\n";
    let route = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";
    let main = format!("{main}[rollout]\nflags = 'flags.toml'\n{route}");
    std::fs::write(proxy.folder().join("flags.toml"), flag).unwrap();
    std::fs::write(proxy.folder().join("dualgauge.toml"), main).unwrap();
    let swapped = reload(&admin);
    assert_eq!(swapped.code, Some(0), "{swapped:?}");
    assert!(swapped.output.ends_with(": 1 route, 1 flag"), "{swapped:?}");
}

/// A ConfigMap as a volume: each file is a link into a folder that is a link itself, and a change swaps that.
#[test]
fn the_swapped_folder_of_a_config_map_is_reloaded() {
    let upstream = Upstream::nowhere();
    let first = format!("{}[rollout]\nflags = 'flags.toml'\n", rest_only(&upstream));
    let proxy = Proxy::start_with_flags(&rest_only(&upstream), "");
    let folder = proxy.folder();
    let second = format!("include = ['routes.*.toml']\n{first}");
    let flag = "[[flag]]\nname = 'f'\nstage = 'translate'\nside = 'rpc'\n";
    let route = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";
    for (version, main, flags) in [("..1", &first, ""), ("..2", &second, flag)] {
        fs::create_dir(folder.join(version)).unwrap();
        fs::write(folder.join(version).join("dualgauge.toml"), main).unwrap();
        fs::write(folder.join(version).join("flags.toml"), flags).unwrap();
    }
    fs::write(folder.join("..2/routes.a.toml"), route).unwrap();
    let swap_to = |version: &str| {
        symlink(version, folder.join("..next")).unwrap();
        fs::rename(folder.join("..next"), folder.join("..data")).unwrap();
    };
    let link = |name: &str| {
        symlink(format!("..data/{name}"), folder.join("next")).unwrap();
        fs::rename(folder.join("next"), folder.join(name)).unwrap();
    };
    swap_to("..1");
    link("dualgauge.toml");
    link("flags.toml");
    let admin = format!("http://{}", proxy.admin());
    let linked = reload(&admin);
    assert!(linked.output.ends_with(": 0 routes, 0 flags"), "{linked:?}");
    swap_to("..2");
    link("routes.a.toml");
    let swapped = reload(&admin);
    assert!(swapped.output.ends_with(": 1 route, 1 flag"), "{swapped:?}");
    swap_to("..1");
    let back = reload(&admin);
    assert!(back.output.ends_with(": 0 routes, 0 flags"), "{back:?}");
}

#[test]
fn a_plan_with_problems_is_refused_with_each_of_them_and_exit_code_1() {
    let upstream = Upstream::nowhere();
    let main = rest_only(&upstream);
    let proxy = Proxy::start(&main);
    let file = proxy.folder().join("dualgauge.toml");
    std::fs::write(&file, format!("{main}[limits]\nbach = 7\ndepth = 'deep'\n")).unwrap();
    let line = main.lines().count() + 2;
    let refused = reload(&format!("http://{}", proxy.admin()));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.output, "");
    for wanted in [
        "422",
        &format!("{}:{line}: limits.bach: ", file.display()),
        "did you mean `batch`?",
        &format!("{}:{}: limits.depth: ", file.display(), line + 1),
    ] {
        assert!(refused.errors.contains(wanted), "{wanted}: {refused:?}");
    }
    assert_eq!(proxy.ask("GET", "/healthz", "").status(), 200);
}

#[test]
fn nobody_there_and_no_token_are_told_with_exit_code_1() {
    let upstream = Upstream::nowhere();
    let proxy = Proxy::start(&rest_only(&upstream));
    let admin = format!("http://{}", proxy.admin());
    proxy.stop();
    let nobody = reload(&admin);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(nobody.errors.contains("no connection to"), "{nobody:?}");
    assert!(
        nobody.errors.contains("is the process running"),
        "{nobody:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let token = token.to_str().unwrap();
    let ended = run_to_end(program(&["reload", "--token-file", token]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("the token file"), "{ended:?}");
    let odd = reload("https://127.0.0.1:1");
    assert_eq!(odd.code, Some(1), "{odd:?}");
    assert!(odd.errors.contains("write `http://host:port`"), "{odd:?}");
}
