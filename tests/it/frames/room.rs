//! Frames take of the room of all bodies, from their bytes to their answers.

use super::{get_file, start};
use crate::scene::{Called, json as json_answer};
use crate::support::{Upstream, becomes, rpc_only};
use crate::websocket::ends::connect;

#[test]
fn a_frame_that_has_no_room_is_not_served_and_one_that_has_gives_it_back() {
    let upstream = Upstream::start();
    let config = rpc_only(&upstream).replace("[listen]\nworkers = 1\n", "");
    let proxy = start(&format!("{config}[limits]\nmemory = \"1KiB\"\n"));
    let held = || proxy.metrics().value("dualgauge_buffered_bytes");
    let mut client = connect(&proxy);
    get_file(&mut client, "req-1", &"a".repeat(2000));
    proxy.log_line(&["reason=memory_full", "blame=proxy"]);
    assert_eq!(held(), 0.0);
    get_file(&mut client, "req-2", &"a".repeat(500));
    let mut server = upstream.accept();
    let asked = server.read_request();
    assert!(held() > 500.0, "{}", held());
    let id = Called::of(&asked).own_id();
    server.send(json_answer(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"b"}}}}"#
    )));
    while client.hear()["request_id"] != "req-2" {}
    becomes(held, &0.0);
}
