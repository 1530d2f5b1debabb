//! An axis: a range of values on a range of pixels, with round ticks.

/// Values from `low` to `high` on pixels from `start` to `end`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    start: f32,
    end: f32,
}

impl Axis {
    /// An axis; a range without width gets one.
    pub fn new(low: f64, high: f64, start: f32, end: f32) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            start,
            end,
        }
    }

    /// The pixel of a value.
    pub fn pixel(&self, value: f64) -> f32 {
        let share = (value - self.low) / (self.high - self.low);
        (f64::from(self.start) + share * f64::from(self.end - self.start)) as f32
    }

    /// The value at the start of the axis.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The value at the end of the axis.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Round values within the range, about `wanted` of them, with their labels.
    pub fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step - 1e-9).ceil();
        let last = (self.high / step + 1e-9).floor();
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        (0..=(last - first).max(0.0) as usize)
            .map(|index| (first + index as f64) * step)
            .map(|value| (value, label(value, decimals)))
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten, not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|&round| round >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// A number with `decimals` digits after the point, and thousands apart: `12 500`.
fn label(value: f64, decimals: usize) -> String {
    let value = if value == 0.0 { 0.0 } else { value };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    if digits.len() <= 4 {
        return text;
    }
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{a0}');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, wanted: usize) -> Vec<String> {
        let axis = Axis::new(low, high, 0.0, 1.0);
        axis.ticks(wanted)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn ticks_are_round_and_inside_the_range() {
        assert_eq!(
            labels(0.0, 1000.0, 5),
            ["0", "200", "400", "600", "800", "1000"]
        );
        assert_eq!(labels(0.0, 0.3, 3), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(labels(-0.5, 2.2, 3), ["0", "1", "2"]);
        assert_eq!(
            labels(0.0, 100_000.0, 2),
            ["0", "50\u{a0}000", "100\u{a0}000"]
        );
    }

    #[test]
    fn a_range_without_width_still_has_an_axis() {
        let axis = Axis::new(3.0, 3.0, 0.0, 10.0);

        assert_eq!(axis.pixel(3.0), 0.0);
        assert!(!axis.ticks(4).is_empty());
    }
}
