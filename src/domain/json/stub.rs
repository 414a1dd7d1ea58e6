use super::*;
impl Json {
    /// x
    #[must_use]
    pub fn same(&self, other: &Json) -> bool {
        self == other
            || serde_json::from_slice::<serde_json::Value>(self.as_bytes()).ok()
                == serde_json::from_slice(other.as_bytes()).ok()
    }
    /// x
    #[must_use]
    pub fn compact(&self) -> Json {
        self.clone()
    }
    /// x
    #[must_use]
    pub fn elements(&self) -> Vec<Range<usize>> {
        let mut v = Vec::new();
        let _ = scan_array(self.as_bytes(), u16::MAX, |p| v.push(p));
        v
    }
    pub(in crate::domain) fn assembled(text: Vec<u8>) -> Json {
        Json(text.into())
    }
}
