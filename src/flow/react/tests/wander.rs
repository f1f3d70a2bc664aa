//! Random model behaviour: every turn ends once, follows the state machine, takes at most five steps, cites only
//! passages graded relevant, and stores every change.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn anything(random: &mut ChaCha8Rng) -> Says {
    let queries = ["warranty months", "frost", "zeppelin", "heater guard", "../../etc/passwd", "months"];
    let approaches = ["direct", "broader", "synonyms", "related"];
    match random.random_range(0..16) {
        0 => Says::Text("It is so [1] [7]."),
        1 => Says::Text(""),
        2 => Says::TimesOut,
        3 => Says::Late,
        4 => Says::Calls(vec![("web_search", json!({}))]),
        5 => Says::Calls(vec![(SEARCH, json!({"query": "warranty"}))]),
        6..9 => grades(&[random.random_range(1..6)], random.random()),
        9 | 10 => analysis("Other words."),
        _ => search(queries[random.random_range(0..6)], approaches[random.random_range(0..4)]),
    }
}

#[test]
fn whatever_a_model_does_a_turn_ends_within_its_bounds() {
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let model: Vec<Says> = (0..40).map(|_| anything(&mut random)).collect();
        let played = Play { failures: random.random_range(0..3), ..Play::default() }.of(model, &["One?", "Two?"]);
        assert_eq!(played.outcomes().len(), 2, "seed {seed}");
        for turn in 0..2 {
            let of_turn = |event: &&Recorded| event.turn == turn;
            let mut relevant = Vec::new();
            let (mut steps, mut moves, mut stored) = (0, 0, 0);
            for event in played.events.iter().filter(of_turn) {
                match &event.what {
                    What::Moved(moved) => {
                        moves += 1;
                        steps += u32::from(moved.from == "thinking" && moved.to != "thinking" && moved.on != "ready");
                    }
                    What::Logged(Logged::Graded { relevant: ids, .. }) => relevant.extend(ids.clone()),
                    What::Logged(Logged::Persisted { .. }) => stored += 1,
                    What::TurnEnded(ended) => {
                        if let TurnOutcome::Answered(answer) = &ended.outcome {
                            assert!(answer.sources.iter().all(|source| relevant.contains(&source.id)), "seed {seed}");
                            assert!(!answer.text.trim().is_empty(), "seed {seed}");
                        }
                    }
                    _ => {}
                }
            }
            assert!(steps <= 6, "seed {seed}: {steps} ends of thinking");
            assert_eq!(stored, moves + 2, "seed {seed}: before the first request, after each move, at the end");
        }
    }
}
