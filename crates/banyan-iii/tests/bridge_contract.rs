//! The contract's scenarios, unchanged, through a bridge: to a Banyan, and to a session-manager.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, dead_code, reason = "each test program uses a part of what they share")]

#[path = "bridge/doors.rs"]
mod doors;
#[path = "bridge/mains.rs"]
mod mains;
#[path = "../../banyan/tests/support/mod.rs"]
mod support;

/// Makes each scenario a test on a bridge to each kind of main.
macro_rules! scenarios {
    ($($name:ident)*) => {
        mod over_a_banyan {
            $(#[test] fn $name() {
                super::$name(&crate::doors::OverBanyan::new());
            })*
        }
        mod over_a_banyan_by_the_published_protocol {
            $(#[test] fn $name() {
                if crate::needs_attachments(module_path!(), stringify!($name)) {
                    return;
                }
                super::$name(&crate::doors::OverBanyan::by_the_published_protocol());
            })*
        }
        mod over_a_session_manager {
            $(#[test] fn $name() {
                if crate::needs_attachments(module_path!(), stringify!($name)) {
                    return;
                }
                super::$name(&crate::doors::OverReference::new());
            })*
        }
    };
}

/// Session-manager's store protocol has no attachments.
fn needs_attachments(module: &str, scenario: &str) -> bool {
    let needs = module.contains("::attachments::") || scenario == "every_code_can_be_met";
    if needs {
        eprintln!("skipped: {scenario} needs attachments, which session-manager's store protocol does not have");
    }
    needs
}

#[path = "../../banyan/tests/contract"]
mod contract {
    mod append;
    mod attachments;
    mod beyond;
    mod branching;
    mod errors;
    mod events;
    mod filters;
    mod lifecycle;
    mod list;
    mod messages;
    mod tail;
    mod update;
}
