//! The contract, as scenarios that read aloud. Each is run on a store in memory and on one in a directory.

/// Makes each scenario a test on every kind of store.
macro_rules! scenarios {
    ($($name:ident)*) => {
        mod in_memory {
            $(#[test] fn $name() {
                super::$name(&banyan::Banyan::in_memory(banyan::Options::default()).unwrap());
            })*
        }
        mod in_a_directory {
            $(#[test] fn $name() {
                super::$name(&crate::support::OnDisk::new().store);
            })*
        }
    };
}

mod contract {
    mod append;
    mod attachments;
    mod beyond;
    mod branching;
    mod errors;
    mod events;
    mod filters;
    mod lifecycle;
    mod limits;
    mod list;
    mod messages;
    mod tail;
    mod update;
}
