//! `banyan backup`: everything, to another directory, while the store is in use.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use banyan::backup::{Backup, BackupError, KEYS, ReceiveOptions, Received, Repository, Wanted, have, receive};
use banyan::{Banyan, Options, SearchIndexing};
use clap::Args;
use serde_json::json;
use ureq::http::Method;

use crate::args::{Globals, Target};
use crate::client::Server;
use crate::data_dir::data_dir;
use crate::failure::{Failure, complain};
use crate::notice;
use crate::progress::Bar;
use crate::screen::{Screen, Style};
use crate::words::{count, one_line, size};

/// Back up all sessions to a directory, while the store is in use.
///
/// The backup is consistent at one commit, and has every session, attachments included. A second backup to the same directory
/// writes only what is new, and adds a generation; content is shared between generations. A backup that is interrupted leaves the earlier
/// ones as they were.
///
/// A directory that a server owns is backed up through the server, which needs a key without scope that may write if it has keys. The
/// destination is always a directory on this machine. Every record is checked while it is copied: damage in the source is named, the rest
/// is backed up, and the exit code is 1. A session that is damaged or missing keeps its copy from the backup before.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// The data directory, or the address of a server [default: as for every command]
    #[arg(value_name = "DIR|URL")]
    source: Option<String>,
    /// The directory of the backup; it is made if it does not exist
    #[arg(long, value_name = "DEST")]
    to: PathBuf,
    /// Back up the keys of the server, too. Of each only a hash is kept
    #[arg(long)]
    with_keys: bool,
    /// Read what the backup has already, too, and name damage in it. Without this only what is new is read
    #[arg(long)]
    reread: bool,
    /// Keep the newest N backups, this one included, and remove older ones [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// The most bytes a second, such as 500k, 20M or 1G; 0 is as fast as possible
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = rate)]
    rate: u64,
}

const EXAMPLES: &str = "\
Examples:
  banyan backup --to /backups/banyan
  banyan backup --to /backups/banyan --keep 30
  banyan backup /srv/banyan --to /backups/banyan --with-keys
  banyan backup https://sessions.example:7420 --key \"$KEY\" --to ./backup --rate 5M
  banyan verify /backups/banyan
  banyan restore /backups/banyan --data ./restored";

/// Reads a number of bytes.
fn rate(text: &str) -> Result<u64, String> {
    let wrong = || "write it as 500k, 20M, 1G or a number of bytes".to_owned();
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

pub(crate) fn run(args: BackupArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let globals = with_source(args.source.as_deref(), globals)?;
    let options = ReceiveOptions { keep: args.keep, rate: Some(args.rate).filter(|rate| *rate > 0) };
    let received = match globals.target()? {
        Target::Server(url) => from_server(&url, &args, options, &globals)?,
        Target::Directory => {
            let dir = data_dir(&globals)?;
            refuse_inside(&args.to, &dir)?;
            from_directory(&dir, &args, options, &globals)?
        }
    };
    show(&received, &args.to, &globals, screen)?;
    if received.damage.is_empty() { Ok(()) } else { Err(Failure::Damage) }
}

fn wanted(args: &BackupArgs) -> Wanted {
    Wanted { keys: args.with_keys, reread: args.reread }
}

/// A source that was named is the same as `--data` or `--url`.
fn with_source(source: Option<&str>, globals: &Globals) -> Result<Globals, Failure> {
    let mut globals = globals.clone();
    let Some(source) = source else { return Ok(globals) };
    if globals.data.is_some() || globals.url.is_some() {
        return Err(Failure::usage("the source is given twice; leave out --data or --url"));
    }
    match source.contains("://") {
        true => globals.url = Some(source.to_owned()),
        false => globals.data = Some(PathBuf::from(source)),
    }
    Ok(globals)
}

/// A backup within the directory that it is of would be lost with it.
fn refuse_inside(to: &Path, dir: &Path) -> Result<(), Failure> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (to, dir) = (absolute(to), absolute(dir));
    if to.starts_with(&dir) || dir.starts_with(&to) {
        return Err(Failure::usage(format!(
            "{} and {} lie within each other; name another --to",
            to.display(),
            dir.display()
        )));
    }
    Ok(())
}

fn from_server(
    url: &str,
    args: &BackupArgs,
    options: ReceiveOptions,
    globals: &Globals,
) -> Result<Received, Failure> {
    let server = Server::new(url, globals)?;
    let repository = Repository::create(&args.to).map_err(failed)?;
    let mut body = Vec::new();
    have(&repository, wanted(args), &mut body).map_err(failed)?;
    let mut stream = BufReader::with_capacity(256 << 10, server.stream(Method::POST, "/v1/backup", Some(&body))?);
    drop(body);
    receive(&repository, &mut stream, options, &Bar::default()).map_err(failed)
}

fn from_directory(
    dir: &Path,
    args: &BackupArgs,
    options: ReceiveOptions,
    globals: &Globals,
) -> Result<Received, Failure> {
    if !dir.is_dir() {
        return Err(Failure::storage(format!(
            "there is no data directory {}; pass another one with --data DIR",
            dir.display()
        )));
    }
    let store_options =
        Options { progress: Box::new(Bar::default()), search: SearchIndexing::Off, ..Options::default() };
    let store = match Banyan::open(dir, store_options) {
        Ok(store) => store,
        Err(error) => {
            return match notice::owner_of(dir, &error) {
                Some(url) => from_server(&url, args, options, globals),
                None => Err(Failure::opening(dir, error)),
            };
        }
    };
    let received = from_store(&store, dir, args, options);
    let closed = store.close();
    let received = received?;
    closed?;
    Ok(received)
}

fn from_store(
    store: &Banyan,
    dir: &Path,
    args: &BackupArgs,
    options: ReceiveOptions,
) -> Result<Received, Failure> {
    let repository = Repository::create(&args.to).map_err(failed)?;
    let mut known = Vec::new();
    have(&repository, wanted(args), &mut known).map_err(failed)?;
    let keys = match fs::read(dir.join(KEYS)) {
        Ok(keys) => Some(keys),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::storage(format!("the keys cannot be read: {error}"))),
    };
    let backup = store.backup(&mut known.as_slice(), keys)?;
    let mut pieces = Pieces { backup, piece: Vec::new(), at: 0 };
    receive(&repository, &mut pieces, options, &Bar::default()).map_err(failed)
}

/// A backup as bytes.
struct Pieces {
    backup: Backup,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let next = self.backup.next_piece().map_err(|error| io::Error::other(error.message))?;
            self.piece = next.unwrap_or_default();
            self.at = 0;
        }
        let rest = self.piece.get(self.at..).unwrap_or_default();
        let taken = rest.len().min(into.len());
        into[..taken].copy_from_slice(&rest[..taken]);
        self.at += taken;
        Ok(taken)
    }
}

/// Why a backup was not made or read.
pub(super) fn failed(error: BackupError) -> Failure {
    match error {
        BackupError::Refused(reason) => Failure::refused("backup/refused", reason),
        error @ BackupError::Damaged { .. } => Failure::refused("backup/damaged", error.to_string()),
        error => Failure::trouble("backup/failed", error.to_string()),
    }
}

fn show(received: &Received, to: &Path, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    if globals.json {
        let damage: Vec<_> = received
            .damage
            .iter()
            .map(|damage| json!({"file": damage.file, "offset": damage.offset, "reason": damage.reason}))
            .collect();
        return screen.json(&json!({
            "generation": received.generation, "commit": received.commit, "sessions": received.sessions,
            "unchanged": received.unchanged, "written": received.written, "removed": received.removed, "damage": damage,
        }));
    }
    for damage in &received.damage {
        let place = match damage.offset {
            Some(offset) => format!("{} at byte {offset}", one_line(&damage.file)),
            None => one_line(&damage.file),
        };
        screen.line(&format!("{}: {}", screen.paint(Style::Bad, &place), one_line(&damage.reason)))?;
    }
    screen.line(&format!(
        "Backup {} in {}: {} ({} unchanged) as of commit {}, {} written.",
        received.generation,
        to.display(),
        count(received.sessions, "session"),
        received.unchanged,
        received.commit,
        size(received.written)
    ))?;
    if received.removed > 0 {
        complain(&format!("Removed {}.", count(received.removed, "older backup")));
    }
    if !received.damage.is_empty() {
        complain(&format!(
            "{} of damage in the source; see docs/operations.md.",
            count(received.damage.len() as i128, "place")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        assert_eq!(
            ["0", "500k", "20M", "1G", "17"].map(rate),
            [Ok(0), Ok(500_000), Ok(20_000_000), Ok(1_000_000_000), Ok(17)]
        );
        assert!(["", "M", "x", "-1", "1T", "99999999999999999999G"].iter().all(|text| rate(text).is_err()));
    }
}
