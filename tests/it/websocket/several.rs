//! Several sockets at a server, which all clients share.

use serde_json::{Value, json};

use super::ends::{End, accept, connect};
use super::{IN_FLIGHT, before, failure, metric, post, result, strays};
use crate::scene::call;
use crate::support::{Proxy, Upstream, Wire, becomes};

const UP: &str = r#"dualgauge_link_up{upstream="socket"}"#;
const STARTS: &str = r#"dualgauge_link_starts_total{upstream="socket"}"#;
const TOLD: &str = r#"dualgauge_link_notifications_total{upstream="socket",fate="told"}"#;

/// A proxy with so many sockets, all of which are up.
fn start(upstream: &Upstream, count: usize, keys: &str) -> (Proxy, Vec<End>) {
    let proxy = before(upstream, &format!("sockets = {count}\n{keys}"));
    let ends = (0..count).map(|_| accept(upstream)).collect();
    ready(&proxy, count);
    (proxy, ends)
}

/// Waits until so many sockets were ready so far.
fn ready(proxy: &Proxy, count: usize) {
    let told = || proxy.log().matches("the link is ready").count();
    becomes(told, &count);
}

/// One call for each of the sockets, and what each of them has heard.
fn one_each(proxy: &Proxy, ends: &mut [End]) -> (Vec<Wire>, Vec<Value>) {
    let clients = (0..ends.len()).map(|place| post(proxy, &call("do", &format!("[{place}]"))));
    let clients: Vec<Wire> = clients.collect();
    let heard = ends.iter_mut().map(End::hear).collect();
    (clients, heard)
}

fn answer_all(ends: &mut [End], heard: &[Value]) {
    for (end, heard) in ends.iter_mut().zip(heard) {
        end.say(result(&heard["id"], "1"));
    }
}

fn place(call: &Value) -> usize {
    usize::try_from(call["params"][0].as_u64().unwrap()).unwrap()
}

#[test]
fn calls_go_to_the_least_busy_socket_and_one_that_drops_fails_its_own_alone() {
    let upstream = Upstream::start();
    let (proxy, mut ends) = start(&upstream, 3, "");
    becomes(|| metric(&proxy, STARTS), &3.0);
    let (mut clients, heard) = one_each(&proxy, &mut ends);
    becomes(|| metric(&proxy, IN_FLIGHT), &3.0);
    // Of the first two only one goes on.
    drop(ends.remove(0));
    let lost = &mut clients[place(&heard[0])];
    assert_eq!(failure(lost), (-31023, "upstream_cut".to_owned()));
    assert_eq!(metric(&proxy, UP), 1.0);
    ends[0].echo(&heard[1]);
    let answered = clients[place(&heard[1])].read_answer();
    assert_eq!(answered.json()["id"], 1);
    // One that is up and free gets the next.
    let mut next = post(&proxy, &call("do", "[9]"));
    let call_of_next = ends[0].hear();
    ends[0].echo(&call_of_next);
    assert_eq!(next.read_answer().json()["result"]["got"][0], 9);
    ends[1].echo(&heard[2]);
    assert_eq!(clients[place(&heard[2])].read_answer().status(), 200);
    // The one that has dropped is opened again.
    ends.push(accept(&upstream));
    ready(&proxy, 4);
    assert_eq!(metric(&proxy, STARTS), 4.0);
    let (clients, heard) = one_each(&proxy, &mut ends);
    answer_all(&mut ends, &heard);
    for mut client in clients {
        assert_eq!(client.read_answer().status(), 200);
    }
    becomes(|| metric(&proxy, IN_FLIGHT), &0.0);
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    for end in ends {
        assert_eq!(end.end(), Some(1001));
    }
}

fn ask(id: u64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "do", "params": {"_meta": {"progressToken": id}}})
        .to_string()
}

fn progress(token: &Value) -> String {
    let params = json!({"progressToken": token, "progress": 1});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string()
}

#[test]
fn progress_and_cancellation_of_a_call_go_over_its_own_socket() {
    let upstream = Upstream::start();
    let (proxy, mut ends) = start(&upstream, 2, "");
    let mut clients = [connect(&proxy), connect(&proxy)];
    for (client, id) in clients.iter_mut().zip([1, 2]) {
        client.say(ask(id));
        becomes(|| metric(&proxy, IN_FLIGHT), &(id as f64));
    }
    let heard: Vec<Value> = ends.iter_mut().map(End::hear).collect();
    let token = |call: &Value| call["params"]["_meta"]["progressToken"].clone();
    // Said on the socket of the other call it is nobody's.
    let (one, two) = (token(&heard[0]), token(&heard[1]));
    ends[1].say(progress(&one));
    becomes(|| strays(&proxy, "notified"), &1.0);
    ends[0].say(progress(&one));
    ends[1].say(progress(&two));
    // Which of the clients has which socket is the proxy's to choose.
    for (client, id) in clients.iter_mut().zip([1, 2]) {
        assert_eq!(client.hear()["params"]["progressToken"], id);
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        client.say(cancelled.to_string());
    }
    for (end, heard) in ends.iter_mut().zip(&heard) {
        let told = end.hear();
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], heard["id"]);
    }
    assert_eq!(metric(&proxy, TOLD), 2.0);
}

#[test]
fn what_a_server_tells_on_each_socket_is_told_once() {
    let upstream = Upstream::start();
    let (proxy, mut ends) = start(&upstream, 3, "");
    let mut client = connect(&proxy);
    // It has asked something there, over one of them.
    client.say(call("do", "[]"));
    becomes(|| metric(&proxy, IN_FLIGHT), &1.0);
    let others = [(); 2].map(|()| post(&proxy, &call("do", "[]")));
    let heard: Vec<Value> = ends.iter_mut().map(End::hear).collect();
    answer_all(&mut ends, &heard);
    assert_eq!(client.hear()["result"], 1);
    drop(others);
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let tell = |ends: &mut [End]| ends.iter_mut().for_each(|end| end.say(changed));
    tell(&mut ends);
    becomes(|| strays(&proxy, "notified"), &3.0);
    assert_eq!(client.hear_text(), changed);
    assert_eq!(metric(&proxy, TOLD), 1.0);
    // Whichever of them it was that is heard, another one is when it drops.
    for dropped in 1..=3 {
        drop(ends.remove(0));
        ends.push(accept(&upstream));
        ready(&proxy, 3 + dropped);
        tell(&mut ends);
        let count = dropped as f64;
        becomes(|| strays(&proxy, "notified"), &(3.0 + 3.0 * count));
        assert_eq!(client.hear_text(), changed);
        assert_eq!(metric(&proxy, TOLD), 1.0 + count);
    }
}
