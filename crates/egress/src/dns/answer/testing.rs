//! For tests: a name server with notes of what it was asked.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType as Type};

use super::{Lookup, Lookups, NameServer};
use crate::names::Names;

/// What was looked up.
#[derive(Default)]
pub(crate) struct Notes {
    seen: RefCell<Vec<String>>,
    pub(crate) full: Cell<usize>,
    pub(crate) unwritable: Cell<bool>,
}

impl Notes {
    pub(crate) fn names(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }
}

impl Lookups for Notes {
    fn looked_up(&self, lookup: &Lookup<'_>) -> io::Result<()> {
        if self.unwritable.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.seen.borrow_mut().push(lookup.name.to_string());
        Ok(())
    }

    fn too_many_names(&self, _: usize) {
        self.full.set(self.full.get() + 1);
    }
}

/// A name server for three names.
pub(crate) fn name_server() -> (NameServer, Rc<Notes>) {
    let notes = Rc::new(Notes::default());
    let names = Rc::new(RefCell::new(Names::new(3)));
    (NameServer::new(names, Rc::clone(&notes) as _), notes)
}

/// A question as a library for DNS writes it.
pub(crate) fn message(name: &str, kind: u16) -> Message {
    let name = Name::from_ascii(format!("{name}.")).unwrap();
    let mut message = Message::query();
    message.metadata.id = 7;
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, Type::from(kind)));
    message
}

pub(crate) fn question(name: &str, kind: u16) -> Vec<u8> {
    message(name, kind).to_vec().unwrap()
}

/// What a new name server answers to [`question`].
pub(crate) fn ask(name: &str, kind: u16) -> Vec<u8> {
    let (server, _) = name_server();
    server.answer(&question(name, kind)).unwrap()
}
