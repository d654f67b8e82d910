//! `retryx plan`: the delays of a policy, without running anything.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::options::Id;
use crate::cli::{Given, UsageError};
use crate::config::{Explained, Plan, explain};
use crate::policy::{
    Backoff, Budget, BudgetPlan, Class, Decision, Formula, Jitter, Judged, Limits, Operation, Outcome, Session,
    SessionPlan,
};
use crate::units::{human, millis};

/// Rows where nothing else ends the plan.
const ROWS: u64 = 20;
/// Rows where nothing ends the plan for longer than anybody reads.
const MOST_ROWS: u64 = 200_000;
/// The longest bar of the chart, in characters.
const BAR: u128 = 24;

/// One retry of the plan.
struct Row {
    retry: u64,
    least: Duration,
    mean: Duration,
    greatest: Duration,
    drawn: Option<Duration>,
    capped: bool,
    total: Totals,
}

/// The sums up to a row.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    least: Duration,
    mean: Duration,
    greatest: Duration,
    drawn: Option<Duration>,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Csv,
}

/// The plan as text: a table, JSON or CSV; or the settings with their sources, among which
/// the user's folder for state may be.
pub fn show(given: &[Given], command: Vec<OsString>, state_folder: Option<&Path>) -> Result<String, UsageError> {
    let plan = Plan::resolve(given, command, String::new())?;
    let (mut class, mut format, mut explain_config) = (Class::Transient, Format::Table, false);
    for option in given {
        let text = option.value.to_str().unwrap_or_default();
        match option.id {
            Id::PlanClass => class = if text == "throttling" { Class::Throttling } else { Class::Transient },
            Id::PlanFormat => {
                format = match text {
                    "json" => Format::Json,
                    "csv" => Format::Csv,
                    _ => Format::Table,
                }
            }
            Id::ExplainConfig => explain_config = true,
            _ => {}
        }
    }
    check_choices(given)?;
    if explain_config {
        let settings = explain(&plan, given, state_folder);
        let line = |Explained { name, value, source }: &Explained| format!("{name:<20} {value:<28} {source}\n");
        return match format {
            Format::Table => Ok(settings.iter().map(line).collect()),
            Format::Json => Ok(format!("{}\n", json!({ "settings": settings }))),
            Format::Csv => Err(UsageError("--format: the settings are printed as table or json, not as csv".into())),
        };
    }
    let (rows, end) = rows(&plan, class);
    Ok(match format {
        Format::Table => table(&plan, class, &rows, &end),
        Format::Json => json_text(&plan, class, &rows, &end),
        Format::Csv => csv(&rows),
    })
}

/// The lean parser knows no choices, so they are checked here.
fn check_choices(given: &[Given]) -> Result<(), UsageError> {
    for option in given {
        let valid: &[&str] = match option.id {
            Id::PlanClass => &["transient", "throttling"],
            Id::PlanFormat => &["table", "json", "csv"],
            _ => continue,
        };
        if !valid.iter().any(|word| option.value == *word) {
            let value = option.value.to_string_lossy();
            return Err(UsageError(format!("{}: '{value}' is not one of: {}", option.place, valid.join(", "))));
        }
    }
    Ok(())
}

/// Why the rows end.
enum End {
    Attempts,
    Deadline(&'static str, Duration),
    Quota,
    Rows,
}

fn rows(plan: &Plan, class: Class) -> (Vec<Row>, End) {
    let session = &plan.session;
    let limits = &session.limits;
    let retries = limits.max_attempts.map(|most| most.get() - 1);
    let deadline = [("--deadline", limits.deadline), ("--total-timeout", limits.total_timeout)]
        .into_iter()
        .filter_map(|(name, limit)| Some((name, limit?)))
        .min_by_key(|(_, limit)| *limit);
    let most = retries.unwrap_or(if deadline.is_some() { u64::MAX } else { ROWS });
    let endless = without_end(session);
    let mut schedule =
        plan.seed.map(|seed| Schedule { session: Session::new(&endless, Session::seed_from(seed)), class });
    let mut tokens =
        session.budget.quota.map(|quota| (u64::from(quota.capacity), u64::from(quota.cost(class)), quota.refill));
    let mut rows: Vec<Row> = Vec::new();
    let mut total = Totals { drawn: plan.seed.map(|_| Duration::ZERO), ..Totals::default() };
    let mut previous = Spread::none(&session.backoff, class);
    for i in 0..most.min(MOST_ROWS) {
        let spread = Spread::of(&session.backoff, class, i, previous);
        total.least = total.least.saturating_add(spread.least);
        total.mean = total.mean.saturating_add(spread.mean);
        total.greatest = total.greatest.saturating_add(spread.greatest);
        if let Some((name, limit)) = deadline
            && (total.mean > limit || total.mean == limit && name == "--total-timeout")
        {
            return (rows, End::Deadline(name, limit));
        }
        // A refill is a matter of the time that attempts take, which nobody knows here.
        if let Some((left, cost, 0)) = &mut tokens {
            let Some(rest) = left.checked_sub(*cost) else { return (rows, End::Quota) };
            *left = rest;
        }
        let drawn = schedule.as_mut().map(Schedule::next);
        total.drawn = total.drawn.zip(drawn).map(|(total, drawn)| total.saturating_add(drawn));
        rows.push(Row {
            retry: i + 1,
            least: spread.least,
            mean: spread.mean,
            greatest: spread.greatest,
            drawn,
            capped: spread.capped,
            total,
        });
        previous = spread;
        if spread.mean.is_zero() && retries.is_none() && rows.len() as u64 >= ROWS {
            // Without a delay no deadline is ever reached.
            return (rows, End::Rows);
        }
    }
    let all = retries.is_some_and(|retries| retries <= MOST_ROWS);
    (rows, if all { End::Attempts } else { End::Rows })
}

/// The delays that a seed gives: those of a real run, drawn by its own state machine.
struct Schedule<'a> {
    session: Session<'a>,
    class: Class,
}

impl Schedule<'_> {
    fn next(&mut self) -> Duration {
        self.session.start_attempt();
        let judged = Judged { outcome: &Outcome::Exited(1), class: self.class, server: None };
        let mut budget = Budget::default();
        let answer = |operation: &Operation| budget.apply(&BudgetPlan::default(), operation, Duration::ZERO);
        match self.session.decide(judged, None, Duration::ZERO, answer) {
            Decision::Retry(retry) => retry.delay.wait,
            Decision::Stop(_) | Decision::StopAfter(..) => Duration::ZERO,
        }
    }
}

/// The same delays without an end: a plan ends by the mean, not by what is drawn.
fn without_end(plan: &SessionPlan) -> SessionPlan {
    let limits = Limits { max_attempts: None, deadline: None, total_timeout: None };
    SessionPlan { limits, budget: BudgetPlan::default(), ..plan.clone() }
}

/// The least, mean and greatest delay before a retry.
#[derive(Debug, Clone, Copy)]
struct Spread {
    least: Duration,
    mean: Duration,
    greatest: Duration,
    capped: bool,
}

impl Spread {
    fn none(rule: &Backoff, class: Class) -> Self {
        let base = if class == Class::Throttling { rule.throttling_base } else { rule.base };
        Self { least: base, mean: base, greatest: base, capped: false }
    }

    /// The spread of the delay before retry `i`, of which the one before was `previous`.
    fn of(rule: &Backoff, class: Class, i: u64, previous: Self) -> Self {
        let (low, high) = match rule.formula {
            Formula::Decorrelated => {
                let base = Self::none(rule, class).least;
                // Drawn evenly up to three times the mean of the one before: exact until the
                // cap bites, and near after that.
                let high = previous.mean.saturating_mul(3).max(base);
                let mean = mean_of_held(base, high, rule.floor, rule.cap);
                let greatest = previous.greatest.saturating_mul(3).max(base);
                return Self {
                    least: rule.held(base),
                    mean,
                    greatest: rule.held(greatest),
                    capped: greatest > rule.cap,
                };
            }
            _ => rule.range(i, class),
        };
        let mean = mean_of_held(low, high, rule.floor, rule.cap);
        // Full jitter at a cap of the formula still spreads below it.
        let capped = rule.without_cap(i, class) > rule.cap || (rule.jitter == Jitter::Fraction && high > rule.cap);
        Self { least: rule.held(low), mean, greatest: rule.held(high), capped }
    }
}

/// The mean of a number drawn evenly between `low` and `high` and held within a floor and
/// a cap.
fn mean_of_held(low: Duration, high: Duration, floor: Duration, cap: Duration) -> Duration {
    let held = |value: Duration| value.max(floor).min(cap.max(floor));
    if held(low) == held(high) || high <= low {
        return held(low);
    }
    let [a, b, floor, cap] = [low, high, floor, cap].map(|duration| duration.as_secs_f64());
    let (f, c) = (floor.clamp(a, b), cap.clamp(a, b));
    let below = (f - a) * floor.max(a);
    let between = (c - f) * f64::midpoint(c, f);
    let above = (b - c) * cap.min(b);
    let mean = (below + between + above) / (b - a);
    let mean = Duration::try_from_secs_f64(mean).unwrap_or(Duration::MAX);
    if mean.as_secs() > u64::from(u32::MAX) {
        return mean;
    }
    // Whole microseconds, as delays are.
    Duration::from_micros(u64::try_from(mean.as_nanos().saturating_add(500) / 1000).unwrap_or(u64::MAX))
}

fn end_in_words(end: &End) -> Option<String> {
    match end {
        End::Attempts => None,
        End::Rows => Some("more retries follow; no limit ends them here".to_owned()),
        End::Quota => Some("ends there: the retry quota is spent".to_owned()),
        End::Deadline(name, limit) => {
            Some(format!("ends there: the mean delays of one more retry would pass {name} {}", human(*limit)))
        }
    }
}

fn heading(plan: &Plan, class: Class) -> String {
    let rule = &plan.session.backoff;
    let attempts = match plan.supervision.max_attempts.as_str() {
        "unlimited" => "no limit on attempts".to_owned(),
        "1" => "1 attempt".to_owned(),
        most => format!("at most {most} attempts"),
    };
    let mut line = format!("{} mode, {class} failures: {attempts}", plan.mode.as_str());
    if let Some(deadline) = plan.session.limits.deadline {
        let _ = write!(line, ", deadline {}", human(deadline));
    }
    if let Some(quota) = plan.session.budget.quota {
        let _ = write!(line, ", quota {}", quota.capacity);
    }
    if let Some((scope, _)) = &plan.scope {
        let of = if plan.session.budget.quota.is_some() { " of" } else { "," };
        let _ = write!(line, "{of} scope '{}'", scope.name);
    }
    if rule.cap < Duration::MAX {
        let _ = write!(line, ", longest delay {}", human(rule.cap));
    }
    if rule.formula != Formula::Decorrelated {
        let _ = write!(line, ", jitter {}", rule.jitter);
    }
    line
}

fn table(plan: &Plan, class: Class, rows: &[Row], end: &End) -> String {
    let mut text = format!("{}\n", heading(plan, class));
    let drawn = plan.seed.is_some();
    let _ = write!(text, "\n{:>6}  {:>10}  {:>10}  {:>10}", "retry", "least", "mean", "greatest");
    let _ = if drawn { write!(text, "  {:>10}", "drawn") } else { Ok(()) };
    let _ = writeln!(text, "  {:>10}", "mean total");
    let longest = rows.iter().map(|row| row.greatest).max().unwrap_or_default().as_micros().max(1);
    for row in rows {
        let shown = [row.least, row.mean, row.greatest].map(human);
        let _ = write!(text, "{:>6}  {:>10}  {:>10}  {:>10}", row.retry, shown[0], shown[1], shown[2]);
        let _ = row.drawn.map_or(Ok(()), |drawn| write!(text, "  {:>10}", human(drawn)));
        let bar = usize::try_from(row.greatest.as_micros() * BAR / longest).unwrap_or(0);
        let mark = if row.capped { " cap" } else { "" };
        let line = format!("  {:>10}  {}{mark}", human(row.total.mean), "#".repeat(bar));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if rows.is_empty() {
        text.push_str("  no retry\n");
    }
    if let Some(end) = end_in_words(end) {
        let _ = writeln!(text, "\n{end}");
    }
    text
}

fn json_text(plan: &Plan, class: Class, rows: &[Row], end: &End) -> String {
    let retries: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "retry": row.retry,
                "min_ms": millis(row.least),
                "mean_ms": millis(row.mean),
                "max_ms": millis(row.greatest),
                "drawn_ms": row.drawn.map(millis),
                "capped": row.capped,
                "total_min_ms": millis(row.total.least),
                "total_mean_ms": millis(row.total.mean),
                "total_max_ms": millis(row.total.greatest),
                "total_drawn_ms": row.total.drawn.map(millis),
            })
        })
        .collect();
    let limits = &plan.session.limits;
    let whole = json!({
        "mode": plan.mode.as_str(),
        "class": class.as_str(),
        "max_attempts": limits.max_attempts,
        "deadline_ms": limits.deadline.map(millis),
        "ended_by": match end {
            End::Attempts => "attempts",
            End::Deadline("--deadline", _) => "deadline",
            End::Deadline(..) => "total_timeout",
            End::Quota => "quota",
            End::Rows => "rows",
        },
        "retries": retries,
    });
    format!("{whole}\n")
}

fn csv(rows: &[Row]) -> String {
    let mut text =
        "retry,min_ms,mean_ms,max_ms,drawn_ms,total_min_ms,total_mean_ms,total_max_ms,total_drawn_ms\n".to_owned();
    for row in rows {
        let drawn = |drawn: Option<Duration>| drawn.map(|drawn| millis(drawn).to_string()).unwrap_or_default();
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{}",
            row.retry,
            millis(row.least),
            millis(row.mean),
            millis(row.greatest),
            drawn(row.drawn),
            millis(row.total.least),
            millis(row.total.mean),
            millis(row.total.greatest),
            drawn(row.total.drawn)
        );
    }
    text
}
