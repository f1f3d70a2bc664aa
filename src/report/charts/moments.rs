//! Positions on a time axis with long pauses shortened.

/// A pause is shortened if it is longer than this multiple of the median pause …
const UNUSUAL: i64 = 10;
/// … and longer than the whole time divided by this.
const PART: i64 = 8;
/// Width of a shortened pause, as a share of the axis.
const LEFT: f64 = 0.09;

/// Positions of some moments.
#[derive(Debug)]
pub(super) struct Moments {
    places: Vec<f64>,
    /// Index of the moment after each shortened pause, and the pause in seconds.
    pauses: Vec<(usize, i64)>,
    seconds: Option<i64>,
}

impl Moments {
    /// Positions of `number` moments at ascending `seconds`; equidistant if there are none or all are equal.
    pub(super) fn new(number: usize, seconds: &[i64]) -> Self {
        let length = seconds.first().zip(seconds.last()).map(|(first, last)| last - first);
        let Some(length) = length.filter(|length| *length > 0 && seconds.len() == number) else {
            let last = number.saturating_sub(1) as f64;
            let place = |point| if number < 2 { 0.5 } else { point as f64 / last };
            return Self { places: (0..number).map(place).collect(), pauses: Vec::new(), seconds: None };
        };
        let gaps: Vec<i64> = seconds.windows(2).map(|two| two[1] - two[0]).collect();
        let mut sorted = gaps.clone();
        sorted.sort_unstable();
        let usual = sorted[(sorted.len() - 1) / 2];
        let cut = |gap: i64| gaps.len() > 2 && gap / UNUSUAL > usual && gap > length / PART;
        let pauses: Vec<(usize, i64)> =
            gaps.iter().enumerate().filter(|(_, gap)| cut(**gap)).map(|(at, gap)| (at + 1, *gap)).collect();
        let shown = (length - pauses.iter().map(|(_, gap)| gap).sum::<i64>()).max(1) as f64;
        let room = 1.0 - LEFT * pauses.len() as f64;
        let mut at = 0.0;
        let mut places = vec![at];
        for gap in &gaps {
            at += if cut(*gap) { LEFT } else { *gap as f64 / shown * room };
            places.push(at.min(1.0));
        }
        Self { places, pauses, seconds: Some(length) }
    }

    /// Position of a moment, from 0 to 1.
    pub(super) fn place(&self, point: usize) -> f64 {
        self.places.get(point).copied().unwrap_or(1.0)
    }

    /// Index of the moment after each shortened pause, and the pause in seconds.
    pub(super) fn pauses(&self) -> impl Iterator<Item = (usize, i64)> {
        self.pauses.iter().copied()
    }

    /// Seconds from the first to the last moment; `None` if they are equidistant.
    pub(super) fn seconds(&self) -> Option<i64> {
        self.seconds
    }
}

/// Splits a series at the shortened pauses; `point` gives the moment of an item.
pub(super) fn stretches<'a, T>(all: &'a [T], moments: &Moments, point: impl Fn(&T) -> usize) -> Vec<&'a [T]> {
    let mut parts = Vec::new();
    let mut rest = all;
    for (after, _) in moments.pauses() {
        let (before, others) = rest.split_at(rest.partition_point(|one| point(one) < after));
        parts.push(before);
        rest = others;
    }
    parts.push(rest);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn moments_stand_as_far_apart_as_they_were() {
        let moments = Moments::new(4, &[0, DAY, 2 * DAY, 4 * DAY]);
        let percent = |moments: &Moments, number| -> Vec<i32> {
            (0..number).map(|point| (100.0 * moments.place(point)).round() as i32).collect()
        };
        assert_eq!(percent(&moments, 4), [0, 25, 50, 100]);
        assert_eq!(moments.pauses().count(), 0);
        assert_eq!(percent(&Moments::new(1, &[7]), 1), [50]);
        assert_eq!(percent(&Moments::new(3, &[]), 3), [0, 50, 100], "no dates");
        assert_eq!(percent(&Moments::new(2, &[5, 5]), 2), [0, 100], "one date");
    }

    #[test]
    fn a_year_without_a_run_leaves_the_room_to_the_runs() {
        let mut seconds: Vec<i64> = (0..10).map(|day| day * DAY).collect();
        seconds.extend((0..10).map(|day| (365 + day) * DAY));
        let moments = Moments::new(20, &seconds);
        assert_eq!(moments.pauses().collect::<Vec<_>>(), [(10, 356 * DAY)]);
        assert!((moments.place(9) - (1.0 - LEFT) / 2.0).abs() < 1e-9, "{}", moments.place(9));
        assert!((moments.place(10) - moments.place(9) - LEFT).abs() < 1e-9);
        assert!((moments.place(19) - 1.0).abs() < 1e-9);
        let values: Vec<usize> = (0..20).filter(|point| *point != 10).collect();
        let parts: Vec<usize> = stretches(&values, &moments, |point| *point).iter().map(|part| part.len()).collect();
        assert_eq!(parts, [10, 9]);
    }

    #[test]
    fn weekends_are_no_pauses_and_places_ascend_whatever_the_dates() {
        let days = (0_i64..60).filter(|day| day % 7 < 5).map(|day| day * DAY);
        let seconds: Vec<i64> = days.collect();
        assert_eq!(Moments::new(seconds.len(), &seconds).pauses().count(), 0);
        for seconds in
            [vec![0, 0, 0, 9 * DAY, 9 * DAY], vec![0, 1, 2, 1_000_000, 1_000_001, 90_000_000], vec![0, 400 * DAY]]
        {
            let moments = Moments::new(seconds.len(), &seconds);
            let places: Vec<f64> = (0..seconds.len()).map(|point| moments.place(point)).collect();
            assert!(
                places.is_sorted() && places[0].abs() < 1e-9 && places.iter().all(|place| *place <= 1.0),
                "{places:?}"
            );
        }
    }
}
