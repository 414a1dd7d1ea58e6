//! A drafted route, as the values of its keys. Used by `import`.

use serde_json::Value;

/// A pattern of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    Text(String),
    Object(Vec<(String, Pattern)>),
    List(Vec<Pattern>),
}

/// A route with the values of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drafted {
    pub(super) name: String,
    pub(super) rest: String,
    pub(super) rpc: String,
    /// The only side from which the route is called.
    pub(super) from: Option<&'static str>,
    pub(super) effect: Option<&'static str>,
    pub(super) headers: Vec<(String, Pattern)>,
    /// Query names of the document that the route does not have.
    pub(super) unread: Vec<String>,
    pub(super) params: Option<Pattern>,
    pub(super) body: Option<Pattern>,
    /// The format of the body, if it is a form.
    pub(super) body_format: Option<&'static str>,
    pub(super) outcome: Option<[String; 2]>,
    pub(super) comments: Vec<String>,
    /// The reason why the route is written as a comment.
    pub(super) refused: Option<String>,
    /// The route for clients that send params by name, if this one has them by position.
    pub(super) by_name: Option<Box<Drafted>>,
    /// The documentation, if the route is a tool whose value is the REST body.
    pub(super) docs: Option<Box<DraftedDocs>>,
}

/// The documentation of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DraftedDocs {
    pub(super) summary: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tags: Vec<String>,
    /// The schema of the params.
    pub(super) params: Option<Value>,
    /// The schema of the result.
    pub(super) result: Option<Value>,
}
