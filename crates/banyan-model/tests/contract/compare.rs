//! Walks two schemas side by side.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shape::{Form, shape};

/// What is not the same in ours and in the contract's.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// What a client of the contract would trip over.
    pub(crate) differences: Vec<String>,
    /// Optional fields and variants that we have besides.
    pub(crate) additions: BTreeSet<String>,
}

/// Compares two root schemas.
pub(crate) fn compare(ours: &Value, theirs: &Value, place: &str, found: &mut Comparison) {
    Walk { our_root: ours, their_root: theirs, open: Vec::new(), found }.walk(ours, theirs, place, "");
}

struct Walk<'a> {
    our_root: &'a Value,
    their_root: &'a Value,
    /// The contract's references that are being walked, so that a type inside itself ends the walk.
    open: Vec<&'a str>,
    found: &'a mut Comparison,
}

impl<'a> Walk<'a> {
    fn walk(&mut self, ours: &'a Value, theirs: &'a Value, place: &str, owner: &str) {
        let reference = theirs.get("$ref").and_then(Value::as_str);
        if reference.is_some_and(|reference| self.open.contains(&reference)) {
            return;
        }
        self.open.extend(reference);
        self.walk_resolved(ours, theirs, place, owner);
        if reference.is_some() {
            self.open.pop();
        }
    }

    fn walk_resolved(&mut self, ours: &'a Value, theirs: &'a Value, place: &str, owner: &str) {
        let (our, their) = (shape(ours, self.our_root), shape(theirs, self.their_root));
        let owner = their.name.unwrap_or(owner);
        self.same(our.nullable, their.nullable, place, "allows null");
        self.same(our.name, their.name, place, "is called");
        match (our.form, their.form) {
            (Form::Anything, Form::Anything) => {}
            (Form::Words(our), Form::Words(their)) => self.same(our, their, place, "takes the words"),
            (Form::List(our), Form::List(their)) => self.walk(our, their, &format!("{place}[]"), owner),
            (
                Form::Scalar { kind, format, minimum },
                Form::Scalar { kind: their_kind, format: their_format, minimum: their_minimum },
            ) => self.same((kind, format, minimum), (their_kind, their_format, their_minimum), place, "is a"),
            (
                Form::Object { fields, required, open },
                Form::Object { fields: their_fields, required: their_required, open: their_open },
            ) => {
                self.same(open, their_open, place, "takes any field");
                self.same(required, their_required, place, "requires");
                for (name, their_field) in their_fields {
                    match fields.get(name) {
                        Some(field) => self.field(field, their_field, &format!("{place}.{name}"), owner),
                        None => self.found.differences.push(format!("{place}.{name} is missing")),
                    }
                }
                let added = fields.keys().filter(|name| !their_fields.contains_key(*name));
                self.found.additions.extend(added.map(|name| format!("{owner}.{name}")));
            }
            (Form::Variants(our), Form::Variants(their)) => {
                for (tag, their_variant) in &their {
                    match our.get(tag) {
                        Some(variant) => {
                            let place = format!("{place}<{tag}>");
                            self.walk(variant, their_variant, &place, &format!("{owner}<{tag}>"));
                        }
                        None => self.found.differences.push(format!("{place}<{tag}> is missing")),
                    }
                }
                let added = our.keys().filter(|tag| !their.contains_key(*tag));
                self.found.additions.extend(added.map(|tag| format!("{owner}<{tag}>")));
            }
            _ => self.found.differences.push(format!("{place} is {ours}, in the contract {theirs}")),
        }
    }

    fn field(&mut self, ours: &'a Value, theirs: &'a Value, place: &str, owner: &str) {
        let default = |schema: &Value| schema.get("default").cloned().unwrap_or_default();
        self.same(default(ours), default(theirs), place, "defaults to");
        self.walk(ours, theirs, place, owner);
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, ours: T, theirs: T, place: &str, what: &str) {
        if ours != theirs {
            self.found.differences.push(format!("{place} {what} {ours:?}, in the contract {theirs:?}"));
        }
    }
}
