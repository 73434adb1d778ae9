//! Reads and writes streams, byte by byte.

use super::queue;
use super::slots::{
    BUFFER, COUNT, DESTINATIONS, DIRECTION, FILE, INPUT, OUTPUT, STDERR, STDIN, STDOUT, TAIL, has_class,
    is_two_way, string_stream,
};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit, on_one_line};
use crate::value::{ObjectKind, Value};
use crate::world::{Native, class};
use std::io::{BufRead as _, Write as _};

impl Context {
    pub(crate) fn string_output(&mut self) -> Answer {
        let buffer = self.new_string(64)?;
        let mark = self.mark();
        self.push(buffer)?;
        let class = self.world.class_object(class::STRING_STREAM);
        let stream = self.new_instance(class)?;
        self.release(mark);
        stream.set_slot(DIRECTION, self.world.names.output);
        stream.set_slot(BUFFER, buffer);
        stream.set_slot(COUNT, Value::fixnum(0));
        Ok(stream)
    }

    pub(super) fn string_input(&mut self, text: &[u8]) -> Answer {
        let buffer = self.string_from(text)?;
        let mark = self.mark();
        self.push(buffer)?;
        let class = self.world.class_object(class::STRING_STREAM);
        let stream = self.new_instance(class)?;
        self.release(mark);
        stream.set_slot(DIRECTION, self.world.names.input);
        stream.set_slot(BUFFER, buffer);
        stream.set_slot(COUNT, Value::fixnum(0));
        stream.set_slot(TAIL, Value::fixnum(text.len() as i64));
        Ok(stream)
    }

    /// Returns an input stream from which a program's read macro reads text that is no stream.
    pub(crate) fn input_from_text(&mut self, text: &[u8]) -> Answer {
        self.string_input(text)
    }

    /// Returns the number of bytes read from a stream of [`Context::input_from_text`].
    pub(crate) fn consumed_of_text(&self, stream: Value) -> usize {
        stream.slot(COUNT).as_fixnum().unwrap_or(0).cast_unsigned() as usize
    }

    pub(crate) fn string_output_bytes(&mut self, stream: Value) -> Vec<u8> {
        let count = stream.slot(COUNT).as_fixnum().unwrap_or(0).cast_unsigned() as usize;
        let buffer = stream.slot(BUFFER);
        if buffer.is(ObjectKind::String) {
            buffer.bytes()[..count.min(buffer.length())].to_vec()
        } else {
            Vec::new()
        }
    }

    /// Returns a stream to write to; nil and t are `*standard-output*`.
    pub(super) fn output(&mut self, stream: Value) -> Answer {
        self.end_of(stream, OUTPUT, self.world.names.standard_output, "output stream")
    }

    /// Returns a stream to read from; nil and t are `*standard-input*`.
    pub(crate) fn input(&mut self, stream: Value) -> Answer {
        self.end_of(stream, INPUT, self.world.names.standard_input, "input stream")
    }

    /// Returns the stream of a designator; `slot` selects the half of a two-way stream.
    fn end_of(&mut self, stream: Value, slot: usize, standard: Value, wanted: &str) -> Answer {
        let mut stream = stream;
        for _ in 0..8 {
            if stream.is_nil() || stream == self.world.names.t {
                stream = self.global_value(standard);
            } else if is_two_way(self, stream) {
                stream = stream.slot(slot);
            } else if has_class(stream, class::STRING_STREAM)
                || has_class(stream, class::FILE_STREAM)
                || (slot == OUTPUT && has_class(stream, class::BROADCAST_STREAM))
            {
                return Ok(stream);
            } else {
                break;
            }
        }
        self.type_error(wanted, stream)
    }

    pub(super) fn at_line_start(&mut self, stream: Value) -> Result<bool, Exit> {
        let stream = self.output(stream)?;
        if has_class(stream, class::STRING_STREAM) {
            return Ok(matches!(self.string_output_bytes(stream).last(), None | Some(b'\n')));
        }
        Ok(stream.slot(COUNT) == Value::fixnum(i64::from(b'\n')))
    }

    /// Writes bytes to a stream, which the caller keeps alive.
    pub(crate) fn write_bytes(&mut self, stream: Value, bytes: &[u8]) -> Result<(), Exit> {
        let stream = self.output(stream)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if has_class(stream, class::STRING_STREAM) {
            return self.append(stream, bytes);
        }
        if has_class(stream, class::BROADCAST_STREAM) {
            let mark = self.mark();
            for destination in self.alive(stream.slot(DESTINATIONS))? {
                self.check_stack()?;
                self.write_bytes(destination, bytes)?;
            }
            self.release(mark);
            return Ok(());
        }
        stream.set_slot(COUNT, Value::fixnum(i64::from(bytes[bytes.len() - 1])));
        let number = stream.slot(FILE);
        let file = self.world.tables.native(number);
        if let Some(Native::Queue(queue)) = &file {
            return queue::write(self, queue, bytes);
        }
        let done = self.blocked(|| match (number.as_fixnum(), file) {
            (Some(STDOUT), _) => std::io::stdout().write_all(bytes),
            (Some(STDERR), _) => std::io::stderr().write_all(bytes),
            (_, Some(Native::File(file))) => match &mut crate::threads::lock(&file).writer {
                Some(writer) => writer.write_all(bytes),
                None => Err(std::io::Error::other("it is open for input")),
            },
            _ => Err(std::io::Error::other("it is closed")),
        });
        self.io(done, "stream")
    }

    fn append(&mut self, stream: Value, bytes: &[u8]) -> Result<(), Exit> {
        string_stream(self, stream)?;
        let count = stream.slot(COUNT).as_fixnum().unwrap_or(0).cast_unsigned() as usize;
        let buffer = stream.slot(BUFFER);
        if count + bytes.len() > buffer.length() {
            let mark = self.mark();
            self.push(stream)?;
            let grown = self.new_string((count + bytes.len()) * 2)?;
            self.release(mark);
            grown.bytes_mut()[..count].copy_from_slice(&buffer.bytes()[..count]);
            stream.set_slot(BUFFER, grown);
        }
        stream.slot(BUFFER).bytes_mut()[count..count + bytes.len()].copy_from_slice(bytes);
        stream.set_slot(COUNT, Value::fixnum((count + bytes.len()) as i64));
        Ok(())
    }

    /// Returns the next byte of an input stream, or none at its end.
    pub(crate) fn read_byte(&mut self, stream: Value) -> Result<Option<u8>, Exit> {
        self.byte(stream, true)
    }

    pub(crate) fn peek_byte(&mut self, stream: Value) -> Result<Option<u8>, Exit> {
        self.byte(stream, false)
    }

    fn byte(&mut self, stream: Value, take: bool) -> Result<Option<u8>, Exit> {
        let stream = self.input(stream)?;
        if has_class(stream, class::STRING_STREAM) {
            string_stream(self, stream)?;
            let at = stream.slot(COUNT).as_fixnum().unwrap_or(0);
            if at >= stream.slot(TAIL).as_fixnum().unwrap_or(0) {
                return Ok(None);
            }
            if take {
                stream.set_slot(COUNT, Value::fixnum(at + 1));
            }
            return Ok(stream.slot(BUFFER).bytes().get(at.cast_unsigned() as usize).copied());
        }
        let number = stream.slot(FILE);
        let file = self.world.tables.native(number);
        if let Some(Native::Queue(queue)) = &file {
            return queue::byte(self, queue, take);
        }
        let done = self.blocked(|| match (number.as_fixnum(), file) {
            (Some(STDIN), _) => {
                let mut stdin = std::io::stdin().lock();
                let byte = stdin.fill_buf()?.first().copied();
                if take && byte.is_some() {
                    stdin.consume(1);
                }
                Ok(byte)
            }
            (_, Some(Native::File(file))) => {
                let mut file = crate::threads::lock(&file);
                if let Some(byte) = file.unread {
                    if take {
                        file.unread = None;
                    }
                    return Ok(Some(byte));
                }
                let Some(reader) = &mut file.reader else {
                    return Err(std::io::Error::other("it is open for output"));
                };
                let byte = reader.fill_buf()?.first().copied();
                if take && byte.is_some() {
                    reader.consume(1);
                }
                Ok(byte)
            }
            _ => Err(std::io::Error::other("it is closed")),
        });
        self.io(done, "stream")
    }

    /// Converts a failed system call to a Lisp error with its cause.
    pub(crate) fn io<T>(&mut self, result: std::io::Result<T>, what: &str) -> Result<T, Exit> {
        match result {
            Ok(value) => Ok(value),
            Err(cause) => self.error(ErrorClass::Io, format!("{}: {cause}", on_one_line(what))),
        }
    }

    /// Finalizes a dead object: drops its native object.
    pub(crate) fn finalize(&mut self, object: Value) {
        if has_class(object, class::FILE_STREAM) {
            self.world.tables.drop_native(object.slot(FILE));
        } else if object.is(ObjectKind::Instance) && object.length() > 1 {
            self.world.tables.drop_native(object.slot(1));
        }
    }
}

pub(super) fn unread(cx: &mut Context, stream: Value, byte: u8) -> Result<(), Exit> {
    if has_class(stream, class::STRING_STREAM) {
        string_stream(cx, stream)?;
        let at = stream.slot(COUNT).as_fixnum().unwrap_or(0);
        if at > 0 {
            stream.set_slot(COUNT, Value::fixnum(at - 1));
        }
        return Ok(());
    }
    match cx.world.tables.native(stream.slot(FILE)) {
        Some(Native::File(file)) => {
            crate::threads::lock(&file).unread = Some(byte);
            Ok(())
        }
        Some(Native::Queue(queue)) => {
            let mut held = crate::threads::lock(&queue);
            held.read = held.read.saturating_sub(1);
            Ok(())
        }
        _ => cx.type_error("file stream", stream),
    }
}
