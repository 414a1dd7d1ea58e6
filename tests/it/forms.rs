//! Request bodies that are forms, in both directions and passed through.

use crate::scene::{Called, before_rest, before_rpc, json, problem, saying};
use crate::support::{Proxy, Upstream};

const ROUTES: &str = r#"
[[route]]
name = "login"
rest = "POST /login"
rpc = "login"
body_format = "form"
body = { user = "{user}", age = "{age:integer?}", tag = "{tags:string[]?}" }
params = { user = "{user}", age = "{age}", tags = "{tags}" }
[[route]]
name = "upload"
rest = "POST /upload"
rpc = "upload"
body_format = "multipart"
body = { title = "{title}", file = { content = "{file}", filename = "{name=file}", content_type = "{type=application/octet-stream}" } }
params = { title = "{title}", file = "{file}", name = "{name}", type = "{type}" }
"#;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const MULTIPART: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=b");
const UPLOAD: &str = "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nä\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nhi\r\n--b--\r\n";

#[test]
fn a_form_of_a_rest_client_becomes_params() {
    let server = saying(r#""result":{}"#);
    let proxy = before_rpc(&server, ROUTES);
    let came = proxy.rest("POST", "/login", &[FORM], "user=a+b&age=7&tag=x&tag=y");
    assert_eq!(came.status(), 200, "{came:?}");
    let seen = server.request();
    let params = Called::of(&seen).params().to_owned();
    assert_eq!(params, r#"{"user":"a b","age":7,"tags":["x","y"]}"#);
    let came = proxy.rest("POST", "/upload", &[MULTIPART], UPLOAD);
    assert_eq!(came.status(), 200, "{came:?}");
    let seen = server.requests().pop().unwrap();
    let params = Called::of(&seen).params().to_owned();
    let wanted = r#"{"title":"ä","file":"aGk=","name":"a.txt","type":"text/plain"}"#;
    assert_eq!(params, wanted);
}

#[test]
fn params_become_a_form_for_a_rest_server() {
    let server = Upstream::answering(json("{}"));
    let proxy = before_rest(&server, ROUTES);
    let call = |method: &str, params: &str| {
        let came = proxy.rpc(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
        ));
        assert!(came.text().contains("\"result\""), "{came:?}");
        server.requests().pop().unwrap()
    };
    let seen = call("login", r#"{"user":"a b","tags":["x"]}"#);
    assert_eq!(seen.head.one("content-type"), Some(FORM.1));
    assert_eq!(seen.text(), "user=a%20b&tag=x");
    let seen = call("upload", r#"{"title":"t","file":"aGk="}"#);
    let kind = seen.head.one("content-type").unwrap_or_default();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let wanted = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nt\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n--{boundary}--\r\n"
    );
    assert_eq!(seen.text(), wanted);
    let came = proxy.rpc(
        r#"{"jsonrpc":"2.0","id":1,"method":"upload","params":{"title":"t","file":"no base64"}}"#,
    );
    assert!(came.text().contains("-32602"), "{came:?}");
    assert!(
        came.text()
            .contains("params/file/content: it is not base64"),
        "{came:?}"
    );
}

#[test]
fn a_broken_form_is_refused_with_its_place() {
    let server = saying(r#""result":{}"#);
    let proxy = before_rpc(&server, ROUTES);
    let rows = [
        ("/login", FORM, "user=%zz", 400, "the field `user`"),
        ("/login", FORM, "age=7", 400, "body/user: it is required"),
        (
            "/login",
            FORM,
            "user=a&age=x",
            400,
            "body/age: `x` is not an integer",
        ),
        (
            "/login",
            FORM,
            "user=a&zz=1",
            400,
            "body/zz: the route does not know it",
        ),
        (
            "/login",
            ("Content-Type", "application/json"),
            "{}",
            415,
            "send the body as `application/x-www-form-urlencoded`",
        ),
        (
            "/login",
            MULTIPART,
            UPLOAD,
            415,
            "send the body as `application/x-www-form-urlencoded`",
        ),
        (
            "/upload",
            ("Content-Type", "multipart/form-data"),
            UPLOAD,
            415,
            "boundary",
        ),
        ("/upload", MULTIPART, "--b\r\n", 400, "part 1"),
    ];
    for (path, kind, body, status, wanted) in rows {
        let came = proxy.rest("POST", path, &[kind], body);
        assert_eq!(came.status(), status, "{path} {body}: {came:?}");
        let (_, detail) = problem(&came);
        assert!(detail.contains(wanted), "{detail} has no {wanted}");
    }
}

#[test]
fn a_form_that_passes_through_keeps_every_byte() {
    let rest = Upstream::answering(json("{}"));
    let rpc = saying(r#""result":{}"#);
    let config = crate::support::both(&rest, &rpc);
    let proxy = Proxy::start(&format!("{config}{ROUTES}"));
    let body = "user=a+b&zz&age=x&&%zz";
    let came = proxy.rest("POST", "/login", &[FORM], body);
    assert_eq!(came.status(), 200, "{came:?}");
    let seen = rest.request();
    assert_eq!(seen.text(), body);
    assert_eq!(seen.head.one("content-type"), Some(FORM.1));
}
