//! `banyan verify FILE`: what the signature of an archive is worth.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use banyan::opa::{Archive, Coverage, Form, Limits, Signature};
use serde_json::{Value, json};

use crate::args::Globals;
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::words::one_line;

pub(super) fn run(path: &Path, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|error| Failure::trouble("cli/file", format!("{name} could not be read: {error}")))?;
    let archive = Archive::examine(BufReader::new(file), &Limits::default()).map_err(|error| {
        match error.refusal().map(|refusal| refusal.why.as_str()) {
            Some(why) => Failure::refused("opa/refused", format!("{name} is refused ({why}): {error}")),
            None => Failure::trouble("cli/file", format!("{name} could not be read: {error}")),
        }
    })?;
    let signature = archive.signature();
    match globals.json {
        true => screen.json(&as_json(signature, archive.remarks()))?,
        false => in_words(signature, archive.remarks(), screen)?,
    }
    match signature.coverage {
        Coverage::Broken { .. } => Err(Failure::Damage),
        Coverage::Full | Coverage::Partial { .. } | Coverage::None => Ok(()),
    }
}

fn in_words(signature: &Signature, remarks: &[String], screen: &mut Screen) -> Result<(), Failure> {
    let word = signature.coverage.as_str();
    match &signature.coverage {
        Coverage::Full => {
            let word = screen.paint(Style::Good, word);
            screen.line(&format!("{word}: the signature holds, and covers every entry"))?;
        }
        Coverage::Partial { uncovered } => {
            let word = screen.paint(Style::Busy, word);
            screen.line(&format!("{word}: the signature holds, and does not cover these entries"))?;
            uncovered.iter().try_for_each(|name| screen.line(&format!("  {}", one_line(name))))?;
        }
        Coverage::None => screen.line(&format!("{word}: there is no signature"))?,
        Coverage::Broken { reason } => {
            let word = screen.paint(Style::Bad, word);
            screen.line(&format!("{word}: {}", one_line(reason)))?;
        }
    }
    if let Some(signer) = &signature.signer {
        screen.line(&format!("  signer: {}", one_line(&signer.subject)))?;
    }
    if signature.form == Some(Form::Bare) {
        screen.line("  form: a certificate and a bare signature, which `banyan import` refuses")?;
    }
    remarks.iter().try_for_each(|remark| screen.line(&format!("  remark: {}", one_line(remark))))
}

fn as_json(signature: &Signature, remarks: &[String]) -> Value {
    let (uncovered, reason) = match &signature.coverage {
        Coverage::Partial { uncovered } => (uncovered.as_slice(), None),
        Coverage::Broken { reason } => ([].as_slice(), Some(reason)),
        Coverage::Full | Coverage::None => ([].as_slice(), None),
    };
    let form = signature.form.map(|form| match form {
        Form::Pkcs7 => "pkcs7",
        Form::Bare => "bare",
    });
    json!({
        "coverage": signature.coverage.as_str(),
        "uncovered": uncovered,
        "reason": reason,
        "signer": signature.signer.as_ref().map(|signer| &signer.subject),
        "form": form,
        "remarks": remarks,
    })
}
