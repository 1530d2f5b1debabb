//! What can be chosen about a shared memory fabric.

use transport_core::Nanos;

use super::OpenError;

/// What can be chosen about a shared memory fabric. The choice of the node's first rank counts for
/// all ranks of the node, so that they agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShmOptions {
    /// Size of each rank's heap in bytes; rounded up to whole pages.
    pub heap_bytes: u64,
    /// Counters of each rank in each of the two domains.
    pub counters: u32,
    /// How long opening waits for the other ranks once all have come to the rendezvous.
    pub patience: Nanos,
}

impl Default for ShmOptions {
    /// 16 MiB of heap, 512 counters, 10 seconds.
    fn default() -> Self {
        Self {
            heap_bytes: 16 << 20,
            counters: 512,
            patience: Nanos::seconds(10),
        }
    }
}

impl ShmOptions {
    /// The defaults, changed by the environment: `TUTTI_HEAP_MIB` is the size of each rank's heap
    /// in MiB, `TUTTI_COUNTERS` the number of its counters in each domain.
    ///
    /// # Errors
    /// [`OpenError::BadOption`] if a variable is set to something else than a whole number from 1.
    pub fn from_environment() -> Result<Self, OpenError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, OpenError> {
        let mut options = Self::default();
        if let Some(mib) = number(HEAP_KNOB, &variable, u64::MAX >> 20)? {
            options.heap_bytes = mib << 20;
        }
        if let Some(counters) = number("TUTTI_COUNTERS", &variable, u64::from(u32::MAX))? {
            options.counters = u32::try_from(counters).expect("bounded by u32::MAX");
        }
        Ok(options)
    }
}

/// The variable that sets the size of heaps.
const HEAP_KNOB: &str = "TUTTI_HEAP_MIB";

fn number(
    name: &'static str,
    variable: &impl Fn(&str) -> Option<String>,
    most: u64,
) -> Result<Option<u64>, OpenError> {
    let Some(text) = variable(name) else {
        return Ok(None);
    };
    match text.trim().parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
        _ => Err(OpenError::BadOption { name, value: text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_sets_heap_and_counters() {
        let options = ShmOptions::from_variables(|name| match name {
            "TUTTI_HEAP_MIB" => Some("3".into()),
            "TUTTI_COUNTERS" => Some(" 64 ".into()),
            _ => None,
        });

        let expected = ShmOptions {
            heap_bytes: 3 << 20,
            counters: 64,
            ..ShmOptions::default()
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn a_bad_number_is_an_error_that_names_the_variable() {
        for value in ["", "0", "-1", "16M", "99999999999999999999"] {
            let error = ShmOptions::from_variables(|_| Some(value.into())).unwrap_err();

            assert_eq!(
                error.to_string(),
                format!("TUTTI_HEAP_MIB is {value:?}, not a whole number from 1 on")
            );
        }
    }
}
