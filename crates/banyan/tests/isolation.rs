//! Tenants: a handle with a scope and a session out of it. To that handle the session does not exist, in any function,
//! and nothing that the handle does reaches it.

mod isolation {
    mod begin;
    mod events;
    mod every_function;
    mod examples;
    mod race;
    mod read_only;
    mod tenants;
}
