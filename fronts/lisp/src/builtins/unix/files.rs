//! Implements the calls on files, folders and descriptors.

use super::descriptors::hold;
use super::outcome::{done, int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::builtins::stream::{path_of, with_file};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;
use rustix::fs::{self, Access, Gid, Mode, Uid};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:DUP", 1, 1, |cx, args| {
        match with_file(cx, args[0], |descriptor| descriptor.try_clone_to_owned())? {
            Some(copied) => Ok(hold(cx, copied)),
            None => Ok(refused(&rustix::io::Errno::BADF.into())),
        }
    }),
    builtin("LARGESSE:DESCRIPTOR", 1, 1, |cx, args| {
        let number = with_file(cx, args[0], |descriptor| Ok(descriptor.as_raw_fd()))?;
        Ok(Value::fixnum(i64::from(number.unwrap_or(-1))))
    }),
    builtin("UNIX:STAT", 1, 1, stat),
    builtin("UNIX:MKDIR", 1, 2, |cx, args| {
        let mode = mode(cx, args, 1, 0o777)?;
        on_path(cx, args, |path| fs::mkdir(path, mode))
    }),
    builtin("UNIX:RMDIR", 1, 1, |cx, args| on_path(cx, args, |path| fs::rmdir(path))),
    builtin("UNIX:UNLINK", 1, 1, |cx, args| on_path(cx, args, |path| fs::unlink(path))),
    builtin("UNIX:CHMOD", 2, 2, |cx, args| {
        let mode = mode(cx, args, 1, 0)?;
        on_path(cx, args, |path| fs::chmod(path, mode))
    }),
    builtin("UNIX:CHOWN", 2, 3, |cx, args| {
        // As in C, -1 changes nothing.
        let (owner, group) = (int_or(cx, args, 1, -1)?, int_or(cx, args, 2, -1)?);
        let owner = (owner != -1).then(|| Uid::from_raw(owner.cast_unsigned()));
        let group = (group != -1).then(|| Gid::from_raw(group.cast_unsigned()));
        on_path(cx, args, |path| fs::chown(path, owner, group))
    }),
    builtin("UNIX:LINK", 2, 2, |cx, args| {
        let new = path_of(cx, args[1])?;
        on_path(cx, args, |old| fs::link(old, new.as_str()))
    }),
    builtin("UNIX:SYMLINK", 2, 2, |cx, args| {
        let new = path_of(cx, args[1])?;
        on_path(cx, args, |old| fs::symlink(old, new.as_str()))
    }),
    builtin("UNIX:RENAME", 2, 2, |cx, args| {
        let new = path_of(cx, args[1])?;
        on_path(cx, args, |old| fs::rename(old, new.as_str()))
    }),
    builtin("UNIX:ACCESS", 1, 2, |cx, args| {
        let bits = int_or(cx, args, 1, 0)?.cast_unsigned();
        let mode = Access::from_bits_truncate(bits);
        on_path(cx, args, |path| fs::access(path, mode))
    }),
    builtin("UNIX:MKNOD", 2, 2, |cx, args| {
        let bits = int_or(cx, args, 1, 0)?.cast_unsigned();
        let (kind, mode) = (fs::FileType::from_raw_mode(bits), Mode::from_raw_mode(bits & 0o7777));
        on_path(cx, args, |path| fs::mknodat(fs::CWD, path, kind, mode, 0))
    }),
    builtin("UNIX:CHDIR", 1, 1, |cx, args| on_path(cx, args, |path| rustix::process::chdir(path))),
    builtin("UNIX:GETWD", 0, 0, |cx, _| {
        let found = std::env::current_dir();
        let path = cx.io(found, "the working directory")?;
        cx.string(&path.to_string_lossy())
    }),
    builtin("UNIX:ISATTY", 1, 1, |cx, args| {
        let is = with_file(cx, args[0], |file| Ok(rustix::termios::isatty(file)))?;
        Ok(cx.truth(is.unwrap_or(false)))
    }),
    builtin("LARGESSE:FOLDER-ENTRIES", 1, 1, entries),
];

/// Applies a call to the path that is the first argument.
fn on_path<E: Into<io::Error>>(
    cx: &mut Context,
    args: Args<'_>,
    call: impl FnOnce(&str) -> Result<(), E>,
) -> Answer {
    let path = path_of(cx, args[0])?;
    let result = cx.blocked(|| call(&path));
    done(cx, result)
}

fn mode(cx: &mut Context, args: Args<'_>, index: usize, otherwise: i32) -> Result<Mode, Exit> {
    Ok(Mode::from_raw_mode(int_or(cx, args, index, otherwise)?.cast_unsigned()))
}

/// Returns `(mode inode device special-device links user group size accessed modified changed)`, or the negative
/// number of an error.
fn stat(cx: &mut Context, args: Args<'_>) -> Answer {
    let path = path_of(cx, args[0])?;
    let found = match cx.blocked(|| std::fs::metadata(&path)) {
        Ok(found) => found,
        Err(cause) => return Ok(refused(&cause)),
    };
    let numbers = [
        i64::from(found.mode()),
        found.ino().cast_signed(),
        found.dev().cast_signed(),
        found.rdev().cast_signed(),
        found.nlink().cast_signed(),
        i64::from(found.uid()),
        i64::from(found.gid()),
        found.size().cast_signed(),
        found.atime(),
        found.mtime(),
        found.ctime(),
    ];
    cx.list(&numbers.map(Value::fixnum))
}

/// Returns the names in a folder, with `.` and `..`, or nil if it cannot be read.
fn entries(cx: &mut Context, args: Args<'_>) -> Answer {
    let path = path_of(cx, args[0])?;
    let found = cx.blocked(|| -> io::Result<Vec<String>> {
        let mut names = vec![".".to_owned(), "..".to_owned()];
        for entry in std::fs::read_dir(if path.is_empty() { "." } else { &path })? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    });
    let mark = cx.mark();
    for name in found.unwrap_or_default() {
        let text = cx.string(&name)?;
        cx.push(text)?;
    }
    cx.stacked(mark)
}
