//! The service as the agent of `flow: external`: what its traffic shows is judged as in process.

use super::*;
use std::collections::BTreeMap;
use std::net::TcpListener;

/// Criteria that the traffic of an agent does not show: the list of docs/serve.md.
const NOT_SHOWN: [&str; 6] =
    ["SC-002", "SC-007", "every-answer-cites", "nothing-found-is-said", "tenants-apart", "states"];

/// The verdicts of all criteria and gates of the newest run, by id.
fn verdicts(project: &Project) -> BTreeMap<String, (String, u64)> {
    let run = project.latest("run.json");
    let rows = ["criteria", "gates"].into_iter().flat_map(|list| run[list].as_array().cloned().unwrap_or_default());
    rows.map(|row| {
        let id = row["id"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
        (id, (row["verdict"].as_str().unwrap_or_default().to_owned(), row["failures"].as_u64().unwrap_or(0)))
    })
    .collect()
}

/// Runs a scenario in process and against the service, and gives both sides' verdicts.
fn both(flow: &str, scenario: &str, roles: &str, tenant: Option<&str>) -> [BTreeMap<String, (String, u64)>; 2] {
    let (project, _simulator) = recording();
    let file = format!("scenarios/{scenario}.yaml");
    project.run(&["run", &file, "--mode", "live", "--repeat=1", "--no-history"]);
    let own = verdicts(&project);
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let (model, search) = (format!("http://{proxy}/model/v1"), format!("http://{proxy}/search"));
    let service = Service::start(&project, flow, &["--test-target", "--model-url", &model, "--search-url", &search]);
    let tenant = tenant.map_or(String::new(), |tenant| format!(", tenant_id: {tenant}"));
    let target = format!(
        "flow: external\ntarget:\n  http: 'http://{0}/api/chat/query'\n  send: {{query: '{{message}}', session_id: '{{conversation_id}}'{tenant}}}\nreset: {{http: 'http://{0}/api/test/reset'}}\nproxy: {proxy}\nroles: {roles}\n",
        service.address
    );
    let text = project.read(&file);
    let lines =
        text.lines().filter(|line| !line.starts_with("knowledge:") && !line.trim_start().starts_with("tenant:"));
    let text: String =
        lines.map(|line| if line == format!("flow: {flow}") { target.clone() } else { format!("{line}\n") }).collect();
    project.write(&file, &text);
    let agent = format!("http://{}", service.address);
    let outcome = project.run(&["--agent", &agent, "run", &file, "--mode", "live", "--repeat=1", "--no-history"]);
    let theirs = verdicts(&project);
    assert!(!theirs.is_empty(), "{}{}", outcome.stdout, outcome.stderr);
    [own, theirs]
}

fn compared([own, theirs]: [BTreeMap<String, (String, u64)>; 2], least: usize) {
    let mut same = 0;
    for (id, verdict) in &own {
        if NOT_SHOWN.contains(&id.as_str()) {
            continue;
        }
        let served = theirs.get(id).unwrap_or_else(|| panic!("{id} is missing"));
        assert_eq!(served, verdict, "{id}: in process {verdict:?}, served {served:?}");
        same += usize::from(verdict.0 != "NOT_MEASURED");
    }
    assert!(same >= least, "only {same} criteria were measured: {theirs:?}");
}

#[test]
fn tool_rag_served_is_judged_as_in_process_where_its_traffic_shows_it() {
    let roles = "{knowledge: knowledge_base_search, external: perplexity_search, index: index_keywords, respond: generate_response}";
    compared(both("tool-rag", "knowledge", roles, None), 3);
}
