//! Implements streams of files, strings and the terminal.
//!
//! A string stream's slots are direction, buffer, count (position) and tail (end). A file stream's `fd` is the number
//! of an open file or of one of the three standard streams; its count is the last byte written.

mod bytes;
mod file;
mod queue;
mod select;
mod slots;

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::reader::{Reader, Source};
use crate::value::Value;
use crate::world::class;
use bytes::unread;
use file::{close, open};
pub(crate) use file::{flush, open_file, path_of, pipe_stream, with_file};
use slots::{INPUT, OUTPUT, STDERR, STDIN, STDOUT, file_stream, string_stream};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("STREAMP", 1, 1, |cx, args| {
        let of = cx.world.class_of(args[0]);
        Ok(cx.truth(cx.derives(of, class::STREAM) || cx.derives(of, class::IO_STREAM)))
    }),
    builtin("OPEN", 1, MANY, open),
    builtin("CLOSE", 1, 2, |cx, args| {
        close(cx, args[0])?;
        Ok(cx.truth(true))
    }),
    builtin("MAKE-MSGQ-INPUT-STREAM", 1, 2, |cx, args| queue::make(cx, args, cx.world.names.input)),
    builtin("MAKE-MSGQ-OUTPUT-STREAM", 1, 2, |cx, args| queue::make(cx, args, cx.world.names.output)),
    builtin("SELECT-STREAM", 1, 2, select::select_stream),
    builtin("MAKE-STRING-OUTPUT-STREAM", 0, 1, |cx, _| cx.string_output()),
    builtin("MAKE-STRING-INPUT-STREAM", 1, 3, |cx, args| {
        let text = super::string::bytes(cx, args[0])?;
        cx.string_input(&text)
    }),
    builtin("MAKE-STRING-STREAM", 0, 1, |cx, _| cx.string_output()),
    builtin("GET-OUTPUT-STREAM-STRING", 1, 1, |cx, args| {
        string_stream(cx, args[0])?;
        // As in EusLisp, the stream keeps its text.
        let text = cx.string_output_bytes(args[0]);
        cx.string_from(&text)
    }),
    builtin("MAKE-TWO-WAY-STREAM", 2, 2, |cx, args| {
        let class = cx.world.class_object(class::IO_STREAM);
        let stream = cx.new_instance(class)?;
        stream.set_slot(INPUT, args[0]);
        stream.set_slot(OUTPUT, args[1]);
        Ok(stream)
    }),
    builtin("PRINT", 1, 2, |cx, args| {
        let mut out = Vec::new();
        cx.print(args[0], true, &mut out)?;
        out.push(b'\n');
        cx.write_bytes(args.or_nil(1), &out)?;
        Ok(args[0])
    }),
    builtin("PRIN1", 1, 2, |cx, args| write(cx, args, true)),
    builtin("PRINC", 1, 2, |cx, args| write(cx, args, false)),
    builtin("PRIN1-TO-STRING", 1, 2, |cx, args| to_string(cx, args[0], true)),
    builtin("PRINC-TO-STRING", 1, 2, |cx, args| to_string(cx, args[0], false)),
    builtin("TERPRI", 0, 1, |cx, args| {
        cx.write_bytes(args.or_nil(0), b"\n")?;
        Ok(Value::NIL)
    }),
    builtin("FRESH-LINE", 0, 1, |cx, args| {
        if cx.at_line_start(args.or_nil(0))? {
            return Ok(Value::NIL);
        }
        cx.write_bytes(args.or_nil(0), b"\n")?;
        Ok(cx.truth(true))
    }),
    builtin("SPACES", 1, 2, |cx, args| {
        let count = args.size(cx, 0)?.min(1 << 20);
        cx.write_bytes(args.or_nil(1), &vec![b' '; count])?;
        Ok(Value::NIL)
    }),
    builtin("WRITE-BYTE", 1, 2, |cx, args| {
        let byte = args.fixnum(cx, 0)? as u8;
        cx.write_bytes(args.or_nil(1), &[byte])?;
        Ok(args[0])
    }),
    builtin("WRITE-CHAR", 1, 2, |cx, args| {
        let byte = args.fixnum(cx, 0)? as u8;
        cx.write_bytes(args.or_nil(1), &[byte])?;
        Ok(args[0])
    }),
    builtin("WRITE-STRING", 1, 2, |cx, args| {
        let text = super::string::bytes(cx, args[0])?;
        cx.write_bytes(args.or_nil(1), &text)?;
        Ok(args[0])
    }),
    builtin("WRITE-LINE", 1, 2, |cx, args| {
        let mut text = super::string::bytes(cx, args[0])?;
        text.push(b'\n');
        cx.write_bytes(args.or_nil(1), &text)?;
        Ok(args[0])
    }),
    builtin("FINISH-OUTPUT", 0, 1, |cx, args| flush(cx, args.or_nil(0))),
    builtin("FORCE-OUTPUT", 0, 1, |cx, args| flush(cx, args.or_nil(0))),
    builtin("READ", 0, 4, |cx, args| {
        let stream = cx.input(args.or_nil(0))?;
        cx.push(stream)?;
        match Reader::new(Source::Stream(stream)).read(cx)? {
            Some(value) => Ok(value),
            None => at_end(cx, args, 1),
        }
    }),
    builtin("READ-DELIMITED-LIST", 1, 3, |cx, args| {
        let closer = args.fixnum(cx, 0)? as u8;
        let stream = cx.input(args.or_nil(1))?;
        cx.push(stream)?;
        Reader::new(Source::Stream(stream)).read_delimited(cx, closer)
    }),
    builtin("READ-CHAR", 0, 4, |cx, args| {
        let stream = cx.input(args.or_nil(0))?;
        match cx.read_byte(stream)? {
            Some(byte) => Ok(Value::fixnum(i64::from(byte))),
            None => at_end(cx, args, 1),
        }
    }),
    builtin("PEEK-CHAR", 0, 4, |cx, args| {
        let stream = cx.input(args.or_nil(0))?;
        match cx.peek_byte(stream)? {
            Some(byte) => Ok(Value::fixnum(i64::from(byte))),
            None => at_end(cx, args, 1),
        }
    }),
    builtin("UNREAD-CHAR", 1, 2, |cx, args| {
        let stream = cx.input(args.or_nil(1))?;
        let byte = args.fixnum(cx, 0)? as u8;
        unread(cx, stream, byte)?;
        Ok(args[0])
    }),
    builtin("READ-LINE", 0, 4, |cx, args| {
        let stream = cx.input(args.or_nil(0))?;
        let mut line = Vec::new();
        loop {
            match cx.read_byte(stream)? {
                None if line.is_empty() => return at_end(cx, args, 1),
                None | Some(b'\n') => return cx.string_from(&line),
                Some(byte) => line.push(byte),
            }
        }
    }),
    builtin("READ-FROM-STRING", 1, 4, |cx, args| {
        let text = super::string::bytes(cx, args[0])?;
        match Reader::new(Source::text(&text)).read(cx)? {
            Some(value) => Ok(value),
            None => at_end(cx, args, 1),
        }
    }),
    builtin("DELETE-FILE", 1, 1, |cx, args| {
        let path = path_of(cx, args[0])?;
        let done = cx.blocked(|| std::fs::remove_file(&path));
        cx.io(done, &path)?;
        Ok(cx.truth(true))
    }),
    builtin("RENAME-FILE", 2, 2, |cx, args| {
        let (from, to) = (path_of(cx, args[0])?, path_of(cx, args[1])?);
        let done = cx.blocked(|| std::fs::rename(&from, &to));
        cx.io(done, &from)?;
        Ok(cx.truth(true))
    }),
    builtin("FILE-SIZE", 1, 1, |cx, args| {
        let path = path_of(cx, args[0])?;
        let found = cx.blocked(|| std::fs::metadata(&path));
        let size = cx.io(found, &path)?.len();
        Ok(Value::fixnum(size.cast_signed()))
    }),
];

pub(super) fn variables(cx: &mut Context) -> Result<(), Exit> {
    let names = cx.world.names;
    for (symbol, file, direction) in [
        (names.standard_input, STDIN, names.input),
        (names.standard_output, STDOUT, names.output),
        (names.error_output, STDERR, names.output),
    ] {
        let stream = file_stream(cx, Value::fixnum(file), direction)?;
        cx.define_special(symbol, stream);
    }
    let class = cx.world.class_object(class::IO_STREAM);
    let terminal = cx.new_instance(class)?;
    terminal.set_slot(INPUT, names.standard_input.get(crate::value::symbol::VALUE));
    terminal.set_slot(OUTPUT, names.standard_output.get(crate::value::symbol::VALUE));
    cx.define_special(names.terminal_io, terminal);
    Ok(())
}

/// Handles the end of input by `eof-error-p eof-value` from argument `index` on: an error unless the first is nil.
fn at_end(cx: &mut Context, args: Args<'_>, index: usize) -> Answer {
    match args.given(index) {
        None => cx.fail(ErrorClass::Io, "end of input".to_owned()),
        Some(wanted) if !wanted.is_nil() => cx.fail(ErrorClass::Io, "end of input".to_owned()),
        Some(_) => Ok(args.or_nil(index + 1)),
    }
}

fn write(cx: &mut Context, args: Args<'_>, escape: bool) -> Answer {
    let mut out = Vec::new();
    cx.print(args[0], escape, &mut out)?;
    cx.write_bytes(args.or_nil(1), &out)?;
    Ok(args[0])
}

fn to_string(cx: &mut Context, value: Value, escape: bool) -> Answer {
    let mut out = Vec::new();
    cx.print(value, escape, &mut out)?;
    cx.string_from(&out)
}
