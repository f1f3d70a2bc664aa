//! Defects of the harness itself.
use super::edit::{find, is, pick, same_turn};
use serde_json::json;

mutants! {
    "H-6: the duration of a turn leaves out its tools", |e| find(e, "turn_ended"), |ev, end| {
        let calls = pick(ev, |e| same_turn(e, &ev[end]) && is("model_called")(e));
        let took: u64 = calls.iter().filter_map(|&i| ev[i]["what"]["model_called"]["took_us"].as_u64()).sum();
        let old = ev[end]["what"]["turn_ended"]["took_us"].clone();
        ev[end]["what"]["turn_ended"]["took_us"] = json!(took);
        old != took
    };
}
