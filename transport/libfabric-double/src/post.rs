//! Accepting or refusing operations.

use core::ffi::{c_int, c_void};

use libfabric_sys as sys;

use crate::memory::claim_context;
use crate::objects::code;
use crate::operation::{Kind, Local, Operation, cut};
use crate::personality::Completes;
use crate::world::{World, broken};

/// An operation as it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) here: Here,
    /// Of the result, where there is one.
    pub(crate) result_desc: *mut c_void,
    pub(crate) there: There,
    pub(crate) context: *mut c_void,
    pub(crate) flags: u64,
    /// Whether a completion is given.
    pub(crate) tells: bool,
}

/// A buffer of the caller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    pub(crate) at: usize,
    pub(crate) bytes: usize,
    pub(crate) desc: *mut c_void,
}

/// A place in a peer's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct There {
    pub(crate) peer: sys::fi_addr_t,
    pub(crate) at: u64,
    pub(crate) key: u64,
}

impl Asked {
    /// What the calls without flags ask for; a completion is given.
    pub(crate) fn new(kind: Kind, here: Here, there: There, context: *mut c_void) -> Self {
        Self {
            kind,
            here,
            result_desc: here.desc,
            there,
            context,
            flags: 0,
            tells: true,
        }
    }
}

/// The only descriptor of a message, which may have none.
///
/// # Safety
/// `desc` is null or points at one.
pub(crate) unsafe fn only_desc(desc: *mut *mut c_void) -> *mut c_void {
    if desc.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    unsafe { *desc }
}

impl World {
    /// Takes an operation, or says by its number why not.
    pub(crate) fn post(&mut self, end: u64, asked: &Asked) -> isize {
        match self.check(end, asked) {
            Ok(()) => {
                self.take(end, asked);
                0
            }
            Err(error) => code(error),
        }
    }

    fn check(&mut self, end: u64, asked: &Asked) -> Result<(), c_int> {
        let (of, domain) = (self.end(end).personality, self.end(end).domain);
        if !self.end(end).enabled {
            return Err(sys::FI_EOPBADSTATE);
        }
        let injected = asked.flags & sys::FI_INJECT != 0;
        if asked.here.bytes > of.most_bytes || (injected && asked.here.bytes > of.inject_bytes) {
            return Err(sys::FI_EMSGSIZE);
        }
        if asked.flags & sys::FI_FENCE != 0 && !of.has_fences() {
            return Err(sys::FI_EOPNOTSUPP);
        }
        if matches!(asked.kind, Kind::Add { .. }) && !asked.there.at.is_multiple_of(8) {
            broken("an atomic operation on a word that is not aligned");
        }
        if of.needs(sys::FI_MR_LOCAL) && !injected {
            self.check_local(domain, asked.here.desc, asked.here.at, asked.here.bytes);
            if let Kind::Add {
                result: Some(result),
            } = asked.kind
            {
                self.check_local(domain, asked.result_desc, result, asked.here.bytes);
            }
        }
        let full = self.end(end).wire.len() >= of.queue;
        if full || self.random.of_sixteen(of.refuses) {
            return Err(sys::FI_EAGAIN);
        }
        Ok(())
    }

    fn take(&mut self, end: u64, asked: &Asked) {
        let of = self.end(end).personality;
        let peer = self.peer(end, asked.there.peer);
        let waits = matches!(asked.kind, Kind::Read | Kind::Add { result: Some(_) });
        let asked_to_wait = asked.flags & sys::FI_DELIVERY_COMPLETE != 0;
        let early = match of.completes {
            Completes::Delivered => false,
            Completes::Asked => !asked_to_wait,
            Completes::Early => true,
        };
        let mut operation = Operation {
            kind: asked.kind,
            peer,
            local: Local::At(asked.here.at),
            bytes: asked.here.bytes,
            at: asked.there.at,
            key: asked.there.key,
            context: asked.context.expose_provenance(),
            tells: asked.tells,
            early: early && !waits,
            fenced: asked.flags & sys::FI_FENCE != 0,
            delay: self.delay(),
            pieces: cut(asked.there.at, asked.here.bytes, &mut self.random),
        };
        if asked.flags & sys::FI_INJECT != 0 {
            operation.own();
        }
        if of.mode & sys::FI_CONTEXT2 != 0 && asked.tells {
            claim_context(operation.context);
        }
        self.end(end).wire.push(operation);
        self.announce(of, peer);
    }

    /// Some operations are passed over for a while.
    fn delay(&mut self) -> usize {
        match self.random.of_sixteen(6) {
            true => self.random.below(24),
            false => 0,
        }
    }
}
