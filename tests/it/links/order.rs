//! What a client gets over one link comes in the order in which the server has said it: events and answers.

use serde_json::{Value, json};

use super::telling::{BOTH, TOKEN, begins, event, json_of, post, progress, token};
use crate::mcp::scripted::{begun, response, with_sessions};
use crate::random::dice::Dice;
use crate::scene::call;
use crate::stdio;
use crate::support::Upstream;
use crate::websocket::before;
use crate::websocket::ends::{End, accept, connect};
use crate::websocket::told::BROADCAST;

fn ask(client: &mut End, id: u64, method: &str) {
    client.say(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{"progressToken":{id}}}}}}}"#
    ));
}

fn line(number: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"line":{number}}}}}"#)
}

/// What is heard, in short: the id of an answer, or the line of an event.
fn shown(said: &Value) -> (&str, u64) {
    match said["id"].as_u64() {
        Some(id) => ("answer", id),
        None => ("line", said["params"]["line"].as_u64().unwrap()),
    }
}

#[test]
fn events_and_answers_of_a_socket_come_as_the_server_has_said_them() {
    for keys in [BROADCAST, "sharing = \"client\"\n"] {
        let upstream = Upstream::start();
        let proxy = before(&upstream, keys);
        let mut client = connect(&proxy);
        let mut dice = Dice::of(7);
        let mut server: Option<End> = None;
        let mut lines = 0;
        for round in 0..60 {
            let calls = 1 + dice.below(6) as u64;
            (0..calls).for_each(|id| ask(&mut client, id, "do"));
            let server = server.get_or_insert_with(|| accept(&upstream));
            let mut open: Vec<Value> = (0..calls).map(|_| server.hear()).collect();
            let mut said = Vec::new();
            while !open.is_empty() {
                if dice.below(2) == 0 {
                    let heard = open.remove(dice.below(open.len()));
                    server.echo(&heard);
                    // What the client has called it.
                    said.push(("answer", client_id(&heard, keys)));
                } else {
                    server.say(line(lines));
                    said.push(("line", lines));
                    lines += 1;
                }
            }
            let heard: Vec<Value> = said.iter().map(|_| client.hear()).collect();
            let heard: Vec<_> = heard
                .iter()
                .map(|said| match said["id"].as_u64() {
                    Some(_) => (
                        "answer",
                        client_id(&json!({"params": said["result"]["got"]}), keys),
                    ),
                    None => shown(said),
                })
                .collect();
            assert_eq!(heard, said, "{round} {keys}");
        }
    }
}

/// What tells one call from another on either side: its token, or a hash of the one that it has got.
fn client_id(call: &Value, keys: &str) -> u64 {
    let token = &call["params"]["_meta"]["progressToken"];
    match keys {
        BROADCAST => {
            let token = token.as_str().unwrap();
            token.split('-').nth(1).unwrap().parse().unwrap()
        }
        _ => token.as_u64().unwrap(),
    }
}

#[test]
fn what_a_child_says_behind_an_answer_is_heard_behind_it() {
    let proxy = stdio::before_child(BROADCAST);
    let mut client = connect(&proxy);
    for id in 0..60 {
        ask(&mut client, id, "around");
        let heard: Vec<Value> = (0..4).map(|_| client.hear()).collect();
        let heard: Vec<_> = heard.iter().map(shown).collect();
        assert_eq!(
            heard,
            [("line", 1), ("line", 2), ("answer", id), ("line", 3)]
        );
    }
}

#[test]
fn what_an_mcp_server_says_before_an_answer_is_heard_before_it() {
    let server = with_sessions(|request, called| {
        let token = token(&request.json());
        let answer = response(called, "1");
        let told = [1, 2].map(|done: u64| progress(&token, &done.to_string()));
        begun(&format!(
            "data: {}\n\ndata: {}\n\ndata: {answer}\n\n",
            told[0], told[1]
        ))
    });
    let proxy = crate::mcp::before(&server, "");
    let mut client = connect(&proxy);
    for _ in 0..30 {
        (0..3).for_each(|id| ask(&mut client, id, "do"));
        let heard: Vec<Value> = (0..9).map(|_| client.hear()).collect();
        for id in 0..3u64 {
            let own = |said: &&Value| said["id"] == id || said["params"]["progressToken"] == id;
            let own = heard.iter().filter(own);
            let own: Vec<_> = own
                .map(|said| said["params"]["progress"].as_u64())
                .collect();
            assert_eq!(own, [Some(1), Some(2), None], "{heard:?}");
        }
    }
}

#[test]
fn who_posts_hears_nothing_that_was_said_behind_the_answer() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, BROADCAST);
    let mut server = accept(&upstream);
    for _ in 0..40 {
        let mut client = post(&proxy, BOTH, &call("do", TOKEN));
        let heard = server.hear();
        server.say(line(1));
        server.echo(&heard);
        server.say(line(2));
        begins(&mut client);
        assert_eq!(event(&mut client), line(1));
        assert_eq!(json_of(&mut client)["id"], 1);
        assert_eq!(client.read_chunk(), None);
        // What was said last is over when the next call begins.
        let mut next = post(&proxy, "application/json", &call("do", "{}"));
        let heard = server.hear();
        server.echo(&heard);
        assert_eq!(next.read_answer().status(), 200);
    }
}
