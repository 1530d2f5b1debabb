//! Names of libfabric's providers, and which one is taken when nobody chose.

use std::fmt;

use super::OfiError;

/// A provider as the library names it: its core, then the layer above it if it has one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Provider {
    name: String,
}

impl Provider {
    /// From what a user writes: layers are separated by `;` or `:`, a core that cannot do without
    /// a layer may stand alone (`tcp` is `tcp;ofi_rxm`; the bare one is `tcp-rdm`). `shm-rdm` is
    /// the library's shared memory, where `shm` alone may mean our own.
    ///
    /// # Errors
    /// [`OfiError::UnknownProvider`] if no provider is called so.
    pub fn from_name(text: &str) -> Result<Self, OfiError> {
        let name = text.trim().to_ascii_lowercase().replace(':', ";");
        let name = ALIASES
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name.as_str(), |(_, meant)| meant);
        let mut layers = name.split(';');
        let core = layers.next().unwrap_or_default();
        let known = CORES.contains(&core) && layers.all(|layer| LAYERS.contains(&layer));
        if known {
            Ok(Self { name: name.into() })
        } else {
            Err(OfiError::UnknownProvider { name: text.into() })
        }
    }

    /// As the library reports it.
    pub(super) fn reported(name: &str) -> Self {
        Self { name: name.into() }
    }

    /// The library's name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// What is to be said about a name that means something else than it seems to.
    pub fn note(text: &str) -> Option<&'static str> {
        (text.trim().eq_ignore_ascii_case("sockm"))
            .then_some("sockm is no provider of libfabric: sockets is taken")
    }

    /// Those that may be taken when nobody chose, the best first.
    pub(crate) fn by_preference() -> impl Iterator<Item = Self> {
        PREFERRED.iter().map(|name| Self::reported(name))
    }

    /// Its place in the order of preference; `None` if it is only taken when asked for.
    pub fn preference(&self) -> Option<usize> {
        PREFERRED.iter().position(|name| *name == self.name)
    }

    /// Whether the target's processor, inside the library, applies the provider's atomics and
    /// writes: then they become visible only while the target calls the library.
    pub fn is_software(&self) -> bool {
        let mut layers = self.name.split(';');
        let core = layers.next().unwrap_or_default();
        SOFTWARE.contains(&core) || layers.any(|layer| LAYERS.contains(&layer))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The one to take of several, with the reason.
pub fn prefer<'a>(
    usable: impl IntoIterator<Item = &'a Provider>,
) -> Option<(&'a Provider, &'static str)> {
    let ranked = usable
        .into_iter()
        .filter_map(|provider| Some((provider.preference()?, provider)));
    let (place, provider) = ranked.min_by_key(|(place, _)| *place)?;
    let reason = if place < HARDWARE {
        "the first of the usable hardware providers in the order of preference"
    } else {
        "no hardware provider is usable here"
    };
    Some((provider, reason))
}

/// For error lines.
pub(super) const KNOWN: &str = "tcp, tcp-rdm, sockets, verbs, cxi, gni, efa, opx, psm2, psm3, \
                                shm-rdm, udp, net (layers after ; or :)";

/// The order of preference; the first `HARDWARE` of them need hardware.
const PREFERRED: [&str; 8] = [
    "cxi",
    "gni",
    "verbs;ofi_rxm",
    "efa",
    "psm3",
    "opx",
    "psm2",
    "tcp;ofi_rxm",
];
const HARDWARE: usize = 7;

const ALIASES: [(&str, &str); 6] = [
    ("tcp", "tcp;ofi_rxm"),
    ("tcp-rdm", "tcp"),
    ("shm-rdm", "shm"),
    ("verbs", "verbs;ofi_rxm"),
    ("udp", "udp;ofi_rxd"),
    ("sockm", "sockets"),
];

const CORES: [&str; 15] = [
    "tcp", "sockets", "verbs", "cxi", "gni", "efa", "opx", "psm", "psm2", "psm3", "shm", "udp",
    "net", "ucx", "usnic",
];
/// Cores without hardware that could apply anything.
const SOFTWARE: [&str; 7] = ["tcp", "sockets", "udp", "net", "shm", "psm2", "psm3"];
const LAYERS: [&str; 4] = ["ofi_rxm", "ofi_rxd", "ofi_mrail", "ofi_lnx"];

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> String {
        Provider::from_name(text).unwrap().to_string()
    }

    #[test]
    fn names_mean_the_providers_that_people_expect() {
        assert_eq!(meant("tcp"), "tcp;ofi_rxm");
        assert_eq!(meant("tcp-rdm"), "tcp");
        assert_eq!(meant("shm-rdm"), "shm");
        assert_eq!(meant(" TCP:ofi_rxm "), "tcp;ofi_rxm");
        assert_eq!(meant("tcp;ofi_rxm"), "tcp;ofi_rxm");
        assert_eq!(meant("udp"), "udp;ofi_rxd");
        assert_eq!(meant("sockm"), "sockets");
        assert!(Provider::note("sockm").is_some());
        assert_eq!(Provider::note("sockets"), None);
    }

    #[test]
    fn a_name_that_is_none_is_an_error_that_lists_those_that_are() {
        for text in ["", "ofi_rxm", "tpc", "tcp;rxm", ";", "gemini"] {
            let error = Provider::from_name(text).unwrap_err().to_string();
            assert!(
                error.contains("tcp-rdm") && error.contains("cxi"),
                "{error}"
            );
        }
    }

    #[test]
    fn layers_and_sockets_apply_atomics_in_software() {
        for name in ["tcp;ofi_rxm", "verbs;ofi_rxm", "sockets", "shm", "psm3"] {
            assert!(Provider::reported(name).is_software(), "{name}");
        }
        for name in ["cxi", "gni", "verbs"] {
            assert!(!Provider::reported(name).is_software(), "{name}");
        }
    }

    #[test]
    fn hardware_comes_first_and_some_are_never_taken_by_themselves() {
        let all = ["sockets", "tcp;ofi_rxm", "verbs;ofi_rxm", "shm"].map(Provider::reported);
        assert_eq!(prefer(&all).unwrap().0.as_str(), "verbs;ofi_rxm");
        assert_eq!(prefer(&all[..2]).unwrap().0.as_str(), "tcp;ofi_rxm");

        let never = [
            "shm",
            "udp;ofi_rxd",
            "sockets",
            "net",
            "tcp",
            "lnx",
            "sm2",
            "ucx",
        ];
        assert_eq!(prefer(&never.map(Provider::reported)), None);
    }
}
