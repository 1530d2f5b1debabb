//! What each provider promises and how it behaves.

use core::ffi::{c_int, c_uint};

use libfabric_sys as sys;

/// The names of the providers, as `fi_getinfo` finds them.
///
/// Named after hardware: `gni` orders nothing and fences; `efa` orders nothing, keeps
/// `FI_DELIVERY_COMPLETE` and lets the target apply atomics; `opx` orders nothing, completes when
/// it pleases and has no atomics though it claims them; `cxi` orders writes after writes, binds
/// memory to endpoints and has a descriptor that remote writes do not wake; `verbs;ofi_rxm` orders
/// writes, wants local memory registered and wakes. Named after providers that were seen to go
/// wrong so: `psm3` refuses most posts, `shm` raises hundreds of errors with wrong signs for a peer
/// that vanished, `tcp` says nothing about it and takes no more posts some time later.
pub const PROVIDERS: [&str; 8] = [
    "gni",
    "efa",
    "opx",
    "cxi",
    "verbs;ofi_rxm",
    "psm3",
    "shm",
    "tcp",
];

/// A provider.
#[derive(Debug)]
pub(crate) struct Personality {
    pub(crate) name: &'static str,
    pub(crate) kind: sys::fi_ep_type,
    pub(crate) address_format: c_uint,
    pub(crate) caps: u64,
    /// `FI_CONTEXT2` if contexts are the provider's while an operation is under way.
    pub(crate) mode: u64,
    /// What it insists on of registered memory.
    pub(crate) memory: c_int,
    pub(crate) key_bytes: usize,
    pub(crate) inject_bytes: usize,
    /// Orders of operations to one peer.
    pub(crate) order: u64,
    /// What it says about the longest ordered write.
    pub(crate) order_bytes: usize,
    pub(crate) most_bytes: usize,
    /// Operations of one endpoint that are under way at most.
    pub(crate) queue: usize,
    /// Of sixteen posts, how many are refused for no reason.
    pub(crate) refuses: u64,
    pub(crate) atomics: Atomics,
    pub(crate) completes: Completes,
    pub(crate) moves: Moves,
    pub(crate) wakes: Wakes,
    pub(crate) dead: Dead,
}

/// Who applies atomic operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Atomics {
    /// The network.
    Native,
    /// The target, while it reads its queue.
    Served,
    /// Nobody, though they are claimed.
    Claimed,
}

/// What a completion of a write means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completes {
    /// That it is at the target.
    Delivered,
    /// The same if it was asked for, else that the buffer may be reused.
    Asked,
    /// That the buffer may be reused, whatever was asked for.
    Early,
}

/// Who moves operations on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moves {
    /// The network.
    Itself,
    /// Whoever reads its queue, at either end.
    Reading,
}

/// What makes a queue's descriptor readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wakes {
    /// There is none.
    Never,
    /// Own completions.
    Completions,
    /// Those and what peers post.
    Everything,
}

/// What becomes of operations to an endpoint that was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dead {
    /// An error for each.
    Error,
    /// Hundreds of errors for each, their signs swapped.
    Flood,
    /// They stay for ever.
    Silence,
}

const RMA: u64 = sys::FI_RMA | sys::FI_ATOMIC;
const BY_ADDRESS: c_int = sys::FI_MR_VIRT_ADDR | sys::FI_MR_ALLOCATED | sys::FI_MR_PROV_KEY;

/// What most have in common: hardware that orders nothing.
const BASE: Personality = Personality {
    name: "",
    kind: sys::FI_EP_RDM,
    address_format: sys::FI_ADDR_STR,
    caps: RMA,
    mode: 0,
    memory: BY_ADDRESS,
    key_bytes: 8,
    inject_bytes: 64,
    order: 0,
    order_bytes: 0,
    most_bytes: 1 << 20,
    queue: 48,
    refuses: 0,
    atomics: Atomics::Native,
    completes: Completes::Delivered,
    moves: Moves::Reading,
    wakes: Wakes::Never,
    dead: Dead::Error,
};

/// All of them, and the core that `verbs;ofi_rxm` stands on, of which only the offer exists.
pub(crate) static ALL: [Personality; 9] = [
    Personality {
        name: PROVIDERS[0],
        address_format: sys::FI_ADDR_GNI,
        caps: RMA | sys::FI_FENCE,
        order: sys::FI_ORDER_SAS,
        moves: Moves::Itself,
        ..BASE
    },
    Personality {
        name: PROVIDERS[1],
        address_format: sys::FI_ADDR_EFA,
        mode: sys::FI_CONTEXT2,
        order: sys::FI_ORDER_SAS,
        most_bytes: 16 << 10,
        inject_bytes: 32,
        atomics: Atomics::Served,
        completes: Completes::Asked,
        ..BASE
    },
    Personality {
        name: PROVIDERS[2],
        address_format: sys::FI_ADDR_OPX,
        mode: sys::FI_CONTEXT2,
        memory: 0,
        inject_bytes: 16,
        order: sys::FI_ORDER_ATOMIC_RAR | sys::FI_ORDER_ATOMIC_WAW,
        atomics: Atomics::Claimed,
        completes: Completes::Early,
        ..BASE
    },
    Personality {
        name: PROVIDERS[3],
        address_format: sys::FI_ADDR_CXI,
        memory: sys::FI_MR_ENDPOINT | sys::FI_MR_ALLOCATED,
        key_bytes: 4,
        inject_bytes: 192,
        order: sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_RMA_RAR | sys::FI_ORDER_ATOMIC_WAW,
        order_bytes: usize::MAX,
        most_bytes: 64 << 10,
        completes: Completes::Asked,
        moves: Moves::Itself,
        wakes: Wakes::Completions,
        ..BASE
    },
    Personality {
        name: PROVIDERS[4],
        address_format: sys::FI_SOCKADDR_IN,
        memory: BY_ADDRESS | sys::FI_MR_LOCAL,
        order: sys::FI_ORDER_RMA_WAW
            | sys::FI_ORDER_RMA_RAW
            | sys::FI_ORDER_RMA_RAR
            | sys::FI_ORDER_ATOMIC_WAW,
        atomics: Atomics::Served,
        completes: Completes::Early,
        wakes: Wakes::Everything,
        ..BASE
    },
    Personality {
        name: PROVIDERS[5],
        caps: RMA | sys::FI_FENCE,
        queue: 8,
        refuses: 14,
        ..BASE
    },
    Personality {
        name: PROVIDERS[6],
        memory: sys::FI_MR_VIRT_ADDR,
        order: sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_WAW,
        order_bytes: usize::MAX,
        atomics: Atomics::Served,
        dead: Dead::Flood,
        ..BASE
    },
    Personality {
        name: PROVIDERS[7],
        address_format: sys::FI_SOCKADDR_IN,
        memory: 0,
        order: sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_RMA_RAW,
        order_bytes: usize::MAX,
        atomics: Atomics::Served,
        completes: Completes::Early,
        wakes: Wakes::Everything,
        dead: Dead::Silence,
        ..BASE
    },
    Personality {
        name: "verbs",
        kind: sys::FI_EP_MSG,
        address_format: sys::FI_SOCKADDR_IN,
        caps: sys::FI_RMA,
        memory: BY_ADDRESS | sys::FI_MR_LOCAL,
        order: sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_RMA_RAW | sys::FI_ORDER_RMA_RAR,
        order_bytes: 1 << 30,
        ..BASE
    },
];

impl Personality {
    /// The provider of this name.
    pub(crate) fn named(name: &[u8]) -> Option<&'static Self> {
        ALL.iter().find(|one| one.name.as_bytes() == name)
    }

    pub(crate) fn has_fences(&self) -> bool {
        self.caps & sys::FI_FENCE != 0
    }

    pub(crate) fn needs(&self, bit: c_int) -> bool {
        self.memory & bit != 0
    }

    pub(crate) fn orders(&self, any_of: u64) -> bool {
        self.order & any_of != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_provider() {
        for (name, one) in PROVIDERS.iter().zip(&ALL) {
            assert_eq!(Personality::named(name.as_bytes()).unwrap().name, one.name);
            assert_eq!(one.kind, sys::FI_EP_RDM);
        }
        assert!(Personality::named(b"tcp;ofi_rxm").is_none());
    }
}
