//! Implements the calls that tell the time: in seconds, and by the calendar of the local time zone.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:LOCALTIME", 0, 1, |cx, args| calendar(cx, args, &TimeZone::system())),
    builtin("UNIX:GMTIME", 0, 1, |cx, args| calendar(cx, args, &TimeZone::UTC)),
    builtin("UNIX:ASCTIME", 1, 1, |cx, args| {
        let parts = parts(cx, args[0])?;
        let text = text(&parts);
        cx.string(&text)
    }),
    builtin("UNIX:MKTIME", 1, 1, |cx, args| {
        let [second, minute, hour, day, month, year, ..] = parts(cx, args[0])?;
        match seconds([year, month, day, hour, minute, second]) {
            Some(seconds) => Ok(Value::fixnum(seconds)),
            None => cx.error_about(ErrorClass::Range, "time out of range".to_owned(), args[0]),
        }
    }),
];

/// Number of integers in a calendar vector before its flag for daylight saving and its zones.
const PARTS: usize = 8;
/// Seconds of 30 days.
const MONTH: i64 = 30 * 24 * 3600;
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns the vector `#(second minute hour day month year weekday day-of-year daylight-saving (zone zone))` of a number
/// of seconds since 1970, by default of now. Months count from 0 and years from 1900, as in C.
fn calendar(cx: &mut Context, args: Args<'_>, zone: &TimeZone) -> Answer {
    let time = if args.or_nil(0).is_nil() {
        Some(Timestamp::now())
    } else {
        Timestamp::from_second(args.float(cx, 0)? as i64).ok()
    };
    let Some(time) = time else {
        return cx.error_about(ErrorClass::Range, "time out of range".to_owned(), args[0]);
    };
    let here = time.to_zoned_datetime(zone.clone());
    let numbers: [i64; PARTS] = [
        i64::from(here.second()),
        i64::from(here.minute()),
        i64::from(here.hour()),
        i64::from(here.day()),
        i64::from(here.month()) - 1,
        i64::from(here.year()) - 1900,
        i64::from(here.weekday().to_sunday_zero_offset()),
        i64::from(here.day_of_year()) - 1,
    ];
    let saving = zone.to_offset_info(time).dst().is_dst();
    let (standard, summer) = zones(zone, time);
    let mark = cx.mark();
    let vector = cx.new_vector(PARTS + 2)?;
    cx.push(vector)?;
    for (index, number) in numbers.into_iter().enumerate() {
        vector.set_slot(index, Value::fixnum(number));
    }
    vector.set_slot(PARTS, cx.truth(saving));
    let (first, second) = (cx.string(&standard)?, Value::NIL);
    cx.push(first)?;
    cx.push(second)?;
    let second = cx.string(&summer)?;
    cx.push(second)?;
    let names = cx.list(&[first, second])?;
    vector.set_slot(PARTS + 1, names);
    cx.release(mark);
    Ok(vector)
}

/// Returns the abbreviations of a zone's standard and daylight saving time in the year after `time`.
fn zones(zone: &TimeZone, time: Timestamp) -> (String, String) {
    let mut standard = None;
    let mut summer = None;
    for month in 0..12_i64 {
        let at = Timestamp::from_second(time.as_second() + month * MONTH).unwrap_or(time);
        let info = zone.to_offset_info(at);
        let name = if info.dst().is_dst() { &mut summer } else { &mut standard };
        name.get_or_insert_with(|| info.abbreviation().to_owned());
    }
    let standard = standard.or_else(|| summer.clone()).unwrap_or_else(|| "UTC".to_owned());
    let summer = summer.unwrap_or_else(|| standard.clone());
    (standard, summer)
}

/// Returns the integers of a calendar vector, which may be a vector or an integer-vector.
fn parts(cx: &mut Context, vector: Value) -> Result<[i64; PARTS], Exit> {
    let mut parts = [0; PARTS];
    for (index, part) in parts.iter_mut().enumerate() {
        let value = if vector.is(ObjectKind::Vector) && index < vector.length() {
            vector.slot(index).as_fixnum()
        } else if vector.is(ObjectKind::IntegerVector) && index < vector.length() {
            vector.integers().get(index).copied()
        } else {
            None
        };
        match value {
            Some(number) => *part = number,
            None if index >= 6 => {}
            None => return cx.type_error("calendar vector, as from unix:localtime", vector),
        }
    }
    Ok(parts)
}

/// Formats a calendar vector as C does: `Thu Nov 26 16:20:57 2026`, with a newline.
fn text(parts: &[i64; PARTS]) -> String {
    let [second, minute, hour, day, month, year, weekday, _] = *parts;
    let name = |names: &[&'static str], index: i64| {
        usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or("???")
    };
    let (weekday, month) = (name(&DAYS, weekday), name(&MONTHS, month));
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {}\n", year + 1900)
}

/// Returns the seconds since 1970 of a local time given as year since 1900, month from 0, day, hour, minute, second.
fn seconds(parts: [i64; 6]) -> Option<i64> {
    let [year, month, day, hour, minute, second] = parts;
    let small = |number: i64| i8::try_from(number).ok();
    let year = i16::try_from(year + 1900).ok()?;
    let date =
        DateTime::new(year, small(month + 1)?, small(day)?, small(hour)?, small(minute)?, small(second)?, 0);
    let zoned = date.ok()?.to_zoned_datetime(TimeZone::system()).ok()?;
    Some(zoned.timestamp().as_second())
}
