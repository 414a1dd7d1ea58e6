//! Settings that a reload cannot change, because they take effect only at a start.

use crate::config::raw::RawConfig;

/// These settings by key, as read from the files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RestartOnly([(&'static str, String); 10]);

impl RestartOnly {
    pub(super) fn from_config(config: &RawConfig) -> Self {
        RestartOnly([
            ("listen.address", config.listen.address.value.to_string()),
            ("listen.workers", config.listen.workers.value.to_string()),
            ("listen.tls", tls(config)),
            ("admin.address", config.admin.value.to_string()),
            (
                "rollout.state",
                config.rollout.state.value.display().to_string(),
            ),
            ("admin.tokens", format!("{:?}", config.admin_tokens)),
            ("rollout.store", format!("{:?}", config.rollout.store)),
            ("trace.endpoint", format!("{:?}", exported(config))),
            ("log.format", format!("{:?}", config.log.format.value)),
            ("log.level", config.log.level.value.to_owned()),
        ])
    }

    /// Logs each setting that has changed since the last read and differs from the start, so that each change is logged
    /// once.
    pub(super) fn warn_of_changes(&self, before: &RestartOnly, started: &RestartOnly) {
        for key in self.changes(before, started) {
            tracing::warn!("`{key}` changed; it takes effect at the next start");
        }
    }

    pub(super) fn changes(&self, before: &RestartOnly, started: &RestartOnly) -> Vec<&'static str> {
        let values = self.0.iter().zip(&before.0).zip(&started.0);
        values
            .filter(|((now, before), started)| now != before && now != started)
            .map(|(((key, _), _), _)| *key)
            .collect()
    }
}

/// Returns the destination of spans.
fn exported(config: &RawConfig) -> Option<(String, &str)> {
    let trace = config.trace.as_ref()?;
    let endpoint = trace.endpoint.as_ref()?.value.to_string();
    Some((endpoint, &trace.service.value))
}

/// Returns whether TLS is on. Its files may change at any time: new connections use the new ones.
fn tls(config: &RawConfig) -> String {
    config.listen.tls.is_some().to_string()
}

/// Restores the restart-only settings of the start, including the number of workers, because the plan's limits are
/// divided by it.
pub(super) fn keep_what_is_fixed(config: &mut RawConfig, started: &RawConfig) {
    let (listen, before) = (&mut config.listen, &started.listen);
    listen.address.clone_from(&before.address);
    listen.workers.clone_from(&before.workers);
    if listen.tls.is_some() != before.tls.is_some() {
        listen.tls.clone_from(&before.tls);
    }
    config.admin = started.admin.clone();
    config.admin_tokens.clone_from(&started.admin_tokens);
    config.rollout.store.clone_from(&started.rollout.store);
    config.rollout.state = started.rollout.state.clone();
    let sent = started.trace.as_ref();
    if let Some(trace) = &mut config.trace {
        trace.endpoint = sent.and_then(|sent| sent.endpoint.clone());
        trace.service = sent.map_or_else(|| trace.service.clone(), |sent| sent.service.clone());
    }
    config.log.format = started.log.format.clone();
    config.log.level = started.log.level.clone();
}
