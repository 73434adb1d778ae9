//! The value of one setting, from an option or from an inherited environment variable.

use crate::error::FarError;
use crate::stores;
use largesse_settings::Misread;
use std::ffi::OsString;

/// An option that was given on the command line, and the environment variable with the same meaning.
#[derive(Clone, Debug)]
pub struct Given {
    /// Name of the option, such as `--local`.
    pub option: &'static str,
    /// Name of the variable, such as `LARGESSE_LOCAL`.
    pub variable: &'static str,
    /// The value that the user gave for the option.
    pub value: OsString,
}

/// The value of a setting, and the name under which the user gave it.
#[derive(Debug)]
pub struct Setting {
    /// Name of the option, such as `--local`, or of the variable that has the value.
    pub origin: &'static str,
    /// The value as the user wrote it.
    pub value: OsString,
}

impl Setting {
    /// Returns the option for `variable` if it was given, otherwise the variable if it is set.
    pub fn of(
        variable: &'static str,
        given: &[Given],
        get: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Setting> {
        let option = given.iter().find(|one| one.variable == variable);
        option
            .map(|one| Setting { origin: one.option, value: one.value.clone() })
            .or_else(|| get(variable).map(|value| Setting { origin: variable, value }))
    }

    /// Returns the error that the value is not accepted; `accepts` lists the values that are.
    #[must_use]
    pub fn refused(&self, accepts: impl Into<String>) -> FarError {
        let value = stores::without_secrets(&self.value.to_string_lossy());
        FarError::BadValue { origin: self.origin, value, accepts: accepts.into() }
    }

    /// Returns the error that this setting cannot be combined with the option or variable `other`, for the reason `why`.
    #[must_use]
    pub fn excluded_by(&self, other: &'static str, why: &'static str) -> FarError {
        FarError::Excluded {
            origin: self.origin,
            value: self.value.to_string_lossy().into_owned(),
            other,
            why,
        }
    }

    /// Returns the meaning of the value, which must be one of `words`.
    ///
    /// # Errors
    /// Returns [`FarError::BadValue`], which lists the words, if the value is another one.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, FarError> {
        let found = words.iter().find(|(word, _)| self.value == *word);
        let accepts = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, value)| *value).ok_or_else(|| self.refused(accepts()))
    }

    /// Returns the value as a whole number in decimal digits; `None` if it is not one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let text = self.value.to_str()?;
        // `parse` would take a plus sign.
        if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
    }

    /// Returns the value as a size, read by one of the functions of `largesse_settings`.
    ///
    /// # Errors
    /// Returns [`FarError::BadSize`] with the reason that `read` gives, if the value is not a size.
    pub fn size<T>(&self, read: fn(&str) -> Result<T, Misread>) -> Result<T, FarError> {
        let value = self.value.to_string_lossy();
        read(&value).map_err(|why| FarError::BadSize { origin: self.origin, value: value.into_owned(), why })
    }
}
