//! How the signal of a put stays behind its bytes.
//!
//! Providers promise very different things about the order of two writes, and accept flags that
//! they do not keep. One mode serves the whole job: the weakest that any rank found for itself.

/// What keeps a signal behind the bytes that it announces. Later ones promise less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SignalMode {
    /// The provider promises that a write lands after the writes before it.
    WriteOrder,
    /// The signal is posted with a fence, which waits for everything before it.
    Fence,
    /// The signal is posted when the bytes' completion says that they are at the target.
    Completion,
    /// Nothing is promised: bytes and signal travel in sealed lines that the target opens.
    Mailbox,
}

/// What a provider promises about the order of operations to one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Promises {
    /// Most bytes of a write that is ordered after another write; 0 if none is.
    pub(super) write_after_write: usize,
    /// Atomic operations are ordered after writes too.
    pub(super) atomic_after_write: bool,
    /// A read is ordered after writes.
    pub(super) read_after_write: bool,
    /// It has fences.
    pub(super) fence: bool,
}

/// What stands between the bytes of a put and its signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Behind {
    /// Nothing: posted at once, the provider keeps the order.
    Order,
    /// Posted at once, with a fence.
    Fence,
    /// Posted once the last bytes could be read back, which the provider orders after the writes.
    ReadBack,
    /// Posted once all bytes are completed, which was asked to mean delivered.
    Completion,
}

impl SignalMode {
    /// The mode for what a provider promises. A completion is never taken at its word by default:
    /// several providers accept to complete on delivery and complete when they please.
    pub(super) fn of(promises: &Promises) -> Self {
        if promises.write_after_write >= SMALLEST_ORDERED {
            Self::WriteOrder
        } else if promises.fence {
            Self::Fence
        } else {
            Self::Mailbox
        }
    }

    /// What is to stand between bytes and a signal that is a write (or, with `atomic`, an atomic
    /// operation).
    pub(super) fn behind(self, promises: &Promises, atomic: bool) -> Behind {
        match self {
            Self::WriteOrder if !atomic || promises.atomic_after_write => Behind::Order,
            Self::WriteOrder if promises.fence => Behind::Fence,
            Self::WriteOrder if promises.read_after_write => Behind::ReadBack,
            Self::Fence => Behind::Fence,
            Self::WriteOrder | Self::Completion | Self::Mailbox => Behind::Completion,
        }
    }

    /// The longest single write in this mode, so that the order of longer ones is kept too.
    pub(super) fn chunk_bytes(self, promises: &Promises, most: usize) -> usize {
        match self {
            // Nothing is promised where a test forces this mode.
            Self::WriteOrder if promises.write_after_write > 0 => {
                most.min(promises.write_after_write)
            }
            _ => most,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub(super) fn number(self) -> u8 {
        self as u8
    }

    /// As in `TUTTI_OFI_TEST` and in the list of providers.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteOrder => "order",
            Self::Fence => "fence",
            Self::Completion => "completion",
            Self::Mailbox => "mailbox",
        }
    }

    const ALL: [Self; 4] = [
        Self::WriteOrder,
        Self::Fence,
        Self::Completion,
        Self::Mailbox,
    ];
}

/// A provider that orders only shorter writes than this is treated as one that orders none.
const SMALLEST_ORDERED: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Promises = Promises {
        write_after_write: 0,
        atomic_after_write: false,
        read_after_write: false,
        fence: false,
    };

    #[test]
    fn the_mode_is_the_strongest_promise_and_never_a_completion_by_itself() {
        let ordered = Promises {
            write_after_write: usize::MAX,
            ..NOTHING
        };
        let fenced = Promises {
            fence: true,
            ..NOTHING
        };
        let barely = Promises {
            write_after_write: 64,
            read_after_write: true,
            ..NOTHING
        };

        assert_eq!(SignalMode::of(&ordered), SignalMode::WriteOrder);
        assert_eq!(SignalMode::of(&fenced), SignalMode::Fence);
        assert_eq!(SignalMode::of(&barely), SignalMode::Mailbox);
        assert_eq!(SignalMode::of(&NOTHING), SignalMode::Mailbox);
    }

    #[test]
    fn an_atomic_behind_bytes_relies_only_on_what_is_promised_of_atomics() {
        let of_writes_only = Promises {
            write_after_write: usize::MAX,
            read_after_write: true,
            ..NOTHING
        };
        let of_all = Promises {
            atomic_after_write: true,
            ..of_writes_only
        };
        let order = SignalMode::WriteOrder;

        assert_eq!(order.behind(&of_writes_only, false), Behind::Order);
        assert_eq!(order.behind(&of_writes_only, true), Behind::ReadBack);
        assert_eq!(order.behind(&of_all, true), Behind::Order);
        assert_eq!(
            SignalMode::Completion.behind(&NOTHING, false),
            Behind::Completion
        );
    }

    #[test]
    fn the_weakest_of_two_modes_is_the_greater() {
        assert!(SignalMode::Mailbox > SignalMode::Completion);
        assert!(SignalMode::Completion > SignalMode::Fence);
        assert!(SignalMode::Fence > SignalMode::WriteOrder);
        for mode in SignalMode::ALL {
            assert_eq!(SignalMode::from_name(mode.name()), Some(mode));
            assert_eq!(SignalMode::from_number(mode.number()), Some(mode));
        }
    }
}
