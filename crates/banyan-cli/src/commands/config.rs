//! `banyan config`: every setting of a server, and where its value came from.

use banyan_server::config::Origin;
use clap::Args;
use serde_json::json;

use super::server_options::ServerOptions;
use crate::args::Globals;
use crate::failure::{Failure, complain};
use crate::screen::{Screen, Style};
use crate::words::{clip, one_line, width};

/// Show every setting of a server, its value, and where that came from.
///
/// Settings come from a file, then the environment, then flags; what comes later wins. This shows what `banyan serve` would
/// run with, given the same flags, and starts nothing. With --json, one setting a line.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    options: ServerOptions,
}

const EXAMPLES: &str = r#"Examples:
  banyan config
  BANYAN_LISTEN=127.0.0.1:8000 banyan config --set limits.connections=100
  banyan config --config banyan.toml --json | jq -r 'select(.source != "default") | .key'

A file says, for example:
  listen = "127.0.0.1:8000"
  [limits]
  requests_per_second = 100

A variable is named after its setting: BANYAN_LIMITS_REQUESTS_PER_SECOND."#;

pub(crate) fn run(args: &ConfigArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let (config, _) = args.options.load(globals)?;
    for name in &config.unknown_variables {
        complain(&format!("warning: {name} is set, and means nothing to Banyan"));
    }
    if globals.json {
        return config.origins.iter().try_for_each(|origin| {
            let Origin { key, value, source, help } = origin;
            screen.json(&json!({"key": key, "value": value, "source": source.to_string(), "help": help}))
        });
    }
    let rows: Vec<[String; 4]> = config
        .origins
        .iter()
        .map(|origin| {
            let value = if origin.value.is_empty() { "-" } else { &origin.value };
            [origin.key.to_owned(), one_line(value), one_line(&origin.source.to_string()), origin.help.to_owned()]
        })
        .collect();
    table(&rows, screen)
}

fn table(rows: &[[String; 4]], screen: &mut Screen) -> Result<(), Failure> {
    let heads = ["SETTING", "VALUE", "FROM", "WHAT FOR"].map(str::to_owned);
    let widest = |column: usize| rows.iter().chain([&heads]).map(|row| width(&row[column])).max().unwrap_or(0);
    let widths = [widest(0), widest(1), widest(2), 0];
    let room = screen.columns().unwrap_or(usize::MAX);
    let line = |row: &[String; 4]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide.saturating_sub(width(cell)))));
        clip(cells.collect::<Vec<_>>().join("  ").trim_end(), room)
    };
    screen.line(&screen.paint(Style::Aside, &line(&heads)))?;
    rows.iter().try_for_each(|row| {
        let line = line(row);
        let unset = row[2] == "default";
        screen.line(&if unset { line } else { screen.paint(Style::Heading, &line) })
    })
}
