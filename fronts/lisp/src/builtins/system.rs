//! Implements functions on time, memory and the process.

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("SYSTEM:GC", 0, 0, gc),
    builtin("GC", 0, 0, gc),
    builtin("SYSTEM:GCTIME", 0, 0, gctime),
    builtin("SYSTEM:GC-PAUSES", 0, 0, gc_pauses),
    builtin("SYSTEM:ALLOC", 1, 1, |cx, args| {
        args.size(cx, 0)?;
        let words = cx.world.heap.statistics().used_bytes / 8;
        Ok(Value::fixnum(words as i64))
    }),
    builtin("SYSTEM:MEMORY-REPORT", 0, 1, |cx, args| {
        let text = cx.world.memory_report();
        cx.write_bytes(args.or_nil(0), text.as_bytes())?;
        Ok(Value::NIL)
    }),
    builtin("ROOM", 0, MANY, room),
    builtin("SYSTEM:ROOM", 0, MANY, room),
    builtin("UNIX:GETENV", 1, 1, |cx, args| {
        let name = super::stream::path_of(cx, args[0])?;
        match crate::options::environment(&name) {
            Some(text) => cx.string(&text),
            None => Ok(Value::NIL),
        }
    }),
    builtin("UNIX:GETTIMEOFDAY", 0, 0, |cx, _| {
        let now = now();
        let (seconds, micros) = (now.as_secs().cast_signed(), i64::from(now.subsec_micros()));
        cx.list(&[Value::fixnum(seconds), Value::fixnum(micros), Value::fixnum(0), Value::fixnum(0)])
    }),
    builtin("UNIX:TIME", 0, 0, |_, _| Ok(Value::fixnum(now().as_secs().cast_signed()))),
    builtin("UNIX:RUNTIME", 0, 0, |_, _| {
        let [user, system, ..] = crate::options::usage();
        Ok(Value::fixnum(((user + system) * 60.0) as i64))
    }),
    builtin("UNIX:GETRUSAGE", 1, 1, getrusage),
    builtin("UNIX:USLEEP", 1, 1, |cx, args| {
        let micros = args.size(cx, 0)? as u64;
        sleep(cx, Duration::from_micros(micros))
    }),
    builtin("UNIX:SLEEP", 1, 1, |cx, args| {
        let seconds = args.size(cx, 0)? as u64;
        sleep(cx, Duration::from_secs(seconds))
    }),
    builtin("SLEEP", 1, 1, |cx, args| {
        let seconds = args.float(cx, 0)?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) => sleep(cx, time),
            Err(_) => cx.type_error("time in seconds", args[0]),
        }
    }),
    builtin("LISP-IMPLEMENTATION-TYPE", 0, 0, |cx, _| cx.string("Largesse Lisp")),
    builtin("LISP-IMPLEMENTATION-VERSION", 0, 0, |cx, _| {
        cx.string(&format!("Largesse Lisp {}, a dialect of EusLisp", env!("CARGO_PKG_VERSION")))
    }),
    builtin("GET-INTERNAL-REAL-TIME", 0, 0, |cx, _| {
        Ok(Value::fixnum(cx.world.started.elapsed().as_micros() as i64))
    }),
    builtin("SYSTEM:ADDRESS", 1, 1, |_, args| Ok(Value::fixnum(args[0].address() as i64))),
];

pub(super) fn variables(cx: &mut Context) -> Result<(), Exit> {
    let mark = cx.mark();
    for name in [
        "UNIX",
        "LINUX",
        "THREAD",
        "PTHREAD",
        "WORD-SIZE=64",
        "EUS",
        "COMMON",
        "IEEE-FLOATING-POINT",
        "LARGESSE",
    ]
    .into_iter()
    .chain([if cfg!(target_arch = "x86_64") { "X86_64" } else { "AARCH64" }])
    {
        let keyword = cx.keyword(name)?;
        cx.push(keyword)?;
    }
    let features = cx.stacked(mark)?;
    cx.define_special(cx.world.names.features, features);
    let argv = cx.installed_name("*ARGV*")?;
    let arguments = cx.world.arguments.clone();
    let mark = cx.mark();
    for argument in &arguments {
        let text = cx.string(argument)?;
        cx.push(text)?;
    }
    let list = cx.stacked(mark)?;
    cx.define_special(argv, list);
    cx.push(list)?;
    // A program starts itself again by this name, so that it must be one that a shell finds.
    let path = std::env::current_exe()
        .map_or_else(|_| "largesse-lisp".to_owned(), |path| path.display().to_string());
    let name = cx.string(&path)?;
    let program = cx.installed_name("*PROGRAM-NAME*")?;
    cx.define_special(program, name);
    let line = cx.cons(name, list)?;
    let whole = cx.installed_name("*EUSTOP-ARGUMENT*")?;
    cx.define_special(whole, line);
    cx.release(mark);
    let ticks = cx.installed_name("INTERNAL-TIME-UNITS-PER-SECOND")?;
    cx.define_special(ticks, Value::fixnum(1_000_000));
    Ok(())
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn sleep(cx: &mut Context, time: Duration) -> Answer {
    // Sleeps at most 50 ms at a time, so that Ctrl-C takes effect.
    let start = std::time::Instant::now();
    loop {
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(cx.truth(true));
        }
        cx.blocked(|| std::thread::sleep(left.min(Duration::from_millis(50))));
        cx.poll()?;
    }
}

/// Collects and returns the number of free and of all words of the heap.
fn gc(cx: &mut Context, _: Args<'_>) -> Answer {
    cx.mutator.collect();
    cx.tell_gc_hook()?;
    let words = crate::report::words(&cx.world.heap.statistics());
    cx.list(&words)
}

/// Returns the number of collections and the hundredths of a second spent marking and sweeping; in addition to
/// EusLisp, the microseconds of pauses, the number of objects marked, and the microseconds of marking.
fn gctime(cx: &mut Context, _: Args<'_>) -> Answer {
    let collections = cx.world.heap.statistics().collections;
    let ticks = |time: Duration| Value::fixnum((time.as_millis() / 10) as i64);
    let count = Value::fixnum(collections.pauses.count().cast_signed());
    let still = Value::fixnum(collections.pauses.total().as_micros() as i64);
    let objects = Value::fixnum(collections.objects.cast_signed());
    let marking = Value::fixnum(collections.marking.as_micros() as i64);
    cx.list(&[count, ticks(collections.marking), ticks(collections.sweeping), still, objects, marking])
}

/// Returns the lengths of pauses that occurred as `((microseconds . pauses) ...)`, by upper bound.
fn gc_pauses(cx: &mut Context, _: Args<'_>) -> Answer {
    let mark = cx.mark();
    for (end, count) in cx.world.heap.statistics().collections.pauses.buckets() {
        if count == 0 {
            continue;
        }
        let (micros, count) = (end.as_micros() as i64, count.cast_signed());
        let pair = cx.cons(Value::fixnum(micros), Value::fixnum(count))?;
        cx.push(pair)?;
    }
    cx.stacked(mark)
}

fn room(cx: &mut Context, args: Args<'_>) -> Answer {
    let text = crate::report::room(&cx.world.heap.statistics());
    cx.write_bytes(args.or_nil(0), text.as_bytes())?;
    Ok(Value::NIL)
}

/// Returns the resource usage of the process or of its children as `(user-seconds system-seconds maximum-resident ...)`.
fn getrusage(cx: &mut Context, args: Args<'_>) -> Answer {
    let usage = match args[0].as_fixnum() {
        Some(0) => crate::options::usage(),
        Some(-1) => crate::options::usage_of_children(),
        _ => {
            let message = "getrusage takes 0, the process, or -1, its children";
            return cx.error_about(ErrorClass::Range, message.to_owned(), args[0]);
        }
    };
    let mark = cx.mark();
    for (index, number) in usage.iter().enumerate() {
        let value = if index < 2 { cx.float(*number)? } else { Value::fixnum(*number as i64) };
        cx.push(value)?;
    }
    cx.stacked(mark)
}
