//! A session as one HTML file: no network, no script, everything escaped, branches that fold.

use std::io::{self, Write};
use std::sync::LazyLock;

use banyan_model::SessionEntry;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::words::{self, Block, Kind, Shown};
use super::{Head, Pictures};
use crate::redact::Finding;

const STYLE: &str = include_str!("style.css");

/// What the page may do: show pictures that it holds itself, in the one style that it has. The style is named by its hash, so
/// that not even another style would work.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; img-src data:; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
});

/// Pictures of these types are shown. None of them can run anything where a picture stands.
const PICTURES: &[&str] =
    &["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml"];

/// Writes HTML. Branches come where they leave the path.
pub struct Html<W> {
    out: W,
    open_branches: usize,
}

impl<W: Write> Html<W> {
    /// Begins a page with what is known of the session.
    pub fn new(mut out: W, head: &Head) -> io::Result<Self> {
        let title = escaped(&words::title(head));
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1 dir=\"auto\">{title}</h1>\n",
            *POLICY
        )?;
        if !head.meta.description.trim().is_empty() {
            writeln!(out, "<p dir=\"auto\" class=\"text\">{}</p>", escaped(&head.meta.description))?;
        }
        writeln!(out, "<dl>")?;
        for (name, value) in words::about(head) {
            writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
        }
        writeln!(out, "</dl>\n</header>")?;
        Ok(Self { out, open_branches: 0 })
    }

    /// Writes an entry. `pictures` finds those that are attachments.
    pub fn entry(&mut self, entry: &SessionEntry, pictures: &mut Pictures<'_>) -> io::Result<()> {
        let Some(Shown { speaker, kind, time, blocks }) = words::shown(entry) else { return Ok(()) };
        let class = match kind {
            Kind::User => "user",
            Kind::Assistant => "assistant",
            Kind::Tool => "tool",
            Kind::Other => "other",
        };
        writeln!(
            self.out,
            "<article class=\"{class}\">\n<h2><span dir=\"auto\">{}</span> <small>{time}</small></h2>",
            escaped(&speaker)
        )?;
        blocks.iter().try_for_each(|block| self.block(block, pictures))?;
        writeln!(self.out, "</article>")
    }

    /// A branch begins that is not the one it leaves. It is folded until somebody opens it.
    pub fn begin_branch(&mut self, entries: usize) -> io::Result<()> {
        self.open_branches += 1;
        let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
        writeln!(self.out, "<details class=\"branch\">\n<summary>Another branch: {entries}</summary>")
    }

    /// The branch that began last has ended.
    pub fn end_branch(&mut self) -> io::Result<()> {
        if self.open_branches == 0 {
            return Ok(());
        }
        self.open_branches -= 1;
        writeln!(self.out, "</details>")
    }

    /// Where it is written to.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the page, and lists what was taken out.
    pub fn finish(mut self, redactions: &[Finding]) -> io::Result<W> {
        while self.open_branches > 0 {
            self.end_branch()?;
        }
        if !redactions.is_empty() {
            writeln!(self.out, "<footer>\n<h2>Taken out of this page</h2>\n<ul>")?;
            for line in words::taken_out(redactions) {
                writeln!(self.out, "<li>{}</li>", escaped(&line))?;
            }
            writeln!(self.out, "</ul>\n</footer>")?;
        }
        writeln!(self.out, "</main>\n</body>\n</html>")?;
        Ok(self.out)
    }

    fn block(&mut self, block: &Block, pictures: &mut Pictures<'_>) -> io::Result<()> {
        match block {
            Block::Text(text) => writeln!(self.out, "<div class=\"text\" dir=\"auto\">{}</div>", escaped(text)),
            Block::Thinking(text) => self.folded("thinking", "Thinking", text),
            Block::Call { name, arguments } => {
                writeln!(self.out, "<div class=\"call\">Call <code>{}</code></div>", escaped(name))?;
                writeln!(self.out, "<pre>{}</pre>", escaped(arguments))
            }
            Block::Result { name, failed, blocks } => {
                let (class, verdict) = if *failed { ("result failed", " failed") } else { ("result", "") };
                writeln!(
                    self.out,
                    "<details class=\"{class}\"{}>\n<summary>Result <code>{}</code>{verdict}</summary>",
                    if *failed { " open" } else { "" },
                    escaped(name)
                )?;
                for block in blocks {
                    match block {
                        Block::Text(text) => writeln!(self.out, "<pre>{}</pre>", escaped(text))?,
                        other => self.block(other, pictures)?,
                    }
                }
                writeln!(self.out, "</details>")
            }
            Block::Image { mime, data, attachment } => {
                let found = attachment.as_ref().filter(|_| data.is_empty()).and_then(&mut *pictures);
                match found {
                    Some(found) => self.picture(&found.mime, &found.data, "Picture"),
                    None => self.picture(mime, data, "Picture"),
                }
            }
            Block::File { name, about, attachment, mime } => {
                let found = if PICTURES.contains(&mime.as_str()) { pictures(attachment) } else { None };
                match found {
                    Some(found) => self.picture(&found.mime, &found.data, name),
                    None => writeln!(
                        self.out,
                        "<p class=\"note\">File: <span dir=\"auto\">{}</span>, {}</p>",
                        escaped(name),
                        escaped(about)
                    ),
                }
            }
            Block::Error(text) => writeln!(self.out, "<p class=\"error\" dir=\"auto\">{}</p>", escaped(text)),
            Block::Remark(text) => writeln!(self.out, "<p class=\"note\">{}</p>", escaped(text)),
        }
    }

    fn folded(&mut self, class: &str, name: &str, text: &str) -> io::Result<()> {
        writeln!(
            self.out,
            "<details class=\"{class}\">\n<summary>{name}</summary>\n<div class=\"text\" dir=\"auto\">{}</div>\n</details>",
            escaped(text)
        )
    }

    /// A picture inside the page; what cannot be one is only named.
    fn picture(&mut self, mime: &str, data: &str, name: &str) -> io::Result<()> {
        let base64 = !data.is_empty() && data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        if base64 && PICTURES.contains(&mime) {
            return writeln!(self.out, "<img alt=\"{}\" src=\"data:{mime};base64,{data}\">", escaped(name));
        }
        let size = words::size(words::decoded(data));
        writeln!(self.out, "<p class=\"note\">{}: {}, {size}</p>", escaped(name), escaped(mime))
    }
}

/// A text in which nothing is a tag, a quote or a character that browsers give a meaning of their own.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\r' => {}
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
