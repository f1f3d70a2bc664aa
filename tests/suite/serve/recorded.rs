//! The shipped recordings of the service: `ragcheck serve` answers them again, over HTTP, without its providers.

use super::*;
use crate::ports;
use crate::project::Outcome;

#[test]
fn the_shipped_recordings_of_the_service_replay_and_hold_the_chat_interface() {
    let project = Project::shipped();
    let mut services = Vec::new();
    for (flow, scenario, written, proxy) in [
        ("tool-rag", "knowledge", "127.0.0.1:8121", "127.0.0.1:8122"),
        ("two-stage", "two-stage", "127.0.0.1:8123", "127.0.0.1:8124"),
    ] {
        let here = ports::free_address();
        let (model, search) = (format!("http://{here}/model/v1"), format!("http://{here}/search"));
        let settings = format!("scenarios/{scenario}.yaml");
        let more = ["--scenario", &settings, "--test-target", "--model-url", &model, "--search-url", &search];
        let more = if flow == "two-stage" { &more[..5] } else { &more[..] };
        let service = Service::start(&project, flow, more);
        let file = format!("scenarios/served/served-{flow}.yaml");
        let text = project.read(&file).replace(written, &service.address).replace(proxy, &here);
        project.write(&file, &text);
        services.push(service);
    }
    let agents = services.iter().map(|service| format!("http://{}", service.address)).collect::<Vec<_>>().join(" ");
    let run = ["run", "scenarios/served", "--criteria", "scenarios/served/criteria.yaml", "--no-history"];
    let outcome = Outcome::of(project.command(&run).env("RAGCHECK_AGENT", agents));
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("12 trials: 12 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    let run = project.latest("run.json");
    let chat = run["requirements"].as_array().into_iter().flatten().find(|row| row["id"] == "CHAT-1");
    let cases = chat.expect("CHAT-1")["cases"].as_array().expect("cases").clone();
    assert!(cases.len() == 12 && cases.iter().all(|case| case["passed"] == 1 && case["trials"] == 1), "{cases:?}");
}
