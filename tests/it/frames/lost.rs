//! Sockets that end while their clients ask on: nothing runs on another one that the client knows nothing of.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{get_file, of_frames, start};
use crate::support::Upstream;
use crate::websocket::ends::{accept, connect};

/// Clients whose server goes away, and what is asked after that.
const CLIENTS: u64 = 10;
const AFTER: u64 = 300;

#[test]
fn a_client_whose_socket_is_lost_gets_no_other_before_it_is_let_go() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    for number in 0..CLIENTS {
        let mut client = connect(&proxy);
        let mut server = accept(&upstream);
        let first = format!("first of {number}");
        get_file(&mut client, &first, "a");
        // Of another client, unless the socket is that of this one.
        assert_eq!(server.hear()["request_id"], first);
        let is_gone = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..50 {
                    let (id, payload) = (&server.hear()["request_id"], json!({}));
                    server.say(
                        json!({"event": "file", "request_id": id, "payload": payload}).to_string(),
                    );
                }
                drop(server);
                is_gone.store(true, Ordering::Release);
            });
            let mut after = 0;
            while after < AFTER {
                let command =
                    json!({"command": "get_file", "request_id": "more", "payload": {"path": "a"}});
                if !client.says(command.to_string()) {
                    break;
                }
                after += u64::from(is_gone.load(Ordering::Acquire));
            }
        });
        assert_eq!(client.end(), Some(1001));
    }
}
