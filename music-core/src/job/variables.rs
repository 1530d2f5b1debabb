//! The settings that an application sees, and their types.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::diagnostic::Location;
use crate::file::shown;

/// Settings of one section, with those above the first section behind them.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    pub(super) file: Arc<str>,
    pub(super) own: Arc<Table>,
    pub(super) shared: Arc<Table>,
}

/// Settings by key.
pub(super) type Table = BTreeMap<String, Value>;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) location: Location,
}

impl Variables {
    /// The value of `key` as it is written, `None` if neither the section nor the top of the file
    /// sets it.
    pub fn string(&self, key: &str) -> Option<&str> {
        self.value(key).map(|value| value.text.as_str())
    }

    /// The value of `key` as a whole number.
    ///
    /// # Errors
    /// [`ConfigError`] if it is set to anything else.
    pub fn int(&self, key: &str) -> Result<Option<i64>, ConfigError> {
        self.typed(key, "a whole number", |text| text.parse().ok())
    }

    /// The value of `key` as a number.
    ///
    /// # Errors
    /// [`ConfigError`] if it is set to anything else.
    pub fn double(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        self.typed(key, "a number", |text| text.parse().ok())
    }

    /// The value of `key` as `true` or `false`.
    ///
    /// # Errors
    /// [`ConfigError`] if it is set to anything else.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        self.typed(key, "true or false", |text| text.parse().ok())
    }

    /// Where the value of `key` stands.
    pub fn location(&self, key: &str) -> Option<Location> {
        self.value(key).map(|value| value.location)
    }

    /// Every key and value: the section's own first, then what it inherits and does not set
    /// itself, each by key ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let inherited = self
            .shared
            .iter()
            .filter(|(key, _)| !self.own.contains_key(*key));
        self.own
            .iter()
            .chain(inherited)
            .map(|(key, value)| (key.as_str(), value.text.as_str()))
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.own.get(key).or_else(|| self.shared.get(key))
    }

    /// Reads the value of `key`, which must be what `expected` says.
    pub(super) fn typed<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        read(value.text.trim())
            .map(Some)
            .ok_or_else(|| ConfigError {
                file: self.file.to_string(),
                location: value.location,
                key: key.to_owned(),
                value: value.text.clone(),
                expected,
            })
    }
}

/// A setting is not of the type that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// Where its value stands.
    pub location: Location,
    /// Which setting.
    pub key: String,
    /// What the file says.
    pub value: String,
    /// What was asked for.
    pub expected: &'static str,
}

impl ConfigError {
    /// What is wrong, without the place.
    pub(super) fn message(&self) -> String {
        format!(
            "{} is \"{}\", which is not {}",
            self.key,
            shown(&self.value),
            self.expected
        )
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.location, self.message())
    }
}

impl std::error::Error for ConfigError {}
