//! hyper accepts everything that the inspector passes on: a response that hyper wrote by itself would be neither logged
//! nor counted.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const MESSAGES: [&str; 6] = [
    FIRST,
    "\r\nGET http://a:80/x?y HTTP/1.1\r\nAccept: */*\r\nHost: a\r\nTE: trailers\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 4\r\n\r\n{  }",
    "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx: y\r\n\r\n",
    "GET /c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
];

/// Generates pipelined requests with up to two bytes replaced.
fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![select(b"\r\n \t:;,#[]@%?/\0=0129aH".to_vec()), any::<u8>()];
    let messages = vec(select(MESSAGES.to_vec()), 1..4);
    (messages, vec((any::<Index>(), byte), 0..3)).prop_map(|(messages, spoils)| {
        let mut input = messages.concat().into_bytes();
        for (at, byte) in spoils {
            let at = at.index(input.len());
            input[at] = byte;
        }
        input
    })
}

/// Returns the complete response heads. If a connection ends after a declined upgrade, hyper drops output that it has
/// not written yet, so the last head may be cut; hyper did not generate that response itself either.
fn complete_heads(output: &str) -> Vec<&str> {
    let answers = [" 200 OK\r\n", " 400 Bad Request\r\n", " 414 ", " 431 "];
    let begins = |at: &usize| {
        let rest = &output[*at..];
        let status = rest
            .strip_prefix("HTTP/1.1")
            .or_else(|| rest.strip_prefix("HTTP/1.0"));
        status.is_some_and(|status| answers.iter().any(|answer| status.starts_with(answer)))
    };
    let starts = output
        .match_indices("HTTP/1.")
        .map(|(at, _)| at)
        .filter(begins);
    starts
        .filter_map(|at| output[at..].split_once("\r\n\r\n").map(|(head, _)| head))
        .collect()
}

proptest! {
    #[test]
    fn every_answer_is_the_services(input in spoiled(), width in select(WIDTHS.to_vec())) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let output = runtime.block_on(exchange_until(width, &input, End::Closed));
        let heads = complete_heads(&output);
        let told = heads.iter().filter(|head| head.contains("\r\nserver: service")).count();
        let answers = heads.len();
        prop_assert_eq!(answers, told, "{:?}", output);
    }
}
