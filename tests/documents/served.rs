//! `dualgauge mcp` for one document, and a client of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A document that is served to MCP clients.
pub(crate) struct Served {
    child: Child,
    address: String,
    folder: TempDir,
}

/// A tool of `tools/list`.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) output: Option<Value>,
}

impl Served {
    /// Serves the document before the REST server at this port. Nothing else is said about it.
    ///
    /// # Errors
    /// The message of a command that does not serve.
    pub(crate) fn start(document: &Path, port: u16) -> Result<Served, String> {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
            .args(["mcp", "--listen", "127.0.0.1:0", "--openapi"])
            .arg(document)
            .args(["--upstream", &format!("http://127.0.0.1:{port}"), "--save"])
            .arg(folder.path().join("api"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut served = Served {
            child,
            address: String::new(),
            folder,
        };
        let mut lines = BufReader::new(served.child.stdout.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            let rest = line.strip_prefix("MCP  http://")?;
            Some(rest.strip_suffix("/mcp").unwrap().to_owned())
        });
        let Some(address) = address else {
            let mut errors = String::new();
            let _ = served
                .child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut errors);
            return Err(errors);
        };
        // The log and the rest of the introduction, which nobody reads.
        let mut errors = served.child.stderr.take().unwrap();
        thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        thread::spawn(move || lines.for_each(drop));
        served.address = address;
        Ok(served)
    }

    /// Returns the route file.
    pub(crate) fn drafted(&self) -> String {
        fs::read_to_string(self.folder.path().join("api/tools.toml")).unwrap()
    }

    pub(crate) fn tools(&self) -> Vec<Tool> {
        let mut tools = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params = match cursor.is_string() {
                true => json!({ "cursor": cursor }),
                false => json!({}),
            };
            let answer = self.call("tools/list", &params);
            let result = &answer["result"];
            for tool in result["tools"].as_array().unwrap() {
                tools.push(Tool {
                    name: tool["name"].as_str().unwrap().to_owned(),
                    input: tool["inputSchema"].clone(),
                    output: tool.get("outputSchema").cloned(),
                });
            }
            cursor = result["nextCursor"].clone();
            if cursor.is_null() {
                return tools;
            }
        }
    }

    /// Sends one JSON-RPC call as a client of 2025-11-25, and returns the response.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let body = call.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
             content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = answer.split_at(end.unwrap() + 4);
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        let body = match head.contains("transfer-encoding: chunked") {
            true => unchunked(body),
            false => body.to_vec(),
        };
        serde_json::from_slice(&body)
            .unwrap_or_else(|fault| panic!("{fault}: {head}{}", String::from_utf8_lossy(&body)))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\r').unwrap();
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        let begin = end + 2;
        body.extend_from_slice(&rest[begin..begin + size]);
        rest = &rest[begin + size + 2..];
    }
}
