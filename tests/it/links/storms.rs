//! Storms of posted streams that tell how far calls are, of calls that are recalled by POSTs, and of clients that speak in
//! frames before a link; and what they leave behind: nothing.

use serde_json::{Value, json};

use super::telling::{BOTH, begins, json_of, progress, token};
use crate::random::dice::Dice;
use crate::scene::call;
use crate::soak::{Held, is_calm};
use crate::support::{Proxy, Upstream, Wire, becomes};
use crate::websocket::ends::{End, accept, connect};

/// Clients at a time, and what each of them asks in a storm.
const CLIENTS: u64 = 4;
const CALLS: u64 = 100;
/// The storms after the one that all is compared with.
const STORMS: u64 = 2;

/// A storm of clients, and more of them, and what is left of these.
fn nothing_is_left(proxy: &Proxy, client: impl Fn(u64) + Sync) {
    let storm = |number: u64| {
        std::thread::scope(|scope| {
            for place in 0..CLIENTS {
                let client = &client;
                scope.spawn(move || client(number * CLIENTS + place));
            }
        });
    };
    storm(0);
    becomes(|| is_calm(proxy, "socket"), &true);
    let before = Held::by(proxy);
    (1..=STORMS).for_each(storm);
    becomes(|| is_calm(proxy, "socket"), &true);
    before.is_again(proxy);
}

fn load() -> String {
    "x".repeat(8 * 1024)
}

/// Tells how far each call is, twice, and then answers it, unless it is one of those that nobody answers.
fn serve(mut end: End) {
    while let Some(text) = end.heard() {
        let heard: Value = serde_json::from_str(&text).unwrap();
        if heard["id"].is_null() {
            continue;
        }
        let token = token(&heard);
        if !token.is_null() {
            let told = format!(r#""{}""#, load());
            if !(end.says(progress(&token, "1")) && end.says(progress(&token, &told))) {
                return;
            }
        }
        let answer =
            json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"got": heard["params"]}});
        if heard["method"] != "never" && !end.says(answer.to_string()) {
            return;
        }
    }
}

/// Serves as long as the test has clients.
fn beside(mut server: End, greets: impl FnOnce(&mut End), test: impl FnOnce()) {
    std::thread::scope(|scope| {
        greets(&mut server);
        // It ends with the program.
        scope.spawn(move || serve(server));
        test();
    });
}

fn post(proxy: &Proxy, fields: &str, body: &str) -> Wire {
    let length = body.len();
    let mut wire = proxy.connect();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    ));
    wire
}

#[test]
fn posted_streams_of_progress_leave_nothing_behind() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "handshake = \"mcp\"\n");
    beside(accept(&upstream), End::greet, || {
        let fields = format!("Accept: {BOTH}\r\n");
        nothing_is_left(&proxy, |seed| {
            let mut dice = Dice::of(seed);
            for turn in 0..CALLS {
                let method = ["do", "do", "never"][dice.below(3)];
                let params = json!({"load": load(), "_meta": {"progressToken": turn}});
                let mut wire = post(&proxy, &fields, &call(method, &params.to_string()));
                begins(&mut wire);
                // Some leave in the midst of the stream.
                if method == "never" || dice.below(4) == 0 {
                    json_of(&mut wire);
                    continue;
                }
                for _ in 0..2 {
                    assert_eq!(json_of(&mut wire)["params"]["progressToken"], turn);
                }
                assert_eq!(json_of(&mut wire)["id"], 1);
                assert_eq!(wire.read_chunk(), None);
            }
        });
        drop(proxy);
    });
}

#[test]
fn calls_that_are_recalled_by_posts_leave_nothing_behind() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "handshake = \"mcp\"\n");
    beside(accept(&upstream), End::greet, || {
        nothing_is_left(&proxy, |seed| {
            let mut dice = Dice::of(seed);
            let fields = format!("Accept: {BOTH}\r\nMcp-Session-Id: s{seed}\r\n");
            for turn in 0..CALLS {
                let ask = json!({"jsonrpc": "2.0", "id": turn, "method": "never",
                    "params": {"load": load(), "_meta": {"progressToken": turn}}});
                let mut asked = post(&proxy, &fields, &ask.to_string());
                // The server has it.
                begins(&mut asked);
                if dice.below(8) == 0 {
                    continue;
                }
                let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": turn}});
                let mut recalled = post(&proxy, &fields, &cancel.to_string());
                assert_eq!(recalled.read_answer().status(), 202);
                // What was told before may still be read, and then there is the end.
                while asked.read_chunk().is_some() {}
            }
        });
        drop(proxy);
    });
}

#[test]
fn clients_that_speak_in_frames_before_a_link_leave_nothing_behind() {
    let upstream = Upstream::start();
    let address = upstream.address();
    let proxy = crate::frames::start(&format!(
        "[upstream.socket]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\n"
    ));
    beside(
        accept(&upstream),
        |_| {},
        || {
            nothing_is_left(&proxy, |seed| {
                let mut dice = Dice::of(seed);
                let mut client = connect(&proxy);
                for turn in 0..CALLS {
                    let id = format!("{seed}-{turn}");
                    let path = format!("{id}-{}", load());
                    crate::frames::get_file(&mut client, &id, &path);
                    if dice.below(8) == 0 {
                        // It leaves with the call open.
                        client = connect(&proxy);
                        continue;
                    }
                    let said = client.hear();
                    assert_eq!(said["request_id"], id.as_str());
                    assert_eq!(
                        said["payload"]["got"]["path"],
                        path.as_str(),
                        "another's answer"
                    );
                }
            });
            drop(proxy);
        },
    );
}
