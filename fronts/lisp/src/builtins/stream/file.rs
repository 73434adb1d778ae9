//! Opens, flushes and closes file streams.

use super::queue;
use super::slots::{
    DIRECTION, FILE, INPUT, NAME, OUTPUT, STDERR, STDIN, STDOUT, file_stream, has_class, is_two_way,
};
use crate::builtin::Args;
use crate::builtins::unix::find_descriptor;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use crate::world::{Native, OpenFile, class};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, Mutex};

pub(crate) fn flush(cx: &mut Context, stream: Value) -> Answer {
    let stream = cx.output(stream)?;
    if has_class(stream, class::FILE_STREAM) {
        let number = stream.slot(FILE);
        let file = cx.world.tables.native(number);
        if let Some(Native::Queue(held)) = &file {
            queue::flush(cx, held)?;
            return Ok(Value::NIL);
        }
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

/// Returns a two-way stream that reads from one file and writes to another.
pub(crate) fn pipe_stream(cx: &mut Context, reader: File, writer: File) -> Answer {
    let names = cx.world.names;
    let mark = cx.mark();
    let ends = [
        (OpenFile { reader: Some(BufReader::new(reader)), ..OpenFile::default() }, names.input),
        (OpenFile { writer: Some(BufWriter::new(writer)), ..OpenFile::default() }, names.output),
    ];
    for (held, direction) in ends {
        let stream = file_stream(cx, Value::NIL, direction)?;
        stream.set_slot(FILE, cx.world.tables.hold(Native::File(Arc::new(Mutex::new(held)))));
        cx.finalize_later(stream);
        cx.push(stream)?;
    }
    let class = cx.world.class_object(class::IO_STREAM);
    let both = cx.new_instance(class)?;
    both.set_slot(INPUT, cx.root(mark, 0));
    both.set_slot(OUTPUT, cx.root(mark, 1));
    cx.release(mark);
    Ok(both)
}

/// Returns the open file of a stream; of a two-way stream that of its input.
pub(crate) fn open_file(cx: &mut Context, stream: Value) -> Result<Arc<Mutex<OpenFile>>, Exit> {
    let end = if is_two_way(cx, stream) { stream.slot(INPUT) } else { stream };
    if has_class(end, class::FILE_STREAM)
        && let Some(Native::File(file)) = cx.world.tables.native(end.slot(FILE))
    {
        return Ok(file);
    }
    cx.type_error("stream of an open file", stream)
}

/// Applies a function to the open file of a stream, of one of the numbers 0, 1 and 2, or of a descriptor's number.
/// Returns none for a stream without a file.
pub(crate) fn with_file<R>(
    cx: &mut Context,
    stream: Value,
    act: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<R>,
) -> Result<Option<R>, Exit> {
    let stream = if is_two_way(cx, stream) { stream.slot(INPUT) } else { stream };
    let number = if has_class(stream, class::FILE_STREAM) { stream.slot(FILE) } else { stream };
    if let Some(descriptor) = find_descriptor(cx, stream) {
        let done = act(descriptor.as_fd());
        return cx.io(done, "descriptor").map(Some);
    }
    let standard = match number.as_fixnum() {
        _ if has_class(stream, class::STRING_STREAM) => return Ok(None),
        Some(number) if number == STDIN || (stream == number_value(0)) => Some(0),
        Some(number) if number == STDOUT || (stream == number_value(1)) => Some(1),
        Some(number) if number == STDERR || (stream == number_value(2)) => Some(2),
        _ => None,
    };
    let file = if stream.is_fixnum() { None } else { cx.world.tables.native(number) };
    let done = match (standard, file) {
        (Some(0), _) => act(std::io::stdin().as_fd()),
        (Some(1), _) => act(std::io::stdout().as_fd()),
        (Some(_), _) => act(std::io::stderr().as_fd()),
        (None, Some(Native::File(file))) => {
            let file = crate::threads::lock(&file);
            let reader = file.reader.as_ref().map(|reader| reader.get_ref().as_fd());
            match reader.or_else(|| file.writer.as_ref().map(|writer| writer.get_ref().as_fd())) {
                Some(descriptor) => act(descriptor),
                None => return Ok(None),
            }
        }
        _ => return cx.type_error("stream, descriptor, or 0, 1 or 2", stream),
    };
    cx.io(done, "stream").map(Some)
}

fn number_value(number: i64) -> Value {
    Value::fixnum(number)
}

impl Context {
    /// Writes out what the standard streams hold back, before another program writes to the same files.
    pub(crate) fn flush_standard_streams(&mut self) {
        // A stream that cannot be written says so at the program's own next write.
        let _ = self.blocked(|| std::io::stdout().flush());
    }
}

pub(super) fn close(cx: &mut Context, stream: Value) -> Result<(), Exit> {
    if has_class(stream, class::STRING_STREAM) {
        return Ok(());
    }
    if is_two_way(cx, stream) {
        close(cx, stream.slot(INPUT))?;
        return close(cx, stream.slot(OUTPUT));
    }
    if has_class(stream, class::BROADCAST_STREAM) {
        return Ok(());
    }
    if !has_class(stream, class::FILE_STREAM) {
        return cx.type_error("stream", stream);
    }
    let held = cx.world.tables.drop_native(stream.slot(FILE));
    if let Some(Native::Queue(held)) = &held {
        stream.set_slot(FILE, Value::NIL);
        return queue::flush(cx, held);
    }
    if let Some(Native::File(file)) = held {
        stream.set_slot(FILE, Value::NIL);
        // Another thread may hold the lock while it waits for input.
        if stream.slot(DIRECTION) == cx.world.names.input {
            return Ok(());
        }
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
