//! Conversion of configuration words to domain values.

use crate::config::raw::{CredentialsWord, EffectWord, UnroutedWord, WithoutKeyWord};
use crate::domain::plan::{Credentials, Unrouted};
use crate::domain::rollout::WithoutKey;
use crate::domain::route::Effect;

impl From<EffectWord> for Effect {
    fn from(word: EffectWord) -> Self {
        match word {
            EffectWord::Safe => Effect::Safe,
            EffectWord::Idempotent => Effect::Idempotent,
            EffectWord::Unsafe => Effect::Unsafe,
        }
    }
}

impl From<CredentialsWord> for Credentials {
    fn from(word: CredentialsWord) -> Self {
        match word {
            CredentialsWord::Forward => Credentials::Forward,
            CredentialsWord::Drop => Credentials::Drop,
        }
    }
}

impl From<UnroutedWord> for Unrouted {
    fn from(word: UnroutedWord) -> Self {
        match word {
            UnroutedWord::Passthrough => Unrouted::Passthrough,
            UnroutedWord::Reject => Unrouted::Reject,
        }
    }
}

impl From<WithoutKeyWord> for WithoutKey {
    fn from(word: WithoutKeyWord) -> Self {
        match word {
            WithoutKeyWord::Out => WithoutKey::Out,
            WithoutKeyWord::In => WithoutKey::In,
        }
    }
}
