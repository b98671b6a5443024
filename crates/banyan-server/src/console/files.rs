//! The built files of the console, as they were when the server was built.

/// A file of the console.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) bytes: &'static [u8],
    /// The same, compressed with gzip.
    pub(super) packed: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

pub(super) fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

/// The page that draws diagrams, in a frame of the other one.
pub(super) fn diagrams() -> Option<&'static File> {
    FILES.iter().find(|file| file.is_page() && file.name.starts_with("diagram-"))
}

impl File {
    pub(super) fn is_page(&self) -> bool {
        self.name.ends_with(".html")
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("css") => "text/css; charset=utf-8",
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            _ => "application/octet-stream",
        }
    }
}
