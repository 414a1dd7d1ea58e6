//! The usage of routes and MCP eras by client, summed over all shards and with ids replaced by names. Used by `app::usage_counts`.

use super::labels::{LabelId, LabelNames, NONE};
use super::shard::Snapshot;
use dualgauge_model::lifecycle::Usage;

/// Returns the calls that this process has counted since its start, by name.
#[must_use]
pub fn usage(names: &LabelNames, snapshots: &[Snapshot]) -> Usage {
    let texts = names.texts();
    let text = |id: LabelId| texts.get(id.index()).map_or(NONE, |text| text);
    let mut usage = Usage::default();
    for snapshot in snapshots {
        for ((route, client, side), seen) in &snapshot.counts.seen {
            usage.note(text(*route), text(*client), *side, seen);
        }
        for (prefix, count) in &snapshot.counts.unrouted.prefixes {
            usage.note_unrouted(text(*prefix), count);
        }
        let eras = usage.eras_mut();
        for ((client, era), count) in &snapshot.counts.mcp.eras {
            eras.note(text(*client), *era, count);
        }
        for (client, era, info, at) in snapshot.counts.mcp.programs.iter() {
            eras.note_name(text(*client), era, info, at);
        }
    }
    usage
}
