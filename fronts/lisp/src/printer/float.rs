//! Prints floats as EusLisp 9.27 prints them: six significant digits (six decimals below 1), trailing zeros reduced
//! to one, and an exponent outside of 1e-4 to 1e5.

/// Returns the text of a float.
pub(crate) fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = number.abs();
    if size == 0.0 {
        return "0.0".to_owned();
    }
    // EusLisp's floats lack the lowest bits, so that its 0.0001 is below 1e-4.
    if size <= 1e-4 || size > 1e5 {
        return exponent_text(number, 6);
    }
    let digits_before = if size < 1.0 { 0 } else { 1 + size.log10().floor() as usize };
    let text = format!("{number:.*}", 6_usize.saturating_sub(digits_before));
    trimmed(&text)
}

fn trimmed(text: &str) -> String {
    if !text.contains('.') {
        return format!("{text}.0");
    }
    let cut = text.trim_end_matches('0');
    if cut.ends_with('.') { format!("{cut}0") } else { cut.to_owned() }
}

/// Formats a float as `1.234560e+07`, with `decimals` decimals.
pub(crate) fn exponent_text(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::float_text;

    #[test]
    fn floats_print_as_euslisp_prints_them() {
        for (number, text) in [
            (0.001_234_567_8, "0.001235"),
            (0.000_999_99, "0.001"),
            (1.5e-4, "0.00015"),
            (12.345_678_9, "12.3457"),
            (999_999.0, "9.999990e+05"),
            (100_000.0, "100000.0"),
            (100_000.5, "1.000005e+05"),
            (99999.99, "100000.0"),
            (123.0, "123.0"),
            (-1.234_567_8, "-1.23457"),
            (1e-5, "1.000000e-05"),
            (9.999_999_9, "10.0"),
            (0.0001, "1.000000e-04"),
            (1e10, "1.000000e+10"),
            (0.333_333_333, "0.333333"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(float_text(number), text);
        }
    }
}
