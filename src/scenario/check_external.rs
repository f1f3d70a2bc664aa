//! Checks of `flow: external`: the agent's address, its settings, and what its traffic can show.

use super::check::Checker;
use super::check_services::login;
use super::diagnostic::{At, Mistake, did_you_mean};
use super::external::{AgentTarget, OPENAI_SHAPE, PORT};
use super::{Case, Expectation, SequenceStep};
use crate::platform::placeholders::{Piece, either};
use crate::settings::catalogue::DialectEntry;
use crate::settings::{Enforcement, Limits};
use crate::trace::EXTERNAL;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Code of the mistake that an agent can neither be started nor be reached. The cases of a test runner need no agent.
pub(super) const NO_TARGET: &str = "no-target";

/// The other use of a scenario without `target`.
const BY_RUNNER: &str = "cases that a test runner of yours begins need none: `ragcheck exec --scenario FILE -- COMMAND` reads such a file; keep it \
     outside the project's `scenarios`";

impl Checker<'_> {
    /// Checks the top-level settings of a scenario with an external agent.
    pub(super) fn external(&mut self) {
        let (scenario, root) = (self.scenario, At::ROOT);
        if !self.is_external() {
            for (key, given) in [
                ("target", scenario.target.is_some()),
                ("roles", scenario.roles.is_some()),
                ("vars", !scenario.vars.is_empty()),
                ("services", !scenario.services.is_empty()),
                ("reset", scenario.reset.is_some()),
                ("probe", scenario.probe.is_some()),
                ("proxy", scenario.proxy.is_some()),
                ("proxy_hosts", !scenario.proxy_hosts.is_empty()),
            ] {
                if given {
                    let message = format!("`{key}` is about an agent that runs elsewhere");
                    let mistake = Mistake::at(root.key(key), "not-external", message).on_key();
                    self.say(mistake.label("write `flow: external`, or remove it"));
                }
            }
            return;
        }
        match &scenario.target {
            None => {
                let variants = root.key("variants");
                let named = scenario.variants.iter().find(|(_, variant)| variant.flow.as_deref() == Some(EXTERNAL));
                let variant = named.map(|(name, _)| variants.key(name));
                let at = variant.as_ref().map_or(root.key("flow"), |variant| variant.key("flow"));
                let mistake = Mistake::at(at, NO_TARGET, "`target` is missing");
                self.say(mistake.label("add `target: {command: COMMAND}`, or `target: {http: URL}`").help(BY_RUNNER));
            }
            Some(target) => {
                let at = root.key("target");
                self.target(target, at);
                if let Some(sources) = &target.sources {
                    self.pointer(sources, at.key("sources"));
                }
                self.may_refuse(&target.may_refuse, at.key("may_refuse"));
                if target.spans && target.http.is_none() {
                    let message = "an agent without `http` gets no `traceparent`, so its spans belong to no trial";
                    let mistake = Mistake::at(at.key("spans"), "no-traceparent", message);
                    self.say(mistake.label("add `http: URL`, or remove it"));
                }
                if let Some(body) = &target.send {
                    self.body(body, at.key("send"));
                }
            }
        }
        if let Some(reset) = &scenario.reset {
            let at = root.key("reset");
            let started = scenario.target.as_ref().is_some_and(|target| !target.command.is_empty());
            self.address(&reset.http, started, at.key("http"));
        }
        self.probe(root.key("probe"));
        self.services(root.key("services"));
        self.proxy(root.key("proxy"));
        self.proxy_hosts(&scenario.proxy_hosts, root.key("proxy_hosts"));
        self.roles(root.key("roles"));
        self.vars(&scenario.vars, root.key("vars"));
        if scenario.flows().all(|flow| flow == EXTERNAL) {
            self.not_ours();
        }
        self.variants_not_ours();
    }

    /// Whether one of its variants is an external agent.
    fn is_external(&self) -> bool {
        self.scenario.flows().any(|flow| flow == EXTERNAL)
    }

    /// Checks how the agent is started and reached.
    fn target(&mut self, target: &AgentTarget, at: At<'_>) {
        let started = !target.command.is_empty();
        match &target.http {
            Some(url) => self.address(url, started, at.key("http")),
            None if started => {}
            None => {
                let mistake = Mistake::at(at, NO_TARGET, "the agent can neither be started nor be reached").on_key();
                self.say(mistake.label("add `command: COMMAND`, `http: URL`, or both"));
            }
        }
        if started && target.command[0].contains("{{") {
            let mistake = Mistake::at(at.key("command"), "bad-command", "the program itself cannot be a placeholder");
            self.say(mistake.label("begin with the program: `python agent.py --port {{port}}`"));
        }
        for (key, given) in [
            ("ready", target.ready.is_some()),
            ("ready_within", target.ready_within.is_some()),
            ("restart", target.restart.is_some()),
            ("env", !target.env.is_empty()),
        ] {
            if given && !started {
                let message = format!("`{key}` is about a process that ragcheck starts");
                let mistake = Mistake::at(at.key(key), "no-command", message).on_key();
                self.say(mistake.label("add `command`, or remove it"));
            }
        }
        for (key, given) in [("ready", target.ready.is_some()), ("headers", !target.headers.is_empty())] {
            if given && target.http.is_none() && started {
                let message = format!("`{key}` needs `http`: this agent reads its turns from its standard input");
                self.say(Mistake::at(at.key(key), "no-http", message).on_key().label("add `http`, or remove it"));
            }
        }
        if target.ready.as_ref().is_some_and(|path| !path.starts_with('/')) {
            self.say(Mistake::at(at.key("ready"), "bad-path", "not a path").label("write `/health`, for example"));
        }
        let headers = at.key("headers");
        for (name, value) in &target.headers {
            let sound = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            if name.is_empty() || !name.chars().all(sound) || value.chars().any(char::is_control) {
                self.say(Mistake::at(headers.key(name), "bad-header", "not a header that can be sent").on_key());
            }
        }
        if target.answer != OPENAI_SHAPE {
            self.pointer(&target.answer, at.key("answer"));
        }
    }

    /// Checks a URL; `started` if `command` starts the agent, which may then have `{{port}}` for its port.
    pub(super) fn address(&mut self, url: &str, started: bool, at: At<'_>) {
        if !started && url.contains(PORT) {
            let mistake = Mistake::at(at, "bad-url", "`{{port}}` is the port of a process that ragcheck starts");
            self.say(mistake.label("add `target.command`, or write the agent's port").without_quote());
            return;
        }
        let help = "remove it: what an agent sends in `Authorization` is passed on, and `target.headers` may have \
                    `{{env.NAME}}`";
        if let Some(mistake) = login(url, at, help) {
            self.say(mistake);
            return;
        }
        let host = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
        let host = host.map(|(_, rest)| rest.split('/').next().unwrap_or_default());
        if host.is_none_or(str::is_empty) || url.contains(char::is_whitespace) {
            let mistake = Mistake::at(at, "bad-url", "not an address that can be posted to");
            self.say(mistake.label("write `http://host:port/path`").without_quote());
        } else if started && !host.is_some_and(is_this_machine) {
            let mistake = Mistake::at(at, "bad-url", "`command` starts the agent on this machine, and this is another");
            self.say(mistake.label("write `http://127.0.0.1:{{port}}/path`").without_quote());
        }
    }

    /// Checks where the agent's keyword index is read.
    fn probe(&mut self, at: At<'_>) {
        let scenario = self.scenario;
        let Some(probe) = &scenario.probe else { return };
        self.pointer(&probe.at, at.key("at"));
        let started = scenario.target.as_ref().is_some_and(|target| !target.command.is_empty());
        match &probe.service {
            None => self.address(&probe.http, started, at.key("http")),
            Some(name) => {
                if scenario.services.get(name).is_none_or(|service| service.http.is_none()) {
                    let known = scenario.services.iter().filter(|(_, service)| service.http.is_some());
                    let known: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
                    let mistake = Mistake::at(at.key("service"), "unknown-service", "no HTTP service of this name");
                    let advice = did_you_mean(name, known.iter().copied());
                    self.say(mistake.label(if known.is_empty() { "declare it in `services`".into() } else { advice }));
                }
                if !probe.http.starts_with('/') {
                    let mistake = Mistake::at(at.key("http"), "bad-url", "not a path at the service");
                    self.say(mistake.label("write `/path`").without_quote());
                }
            }
        }
        if scenario.roles.as_ref().is_none_or(|roles| roles.index.is_empty()) {
            let mistake = Mistake::at(at, "no-index", "no tool has the role `index`, so nothing would be read");
            self.say(mistake.on_key().label("add `roles: {index: TOOL}`"));
        }
    }

    pub(super) fn pointer(&mut self, pointer: &str, at: At<'_>) {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let mistake = Mistake::at(at, "bad-pointer", "not a JSON pointer");
            self.say(mistake.label(format!("write `/{}`", pointer.replace('.', "/"))));
        }
    }

    fn body(&mut self, body: &Value, at: At<'_>) {
        let flows = self.flows.iter().flat_map(|flow| flow.placeholders.iter().map(|name| (*name).to_owned()));
        let variants = self.scenario.variants.values().map(|variant| &variant.prompts);
        let prompts: BTreeSet<&String> = variants.chain([&self.scenario.prompts]).flat_map(BTreeMap::keys).collect();
        let known: Vec<String> = flows.chain(prompts.iter().map(|name| format!("{PROMPT}{name}"))).collect();
        let mut names = Vec::new();
        placeholders(body, &mut names);
        for name in names.iter().filter(|name| !known.contains(name)) {
            let message = format!("unknown placeholder `{{{{{name}}}}}`");
            let mistake = Mistake::at(at, "unknown-placeholder", message).on_key();
            self.say(mistake.label(did_you_mean(name, known.iter().map(String::as_str))));
        }
        let sent: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_prefix(PROMPT)).collect();
        for name in prompts.iter().filter(|name| sent.contains(name.as_str())) {
            self.prompt_of_each_variant(name);
        }
        if !names.iter().any(|name| matches!(name.as_str(), "message" | "messages" | "ui_messages" | "history")) {
            let mistake = Mistake::at(at, "nothing-said", "the agent would never get the user's words").on_key();
            self.say(mistake.help("put `{{message}}` where the agent expects them"));
        }
    }

    /// Reports variants without a prompt that turns carry: the agent would get the name of the placeholder.
    fn prompt_of_each_variant(&mut self, prompt: &str) {
        let scenario = self.scenario;
        if scenario.prompts.contains_key(prompt) {
            return;
        }
        let variants = At::ROOT.key("variants");
        for (name, variant) in scenario.variants.iter().filter(|(_, variant)| scenario.flow_of(variant) == EXTERNAL) {
            if !variant.prompts.contains_key(prompt) {
                let message = format!("`{name}` has no prompt `{prompt}`, which `target.send` sends");
                let mistake = Mistake::at(variants.key(name), "no-prompt", message).on_key();
                self.say(mistake.help(format!(
                    "write `prompts: {{{prompt}: …}}` here, or beside `variants` for all that have none"
                )));
            }
        }
    }

    fn roles(&mut self, at: At<'_>) {
        let Some(roles) = &self.scenario.roles else { return };
        let given: Vec<_> = roles.given().collect();
        if given.is_empty() {
            let mistake = Mistake::at(at, "asserts-nothing", "no tool is given a role").on_key();
            self.say(mistake.help("write `knowledge: …`, `external: …`, `index: …`, `respond: …`, or remove it"));
        }
        for (ordinal, (role, place, tool)) in given.iter().enumerate() {
            // A bare name has no place in a list: the locator then stops at the role.
            let role_at = at.key(role.as_str());
            let tool_at = role_at.index(*place);
            if tool.trim().is_empty() {
                self.say(Mistake::at(tool_at, "empty-text", "a tool without a name"));
            } else if let Some((other, ..)) = given[..ordinal].iter().find(|(.., earlier)| earlier == tool) {
                let message = format!("this tool is `{}` already", other.as_str());
                self.say(Mistake::at(tool_at, "two-roles", message).label("a tool plays one role"));
            }
        }
    }

    /// Rejects settings that the agent itself decides.
    fn not_ours(&mut self) {
        let (scenario, root) = (self.scenario, At::ROOT);
        let (model, usual) = (&scenario.model, Limits::default());
        let (at, limits) = (root.key("model"), root.key("limits"));
        for (at, set) in [
            (root.key("knowledge"), !scenario.knowledge.is_empty()),
            (root.key("prompts"), !scenario.prompts.is_empty() && !self.sends_prompts()),
            (root.key("enforcement"), scenario.enforcement != Enforcement::default()),
            (at.key("temperature"), model.temperature.is_some()),
            (at.key("max_tokens"), model.max_tokens.is_some()),
            (at.key("parallel_calls"), model.parallel_calls.is_some()),
            (at.key("seeded"), model.seeded),
            (at.key("stream"), model.stream),
            (limits.key("model_calls"), scenario.limits.model_calls != usual.model_calls),
            (limits.key("tool_retries"), scenario.limits.tool_retries != usual.tool_retries),
            (limits.key("transport_retries"), scenario.limits.transport_retries != usual.transport_retries),
        ] {
            if set {
                self.own_matter(at);
            }
        }
    }

    /// Rejects settings that a variant with an external agent cannot have, and checks the dialect of its model.
    fn variants_not_ours(&mut self) {
        let (scenario, root) = (self.scenario, At::ROOT);
        let variants = root.key("variants");
        for (name, variant) in scenario.variants.iter().filter(|(_, variant)| scenario.flow_of(variant) == EXTERNAL) {
            let at = variants.key(name);
            for (key, set) in [
                ("model", variant.model.is_some()),
                ("temperature", variant.temperature.is_some()),
                ("enforcement", variant.enforcement.is_some()),
                ("prompts", !variant.prompts.is_empty() && !self.sends_prompts()),
            ] {
                if set {
                    self.own_matter(at.key(key));
                }
            }
        }
        self.proxied(&scenario.model.provider, false, root.key("model"));
    }

    /// Checks that the proxy serves the dialect of a provider, which may be a search service's if `searches`.
    pub(super) fn proxied(&mut self, provider: &str, searches: bool, at: At<'_>) {
        let provider = self.around.project.providers.get(provider);
        let dialect = provider.and_then(|provider| self.around.catalogues.dialect(&provider.dialect));
        let served = |dialect: &DialectEntry| dialect.proxied || searches && dialect.searches;
        if dialect.is_some_and(|dialect| !served(dialect)) {
            let proxied = self.around.catalogues.dialects.iter().filter(|dialect| dialect.proxied);
            let proxied: Vec<String> = proxied.map(|dialect| format!("`{}`", dialect.name)).collect();
            let message = format!("the proxy speaks {} only", proxied.join(", "));
            let mistake = Mistake::at(at.key("provider"), "wrong-dialect", message);
            self.say(mistake.help("name a provider of that dialect; the agent reaches it through the proxy"));
        }
    }

    /// Whether the turns of an external agent carry prompts of the variant.
    pub(super) fn sends_prompts(&self) -> bool {
        let send = self.scenario.target.as_ref().and_then(|target| target.send.as_ref());
        let mut names = Vec::new();
        if let Some(body) = send {
            placeholders(body, &mut names);
        }
        names.iter().any(|name| name.starts_with(PROMPT))
    }

    fn own_matter(&mut self, at: At<'_>) {
        let mistake = Mistake::at(at, "agents-own", "the agent itself decides this; it cannot be set here").on_key();
        self.say(
            mistake
                .help("remove it; `{{variant}}` in `target.send` names the variant, `{{prompt.NAME}}` sends a prompt"),
        );
    }

    /// Rejects settings of a case that an external agent cannot follow.
    pub(super) fn external_case(&mut self, case: &Case, at: At<'_>) {
        if !self.is_external() {
            if case.asks_nothing {
                let message = "`asks_nothing` is about an agent that runs elsewhere";
                let mistake = Mistake::at(at.key("asks_nothing"), "not-external", message).on_key();
                self.say(mistake.label("remove it"));
            }
            return;
        }
        let sequence = at.key("sequence");
        for (index, step) in case.sequence.iter().enumerate() {
            let at = sequence.index(index);
            match step {
                SequenceStep::Conversation(one) => {
                    let conversation = at.key("conversation");
                    let turns = conversation.key("turns");
                    for (index, turn) in one.turns.iter().enumerate() {
                        let at = turns.index(index);
                        self.shown(turn.expect.as_ref(), at.key("expect"));
                    }
                }
                SequenceStep::Together(_) => {
                    let message = "the traffic of conversations side by side cannot be told apart";
                    let mistake = Mistake::at(at.key("together"), "together-outside", message).on_key();
                    self.say(mistake.help("let them run one after another, each as a `conversation`"));
                }
            }
        }
        let turns = at.key("turns");
        for (index, turn) in case.turns.iter().enumerate() {
            let at = turns.index(index);
            self.shown(turn.expect.as_ref(), at.key("expect"));
        }
        self.shown(case.expect.as_ref(), at.key("expect"));
    }

    fn shown(&mut self, expect: Option<&Expectation>, at: At<'_>) {
        if self.scenario.probe.is_none() && expect.is_some_and(|expect| expect.keywords.is_some()) {
            let message = "traffic does not show what an agent's keyword index holds";
            let mistake = Mistake::at(at.key("keywords"), "not-shown", message).on_key();
            self.say(mistake.help(
                "add a `probe` that reads the index, or expect a call of the tool: `calls: [{exactly_once: TOOL}]`",
            ));
        }
    }
}

/// What the placeholder of a variant's prompt begins with.
const PROMPT: &str = "prompt.";

/// Whether a host with its port is this machine.
fn is_this_machine(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

/// Whether the body of a turn contains that placeholder.
pub(super) fn is_filled_with(body: &Value, name: &str) -> bool {
    let mut names = Vec::new();
    placeholders(body, &mut names);
    names.iter().any(|known| known == name)
}

fn placeholders(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let plain = |name: &str| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
            let name = |name: &&str| plain(name) || name.starts_with(PROMPT);
            names.extend(either(text).into_iter().filter_map(Piece::name).filter(name).map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| placeholders(item, names)),
        Value::Object(members) => members.values().for_each(|item| placeholders(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_names_in_braces_of_every_text_are_found() {
        let send = json!({"q": "{message} ({variant}, {turn})", "h": "{history}", "n": 3, "kept": "{other}"});
        let mut names = Vec::new();
        placeholders(&send, &mut names);
        assert_eq!(names, ["message", "variant", "turn", "history", "other"]);
    }
}
