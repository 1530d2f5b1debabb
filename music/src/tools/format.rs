//! Numbers as C and C++ print them by default: six significant digits, as short as they go.

/// `%g` of C, which is also what a C++ stream prints.
pub fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    // Rounding to six digits decides the exponent: 999999.5 becomes 1e+06.
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent) as usize;
        return without_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_printf_makes_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.001175, "0.001175"),
            (0.069_363_66, "0.0693637"),
            (0.05, "0.05"),
            (0.1 + 0.2, "0.3"),
            (1.0, "1"),
            (100.0, "100"),
            (123_456.0, "123456"),
            (123_456.7, "123457"),
            (999_999.5, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.000_099_999_99, "0.0001"),
            (0.000_012_345_67, "1.23457e-05"),
            (1e-9, "1e-09"),
            (1e-300, "1e-300"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(value), text);
        }
    }
}
