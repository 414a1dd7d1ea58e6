//! Links that log in.

use std::sync::Arc;

use dualgauge_patterns::pattern::SourceTree;

use super::*;
use crate::pending::ExpectedResult;

const LOGIN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"log_in","params":["s3cret"]}"#;

fn with_login(whose: LoginOwner) -> LinkSettings {
    LinkSettings {
        login: Some(login_of(whose)),
        ..settings(AnswerOrder::Pipelined(4))
    }
}

/// Opens a link up to its login call.
fn logging_in(whose: LoginOwner) -> Driven {
    let mut link = Driven::open(with_login(whose));
    assert_eq!(link.take(LinkInput::Opened), [write(LOGIN)]);
    assert_eq!(link.take(LinkInput::Written), []);
    link
}

fn lose(link: &mut Driven) -> Vec<LinkOutput> {
    link.take(LinkInput::Lost { jitter: 0 })
}

#[test]
fn no_call_is_sent_before_the_login_has_succeeded() {
    let mut link = Driven::open(with_login(LoginOwner::Proxy));
    assert_eq!(link.take(LinkInput::Ask(request(7, call(7)))), []);
    assert_eq!(link.take(LinkInput::Opened), [write(LOGIN)]);
    assert_eq!(link.take(LinkInput::Written), []);
    assert_eq!(link.take(LinkInput::Ask(request(8, call(8)))), []);
    let first = write(r#"{"jsonrpc":"2.0","id":2,"method":"do","params":[7]}"#);
    assert_eq!(
        link.reply(r#"{"jsonrpc":"2.0","id":1,"result":true}"#),
        [LinkOutput::Ready, first]
    );
    assert_eq!(link.pending.counts().logins.ok, 1);
}

#[test]
fn each_link_logs_in() {
    let mut link = logging_in(LoginOwner::Proxy);
    link.reply(r#"{"id":1,"result":null}"#);
    assert!(link.pending.is_ready());
    lose(&mut link);
    assert_eq!(link.at(1), [LinkOutput::Open]);
    let again = r#"{"jsonrpc":"2.0","id":2,"method":"log_in","params":["s3cret"]}"#;
    assert_eq!(link.take(LinkInput::Opened), [write(again)]);
}

#[test]
fn the_login_follows_the_handshake() {
    let mut link = Driven::open(LinkSettings {
        initialize_params: initialize_params(),
        ..with_login(LoginOwner::Proxy)
    });
    link.take(LinkInput::Opened);
    link.take(LinkInput::Written);
    let initialized =
        write(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#);
    let greeted = link.reply(r#"{"id":1,"result":{"protocolVersion":"x"}}"#);
    assert_eq!(greeted, [initialized]);
    let login = write(r#"{"jsonrpc":"2.0","id":3,"method":"log_in","params":["s3cret"]}"#);
    assert_eq!(link.take(LinkInput::Written), [login]);
    assert_eq!(link.take(LinkInput::Written), []);
    assert_eq!(link.reply(r#"{"id":3,"result":1}"#), [LinkOutput::Ready]);
}

#[test]
fn an_error_without_an_id_after_the_handshake_refuses_the_login() {
    for refusal in [NULL, r#"{"id":"x","error":{"code":1,"message":"no"}}"#] {
        let mut link = Driven::open(LinkSettings {
            initialize_params: initialize_params(),
            ..with_login(LoginOwner::Caller)
        });
        link.take(LinkInput::Opened);
        link.take(LinkInput::Written);
        link.reply(r#"{"id":1,"result":{"protocolVersion":"x"}}"#);
        link.take(LinkInput::Written);
        link.take(LinkInput::Written);
        let output = link.reply(refusal);
        let [LinkOutput::Close(LinkFault::LoginRefused(_))] = &output[..] else {
            panic!("{refusal}: {output:?}");
        };
        assert_eq!(link.pending.counts().logins.refused, 1);
        assert!(link.pending.is_unauthenticated());
    }
}

#[test]
fn a_refused_login_ends_the_attempt_and_its_text_is_not_repeated() {
    for refusal in [
        NULL,
        r#"{"id":1,"result":false}"#,
        r#"{"id":1,"error":{"code":207,"message":"bad key s3cret"}}"#,
        r#"{"id":"1","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
    ] {
        for (whose, error) in [
            (LoginOwner::Proxy, RequestError::LoginFailed),
            (LoginOwner::Caller, RequestError::Unauthenticated),
        ] {
            let mut link = logging_in(whose);
            assert_eq!(link.take(LinkInput::Ask(request(7, call(7)))), []);
            let output = link.reply(refusal);
            let [LinkOutput::Close(fault @ LinkFault::LoginRefused(_))] = &output[..] else {
                panic!("{refusal}: {output:?}");
            };
            assert!(!fault.to_string().contains("s3cret"), "{fault}");
            lose(&mut link);
            assert_eq!(link.pending.counts().logins.refused, 1);
            let over = link.take(LinkInput::Over);
            assert_eq!(over, [LinkOutput::Failed(Ticket(7), error)]);
        }
    }
}

#[test]
fn an_expected_result_decides_alone() {
    let success = SourceTree::Table(vec![(
        "type".to_owned(),
        SourceTree::Text("SUCCESS".to_owned()),
    )]);
    let no = SourceTree::Literal(Json::literal("false"));
    for (expect, result, is_ready) in [
        (&success, r#"{"type":"SUCCESS","user":{}}"#, true),
        (&success, r#"{"type":"AUTH_ERR","key":"s3cret"}"#, false),
        (&success, "true", false),
        (&no, "false", true),
    ] {
        let expect = Arc::new(ExpectedResult::new(expect).unwrap());
        let mut link = Driven::open(LinkSettings {
            login: Some(LoginCall {
                expect: Some(expect),
                ..login()
            }),
            ..settings(AnswerOrder::Pipelined(4))
        });
        link.take(LinkInput::Opened);
        link.take(LinkInput::Written);
        let output = link.reply(&format!(r#"{{"id":1,"result":{result}}}"#));
        let logins = link.pending.counts().logins;
        match &output[..] {
            [LinkOutput::Ready] if is_ready => assert_eq!(logins.ok, 1),
            [LinkOutput::Close(LinkFault::LoginRefused(why))] if !is_ready => {
                assert_eq!(why, "its result does not match `expect`");
                assert_eq!(logins.refused, 1);
            }
            _ => panic!("{result}: {output:?}"),
        }
    }
}

#[test]
fn a_login_without_an_answer_ends_the_attempt() {
    let mut link = logging_in(LoginOwner::Proxy);
    assert_eq!(link.at(5), [LinkOutput::Close(LinkFault::LoginLate)]);
    lose(&mut link);
    let counts = link.pending.counts().logins;
    assert_eq!((counts.timeout, counts.cut), (1, 0));
}

#[test]
fn a_link_that_breaks_during_its_login_is_counted() {
    let mut link = logging_in(LoginOwner::Proxy);
    link.take(LinkInput::Ask(request(7, call(7))));
    lose(&mut link);
    assert_eq!(link.pending.counts().logins.cut, 1);
    let failed = LinkOutput::Failed(Ticket(7), RequestError::LoginFailed);
    assert_eq!(link.take(LinkInput::Over), [failed]);
    // Later the server cannot be reached at all, which is another error.
    assert_eq!(link.at(1), [LinkOutput::Open]);
    link.take(LinkInput::Ask(request(8, call(8))));
    lose(&mut link);
    let failed = LinkOutput::Failed(Ticket(8), RequestError::Unreachable);
    assert_eq!(link.take(LinkInput::Over), [failed]);
}
