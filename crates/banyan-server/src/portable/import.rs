//! `POST /v1/import`: the body is the file.

use axum::response::Response;
use banyan::import::Mode;
use hyper::Uri;

use crate::caller::Caller;
use crate::calls;
use crate::history::yes_or_no;
use crate::problem::Problem;
use crate::resources::pairs;
use crate::spool::Spooled;

pub(super) async fn import(caller: Caller, uri: Uri, mut file: Spooled) -> Result<Response, Problem> {
    let mode = mode(&uri)?;
    let store = caller.store.clone();
    // Archives are unpacked and read to their end before anything of them is taken, which keeps a thread busy.
    let work = move || banyan::block_on(store.import(&mut *file.input, mode));
    let summary = tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| banyan::model::Error::storage("the import was broken off"))??;
    let summary = serde_json::to_string(&summary)
        .map_err(|error| banyan::model::Error::storage(format!("the summary is no JSON: {error}")))?;
    Ok(calls::json(summary))
}

fn mode(uri: &Uri) -> Result<Mode, Problem> {
    let mut dry_run = None;
    for (name, value) in pairs(uri.query())? {
        if name != "dry_run" || dry_run.is_some() {
            return Err(Problem::invalid(format!(
                "`{name}` is not known in the query, or given twice; there is dry_run"
            )));
        }
        dry_run = Some(yes_or_no(&name, &value)?);
    }
    Ok(if dry_run == Some(true) { Mode::DryRun } else { Mode::Write })
}
