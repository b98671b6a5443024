//! What browsers let the console do. It shows what strangers wrote, so that is little.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::files::diagrams as file;

/// For files that are no page.
pub(super) const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// The page runs the server's own scripts and asks this server only. Text becomes markup through the sanitiser or not at all.
pub(super) const PAGE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                               connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
                               frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";

/// The frame that draws diagrams has no origin, and so nothing of this server's. It runs the one script that is in it, and
/// loads nothing. Mermaid writes its styles into what it draws.
pub(super) fn diagrams() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let page = file().and_then(|file| std::str::from_utf8(file.bytes).ok()).unwrap_or_default();
        let after = page.split_once("<script>").map_or("", |(_, after)| after);
        let script = after.rsplit_once("</script>").map_or("", |(script, _)| script);
        let hash = STANDARD.encode(Sha256::digest(script));
        format!(
            "sandbox allow-scripts; default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
        )
    });
    &POLICY
}
