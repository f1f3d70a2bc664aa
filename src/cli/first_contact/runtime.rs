//! The steps of a CI workflow that install what the agent's command needs.

/// Programs of Python packages that run an agent.
const PYTHON: [&str; 6] = ["uvicorn", "gunicorn", "flask", "fastapi", "uv", "poetry"];
/// Programs that run JavaScript.
const NODE: [&str; 8] = ["node", "npm", "npx", "pnpm", "yarn", "tsx", "bun", "deno"];
/// First line of steps that are known.
const KNOWN: &str = "      # What the agent needs: `ragcheck run` starts it by `target.command` of the scenario.\n";
/// Line for a program that is named by its place on the machine of the project's author.
const ABSOLUTE: &str =
    "      # `target.command` names its program by a path of your machine: name it by one that this job has too.\n";

/// Steps for a command; `has` tells whether the project has a file of that name. An empty command is an agent that runs
/// elsewhere.
pub(super) fn steps(command: &[String], has: impl Fn(&str) -> bool) -> String {
    let Some(program) = command.first() else {
        return "      # Start your agent here, with the base URLs of ragcheck's proxy, and wait until it is ready:\n      \
                # - run: OPENAI_BASE_URL=http://127.0.0.1:8101/model/v1 python agent.py &\n"
            .to_owned();
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let absolute = if program.starts_with('/') { ABSOLUTE } else { "" };
    // Quotes would be needed for other paths.
    let plain = |path: &str| path.chars().all(|letter| letter.is_ascii_alphanumeric() || "./_-".contains(letter));
    let steps = if name.starts_with("python") || PYTHON.contains(&name) {
        let venv = program.strip_suffix(name).and_then(|folder| folder.strip_suffix("/bin/"));
        let install = match venv.filter(|venv| plain(venv) && absolute.is_empty()) {
            Some(venv) => format!(
                "- run: python -m venv {venv}\n      \
                 - run: if [ -f requirements.txt ]; then {venv}/bin/pip install -r requirements.txt; fi\n"
            ),
            None => "- run: if [ -f requirements.txt ]; then pip install -r requirements.txt; fi\n".to_owned(),
        };
        format!(
            "      - uses: actions/setup-python@v5\n        with:\n          python-version: '3.12'\n      {install}"
        )
    } else if NODE.contains(&name) {
        "      - uses: actions/setup-node@v4\n        with:\n          node-version: 22\n      \
         - run: if [ -f package-lock.json ]; then npm ci; fi\n"
            .to_owned()
    } else if name == "go" || has("go.mod") {
        let build = if plain(program) && program.starts_with("./") {
            format!("      - run: go build -o {program} .\n")
        } else {
            String::new()
        };
        format!("      - uses: actions/setup-go@v5\n        with:\n          go-version-file: go.mod\n{build}")
    } else {
        return format!(
            "      # Install here what the agent needs: `ragcheck run` starts it by `target.command` of the scenario.\n{absolute}"
        );
    };
    format!("{KNOWN}{absolute}{steps}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(command: &str, files: &[&str]) -> String {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        steps(&words, |file| files.contains(&file))
    }

    #[test]
    fn each_runtime_is_installed_and_what_is_built_here_is_built_there() {
        for (command, files, parts) in [
            ("python3 agent.py", &[][..], &["actions/setup-python@v5", "then pip install -r requirements.txt"][..]),
            (".venv/bin/python agent.py", &[], &["python -m venv .venv\n", "then .venv/bin/pip install -r"]),
            ("uvicorn agent:app", &[], &["actions/setup-python@v5"]),
            ("node agent.mjs", &[], &["actions/setup-node@v4", "npm ci"]),
            ("go run .", &["go.mod"], &["actions/setup-go@v5"]),
            ("./desk --port {{port}}", &["go.mod"], &["actions/setup-go@v5", "- run: go build -o ./desk .\n"]),
            ("./desk", &[], &["# Install here what the agent needs"]),
            ("/opt/py/bin/python agent.py", &[], &["a path of your machine", "then pip install"]),
            ("", &[], &["# Start your agent here"]),
        ] {
            let steps = steps_of(command, files);
            assert!(parts.iter().all(|part| steps.contains(part)), "{command}: {steps}");
            assert!(steps.lines().all(|line| line.starts_with("      ")), "{command}: {steps}");
        }
        assert!(!steps_of("go run .", &["go.mod"]).contains("go build"), "`go run` builds");
        assert!(!steps_of("./desk;x", &["go.mod"]).contains("go build"), "a shell would read more than a path");
    }
}
