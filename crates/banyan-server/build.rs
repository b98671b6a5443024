//! Puts the built files of the console (`make console`) into the server. Without them it is built all the same, and its
//! page says how to get them.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/dist");
    println!("cargo:rerun-if-changed={}", built.display());
    let mut table = String::from("&[\n");
    for path in files(&built)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let packed = built.join(format!("{name}.gz"));
        let packed = if packed.exists() { format!("Some(include_bytes!({packed:?}))") } else { "None".to_owned() };
        writeln!(table, "    File {{ name: {name:?}, bytes: include_bytes!({path:?}), packed: {packed} }},")?;
    }
    table.push(']');
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("console_files.rs"), table)?;
    Ok(())
}

/// What is served, in the order of names: no hidden files, and no packed ones, which belong to others.
fn files(built: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if !built.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in built.canonicalize()?.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with('.') && !name.ends_with(".gz") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
