//! The two sides, as the tables made here name them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Rest,
    Rpc,
}

impl Side {
    pub(crate) const ALL: [Side; 2] = [Side::Rest, Side::Rpc];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Side::Rest => "rest",
            Side::Rpc => "rpc",
        }
    }

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Rest => Side::Rpc,
            Side::Rpc => Side::Rest,
        }
    }
}
