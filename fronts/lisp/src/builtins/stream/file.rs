//! Opens, flushes and closes file streams.

use super::slots::{COUNT, DIRECTION, FILE, NAME, STDOUT, has_class};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use crate::world::{Native, OpenFile, class};
use std::fs::OpenOptions;
use std::io::{BufReader, BufWriter, Write as _};
use std::sync::{Arc, Mutex};

pub(super) fn file_stream(cx: &mut Context, file: Value, direction: Value) -> Answer {
    let class = cx.world.class_object(class::FILE_STREAM);
    let stream = cx.new_instance(class)?;
    stream.set_slot(DIRECTION, direction);
    stream.set_slot(FILE, file);
    stream.set_slot(COUNT, Value::fixnum(i64::from(b'\n')));
    Ok(stream)
}

pub(super) fn flush(cx: &mut Context, stream: Value) -> Answer {
    let stream = cx.output(stream)?;
    if has_class(stream, class::FILE_STREAM) {
        let number = stream.slot(FILE);
        let file = cx.world.tables.native(number);
        let done = cx.blocked(|| match (number.as_fixnum(), file) {
            (Some(STDOUT), _) => std::io::stdout().flush(),
            (_, Some(Native::File(file))) => match &mut crate::threads::lock(&file).writer {
                Some(writer) => writer.flush(),
                None => Ok(()),
            },
            _ => Ok(()),
        });
        cx.io(done, "stream")?;
    }
    Ok(Value::NIL)
}

/// Returns the path of a string, a symbol, or an object whose class answers `:namestring`.
pub(crate) fn path_of(cx: &mut Context, value: Value) -> Result<String, Exit> {
    let value = if value.is(ObjectKind::Instance) {
        let selector = cx.keyword("NAMESTRING")?;
        cx.send(value, selector, &[])?
    } else {
        value
    };
    let text = crate::builtins::string::bytes(cx, value)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

pub(super) fn open(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let known = [names.direction, names.if_exists, names.if_does_not_exist];
    let [direction, exists, missing] = cx.keywords(args.from(1), known)?.map(Value::given_or_nil);
    let path = path_of(cx, args[0])?;
    let output = direction == names.output;
    let mut options = OpenOptions::new();
    if output || direction == names.io {
        options.write(true);
        match exists {
            it if it == names.append_key => options.append(true).create(true),
            it if it == names.error_key => options.create_new(true),
            it if it == names.overwrite => options.create(true),
            _ if output => options.create(true).truncate(true),
            _ => options.create(true),
        };
    }
    if !output {
        options.read(true);
    }
    let opened = cx.blocked(|| options.open(&path));
    let file = match opened {
        Ok(file) => file,
        // A missing file returns nil if `:if-does-not-exist` says so; otherwise it is an error.
        Err(cause)
            if cause.kind() == std::io::ErrorKind::NotFound
                && !missing.is_nil()
                && missing != names.error_key =>
        {
            return Ok(Value::NIL);
        }
        Err(cause) => return cx.error_about(ErrorClass::Io, format!("{path}: {cause}"), args[0]),
    };
    let mut held = OpenFile::default();
    if direction == names.io {
        let copy = file.try_clone();
        held.reader = Some(BufReader::new(cx.io(copy, &path)?));
    }
    if output || direction == names.io {
        held.writer = Some(BufWriter::new(file));
    } else {
        held.reader = Some(BufReader::new(file));
    }
    let stream = file_stream(cx, Value::NIL, if direction.is_nil() { names.input } else { direction })?;
    stream.set_slot(NAME, args[0]);
    stream.set_slot(FILE, cx.world.tables.hold(Native::File(Arc::new(Mutex::new(held)))));
    cx.finalize_later(stream);
    Ok(stream)
}

pub(super) fn close(cx: &mut Context, stream: Value) -> Result<(), Exit> {
    if has_class(stream, class::STRING_STREAM) {
        return Ok(());
    }
    if !has_class(stream, class::FILE_STREAM) {
        return cx.type_error("stream", stream);
    }
    if let Some(Native::File(file)) = cx.world.tables.drop_native(stream.slot(FILE)) {
        stream.set_slot(FILE, Value::NIL);
        let done = cx.blocked(|| match &mut crate::threads::lock(&file).writer {
            Some(writer) => writer.flush(),
            None => Ok(()),
        });
        cx.io(done, "stream")?;
    }
    Ok(())
}

impl Context {
    /// Registers an object that refers to a native one for finalization.
    pub(crate) fn finalize_later(&mut self, object: Value) {
        if let Some(object) = std::ptr::NonNull::new(std::ptr::with_exposed_provenance_mut(object.address()))
        {
            self.mutator.finalize_later(object);
        }
    }
}
