//! Defines the users as whom programs are run. Root alone would not be enough, because root may do what other users
//! may not.

use crate::built::deep;
use crate::skip::skipped;

/// A user as whom a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The user that runs the tests.
    Current,
    /// `nobody`, without groups and without a way to gain privileges.
    Unprivileged,
}

impl User {
    /// Returns the words that start a command as this user.
    #[must_use]
    pub fn prefix(self) -> &'static [&'static str] {
        match self {
            User::Current => &[],
            User::Unprivileged => {
                &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
            }
        }
    }
}

/// Returns whether the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Returns the users as whom a program is tested: root and an ordinary user if the tests run as root, otherwise the
/// current user.
#[must_use]
pub fn users() -> Vec<User> {
    if is_root() {
        return vec![User::Current, User::Unprivileged];
    }
    skipped("only root can become an unprivileged user; the current one is one");
    vec![User::Current]
}

/// Returns the fault engines of far memory with which a user's programs are tested. Those that every user may use are
/// tried as the ordinary user; root tries them, too, in deep tests only.
#[must_use]
pub fn fault_engines(user: User) -> &'static [&'static str] {
    match user {
        User::Current if is_root() && !deep() => &["auto"],
        User::Current => &["auto", "user-mode", "thread"],
        User::Unprivileged => &["auto", "thread"],
    }
}
