//! Media types of files that do not say theirs.

const KNOWN: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("bmp", "image/bmp"),
    ("avif", "image/avif"),
    ("heic", "image/heic"),
    ("tiff", "image/tiff"),
    ("pdf", "application/pdf"),
    ("json", "application/json"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
];

const UNKNOWN: &str = "application/octet-stream";

/// The media type by the first bytes, when they tell, else by the name.
pub(crate) fn guess(path: &str, first: &[u8]) -> &'static str {
    by_bytes(first).unwrap_or_else(|| by_name(path))
}

pub(crate) fn by_name(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, end)) = name.rsplit_once('.') else { return UNKNOWN };
    KNOWN.iter().find(|(known, _)| end.eq_ignore_ascii_case(known)).map_or(UNKNOWN, |(_, mime)| mime)
}

/// What a file of this type is called at its end.
pub(crate) fn extension(mime: &str) -> &'static str {
    KNOWN.iter().find(|(_, known)| *known == mime).map_or("bin", |(end, _)| end)
}

/// Whether packing a file of this type is worth the time.
pub(crate) fn is_packable(mime: &str) -> bool {
    mime.starts_with("text/")
        || matches!(
            mime,
            "application/json" | "application/xml" | "application/yaml" | "image/svg+xml" | "image/bmp"
        )
        || mime == UNKNOWN
}

fn by_bytes(first: &[u8]) -> Option<&'static str> {
    Some(match first {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        _ => return None,
    })
}
