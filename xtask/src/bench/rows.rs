//! Figures from JSON lines, and how a table shows them.

use serde_json::Value;

/// The value below which this share of the values lies, interpolated; `None` of nothing.
pub(super) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    let below = at as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + at.fract() * (sorted[above] - sorted[below]))
}

/// The results that agree with every one of these fields.
pub(super) fn matching<'a>(results: &'a [Value], fields: &[(&str, Value)]) -> Vec<&'a Value> {
    let agrees = |result: &&Value| fields.iter().all(|(name, value)| result[*name] == *value);
    results.iter().filter(agrees).collect()
}

/// All numbers of a field, those of a list one by one.
pub(super) fn numbers(results: &[&Value], field: &str) -> Vec<f64> {
    let values = results.iter().map(|result| &result[field]);
    values
        .flat_map(|value| match value {
            Value::Array(list) => list.iter().filter_map(Value::as_f64).collect(),
            single => Vec::from_iter(single.as_f64()),
        })
        .collect()
}

/// Three significant digits, thousands as `k`.
pub(super) fn shown(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.1}k", v / 1_000.0),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// `median (quartile-quartile)`, or a dash of nothing.
pub(super) fn spread(values: &[f64]) -> String {
    let quartile = |share| quantile(values, share).map(shown);
    match (quartile(0.5), quartile(0.25), quartile(0.75)) {
        (Some(p50), Some(p25), Some(p75)) => format!("{p50} ({p25}-{p75})"),
        _ => "-".into(),
    }
}

/// A Markdown table.
pub(super) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_string(); header.len()];
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}{rows}", line(header), line(&rule))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_of_several_rounds_are_taken_together() {
        let results = [
            json!({"subject": "a", "ranks": 2, "means_us": [1.0, 3.0]}),
            json!({"subject": "a", "ranks": 4, "means_us": [9.0]}),
            json!({"subject": "a", "ranks": 2, "means_us": [2.0]}),
        ];

        let found = matching(&results, &[("subject", "a".into()), ("ranks", 2.into())]);

        assert_eq!(numbers(&found, "means_us"), [1.0, 3.0, 2.0]);
        assert_eq!(spread(&numbers(&found, "means_us")), "2.00 (1.50-2.50)");
        assert_eq!(spread(&[]), "-");
    }

    #[test]
    fn numbers_keep_three_digits() {
        let shown: Vec<String> = [0.0741, 0.25, 7.4, 18.42, 287.4, 12_345.0]
            .map(shown)
            .into();

        assert_eq!(shown, ["0.074", "0.25", "7.40", "18.4", "287", "12.3k"]);
    }
}
