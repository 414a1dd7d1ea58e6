//! The error that no route has a given name. Used by `command_error`, `mismatches`, `routes` and `usage`.

use crate::cli::admin::{AdminClient, AdminFault};
use crate::config::problem::nearest;
use dualgauge_model::rollout::Glob;

/// The error that `--route` matches no route.
#[derive(Debug, thiserror::Error)]
#[error("no route matches `--route {glob}`; {hint}")]
pub(super) struct NoRoute {
    glob: String,
    hint: String,
}

impl NoRoute {
    /// Checks that a glob matches one of the names. `*` asks for all, even if there are none.
    ///
    /// # Errors
    /// [`NoRoute`]
    pub(super) fn check<'n>(
        glob: &str,
        names: impl IntoIterator<Item = &'n str> + Clone,
    ) -> Result<(), NoRoute> {
        let wanted = Glob::new(glob);
        if glob == "*" || names.clone().into_iter().any(|name| wanted.fits(name)) {
            return Ok(());
        }
        Err(NoRoute {
            glob: glob.to_owned(),
            hint: match nearest(glob, names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`dualgauge routes` lists all names".to_owned(),
            },
        })
    }
}

/// Returns the names of the routes of a running process.
pub(super) fn route_names(admin: &AdminClient) -> Result<Vec<String>, AdminFault> {
    let plan = admin.get("/api/v1/plan")?;
    let routes = plan["routes"].as_array().map_or(&[][..], Vec::as_slice);
    let names = routes.iter().filter_map(|route| route["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_that_matches_nothing_names_the_nearest_route() {
        let names = ["items.get", "items.list"];
        for glob in ["items.get", "items.*", "*"] {
            assert!(NoRoute::check(glob, names).is_ok(), "{glob}");
        }
        assert!(NoRoute::check("*", []).is_ok());
        let said = |glob| NoRoute::check(glob, names).unwrap_err().to_string();
        assert_eq!(
            said("items.gte"),
            "no route matches `--route items.gte`; did you mean `items.get`?"
        );
        assert_eq!(
            said("nosuch"),
            "no route matches `--route nosuch`; `dualgauge routes` lists all names"
        );
    }
}
