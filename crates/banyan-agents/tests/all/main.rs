//! Every agent: genuine files, damaged ones, and what is written back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod aider;
mod claude;
mod cline;
mod codex;
mod common;
mod copilot;
mod gemini;
mod generated;
mod goose;
mod odd_fields;
mod opencode;
mod pi;
mod qwen;
mod recognised;
