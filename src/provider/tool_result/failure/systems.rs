//! How operating systems, shells, databases and servers of HTTP say that something failed; a text that is one is no document.

use super::languages::says_more;
use super::{OF_CLIENTS, OF_SERVERS, is_alone, says_any};
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Reasons of an operating system, as its programs print them.
const REASONS: [&str; 19] = [
    "permission denied",
    "no such file or directory",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "operation timed out",
    "no route to host",
    "network is unreachable",
    "broken pipe",
    "is a directory",
    "not a directory",
    "operation not permitted",
    "input/output error",
    "no space left on device",
    "name or service not known",
    "temporary failure in name resolution",
    r"segmentation fault(?: \(core dumped\))?",
    r"access is denied\.",
    "read-only file system",
];
/// Codes of such reasons in JavaScript and C.
const CODES: &str = "E(?:NOENT|ACCES|PERM|EXIST|NOTDIR|ISDIR|MFILE|CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|ADDRINUSE|HOSTUNREACH|NETUNREACH)";
static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("^{CODES}$")).ok());
/// Programs that a shell does not find.
const PROGRAMS: &str = "awk|aws|bash|curl|docker|ffmpeg|gcloud|gh|git|go|java|jq|kubectl|make|mysql|node|npm|npx|perl|php|pip3?|psql|python3?|rg|ruby|sed|sqlite3|wget|yq";

/// Words that stand alone, or behind a program and what it was about: `cat: kb.txt: No such file or directory`.
pub(super) static OF_SYSTEMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let reasons = REASONS.join("|");
    let shell = r"(?:/(?:\w+/)*)?(?:ba|z|da|k|a)?sh: (?:(?:line )?\d+: )?";
    let forms = [
        format!(r"(?:(?:[a-z/~.][\w./~+-]*: (?:[^\n]{{1,160}}: )?)?(?i:{reasons})\.?\s*)+"),
        // Go's, of a file.
        format!(r"(?-u:[\w ,'-]{{1,40}}: )?(?:open|stat|lstat|read|write|mkdir|remove|chdir|fork/exec) \S+: (?:{reasons})\s*"),
        r"(?:unexpected )?EOF\s*".to_owned(),
        format!(r"{shell}(?:\S+: (?:command )?not found|command not found: \S+)\s*"),
        format!(r"(?:{PROGRAMS}): (?:command )?not found\s*|[\w./+-]+: command not found\s*"),
        format!(r"{CODES}: [a-z][^\n]*"),
        format!(r"(?:connect|read|write|spawn|listen|getaddrinfo)(?: \S+)? {CODES}(?: \S+)*\s*"),
        r"socket hang up\s*|Failed to fetch\s*".to_owned(),
        r"(?i:exit (?:status|code):?|process exited with (?:status|code)|command failed with exit (?:status|code)) [1-9]\d{0,2}\.?(?:\s*|\n.*)".to_owned(),
        r"Command '[^\n]+' returned non-zero exit status \d+\.\s*".to_owned(),
        r"npm ERR! .*".to_owned(),
        // Parsers of JSON.
        r"Expecting [^\n]+: line \d+ column \d+ \(char \d+\)\s*".to_owned(),
        r"Unexpected token [^\n]{1,60} in JSON at position \d+\s*|Unexpected end of JSON input\s*".to_owned(),
        // Databases and their clients.
        r"(?:\w+\.)+(?:errors|exceptions)\.[A-Z]\w+: \S.*".to_owned(),
        r"\((?:\w+\.)+[A-Z]\w*(?:Error|Exception)\) \S.*".to_owned(),
        r"psql: (?:error: |FATAL: |could not ).*".to_owned(),
        r"FATAL:  \S[^\n]*".to_owned(),
        r"ORA-\d{5}: \S.*".to_owned(),
        r"(?:\(error\) |-)(?:ERR|NOAUTH|WRONGTYPE|READONLY|LOADING)\b[^\n]*".to_owned(),
        r"fatal: (?:not a git repository|repository '|unable to access '|could not read |Authentication failed)[^\n]*\s*".to_owned(),
        // Proxies.
        r"upstream connect error or disconnect/reset before headers\b[^\n]*|no healthy upstream\s*|upstream request timeout\s*".to_owned(),
        format!(r"[45]\d\d (?:{})\.?\s*", OF_CLIENTS.join("|")),
    ];
    Regex::new(&format!(r"^\s*(?:{})$", forms.join("|").replace(".*", r"[\s\S]*"))).ok()
});
/// The short page of a server whose title or heading is a status, and nothing else.
pub(super) static PAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let reasons = [&OF_SERVERS[..], &OF_CLIENTS].concat().join("|").replace(" timeout", " time-?out");
    let known = format!(r"(?i:(?:HTTP Status )?(?:[45]\d\d(?: [–-])? )?(?:{reasons})|Error [45]\d\d \([\w ]+\)!!1)");
    let titled = r"[45]\d\d(?: [A-Z][A-Za-z'-]+){1,5}|[\w.-]+ \| [45]\d\d: [A-Z][a-z -]+";
    let tags = |names: &str| format!(r"(?:<(?i:{names})\b[^>]*>\s*)");
    let (outer, head) = (tags("!doctype|html|head|meta|body|center"), tags("head|meta"));
    let html = format!(r"{}?{}{head}+", tags("!doctype"), tags("html"));
    let express =
        r"<(?i:title)>Error</(?i:title)>\s*</(?i:head)>\s*<body>\s*<pre>(?:Cannot [A-Z]+ /|\w*Error: )[\s\S]*";
    Regex::new(&format!(
        r"^\s*(?:{outer}*<(?i:title|h1)>\s*{known}\s*</[\s\S]{{0,1000}}|{html}(?:<(?i:title)>\s*(?:{titled})\s*</[\s\S]{{0,1000}}|{express}))$"
    ))
    .ok()
});

/// Whether a text is such words, and no sentence or paragraph about them, or such a page.
pub(super) fn is_error(text: &str) -> bool {
    let is = |known: &Option<Regex>| known.as_ref().is_some_and(|known| known.is_match(text));
    let goes_on = || text.lines().any(says_more) || text.trim().contains("\n\n");
    is(&OF_SYSTEMS) && !goes_on() || is(&PAGE)
}

/// Members of the result of a process beside its exit code, and of an error of Node or its client of HTTP.
const OF_PROCESSES: [&str; 10] =
    ["stdout", "output", "stderr", "command", "cmd", "args", "cwd", "signal", "duration", "duration_ms"];
const OF_NODE: [&str; 10] =
    ["errno", "syscall", "address", "port", "hostname", "dest", "name", "stack", "cause", "config"];

/// Whether an object is what a program left behind that failed and printed no result, an error of Node, or a gateway's:
/// nothing else stands in it.
pub(super) fn is_report(members: &Map<String, Value>) -> bool {
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let exits = ["exit_code", "exitCode", "exit_status", "returncode", "returnCode"];
    let failed = exits.iter().find_map(|name| members.get(*name)?.as_i64()).is_some_and(|code| code != 0);
    let printed = says_any(members, &["stdout", "output"]);
    let of_node = CODE.as_ref().is_some_and(|known| known.is_match(text("code")));
    failed
        && !printed
        && !text("stderr").trim().is_empty()
        && is_alone(members, |name| exits.contains(&name) || OF_PROCESSES.contains(&name))
        || of_node
            && (says_any(members, &["errno", "syscall"]) || text("message").contains(text("code")))
            && is_alone(members, |name| OF_NODE.contains(&name))
        || members.len() == 1 && members.get("fault").is_some_and(|fault| fault["faultstring"].is_string())
}

#[cfg(test)]
mod tests {
    use crate::provider::tool_result::{document, error};

    #[test]
    fn systems_shells_databases_and_proxies_say_that_they_failed_and_documents_about_it_are_none() {
        for text in [
            "EOF",
            "Permission denied",
            "cat: /etc/shadow: Permission denied",
            "ls: cannot access '/kb': No such file or directory",
            "cat: a.txt: No such file or directory\ncat: b.txt: No such file or directory",
            "Segmentation fault (core dumped)",
            "sh: 1: yq2: not found",
            "/bin/sh: jq: not found",
            "jq: not found",
            "zsh: command not found: jq",
            "exit code: 127\njq: not found",
            "Command 'jq' returned non-zero exit status 127.",
            "ENOENT: no such file or directory, open '/kb.json'",
            "getaddrinfo ENOTFOUND kb.internal",
            "Unexpected token < in JSON at position 0",
            "Expecting value: line 1 column 1 (char 0)",
            "psycopg2.errors.UndefinedTable: relation \"orders\" does not exist\nLINE 1: SELECT * FROM orders",
            "(psycopg2.OperationalError) could not connect to server: Connection refused",
            "psql: error: connection to server at \"localhost\" failed",
            "FATAL:  password authentication failed for user \"postgres\"",
            "ERROR 1045 (28000): Access denied for user 'root'@'localhost' (using password: NO)",
            "ORA-12541: TNS:no listener",
            "(error) NOAUTH Authentication required.",
            "fatal: repository 'https://x/' not found",
            "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
            "401 Unauthorized",
            "❌ Error: down",
            "Traceback (most recent call last)",
            "<h1>502 Bad Gateway</h1>\nThe server returned an invalid response.",
            "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>",
            "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>Please check your spelling.</p>",
            "<html lang=\"en\">\n<head>\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot GET /search</pre>\n</body>\n</html>",
            "{\"error\": {\"kind\": \"timeout\"}}",
            "{\"success\": \"false\"}",
            "{\"status\": \"timeout\", \"message\": \"the search took too long\"}",
            "{\"status\": \"error\", \"error_message\": \"down\"}",
            "{\"type\": \"error\", \"message\": \"down\"}",
            "{\"exit_code\": 127, \"stdout\": \"\", \"stderr\": \"sh: jq: not found\"}",
            "{\"detail\": [{\"loc\": [\"body\", \"query\"], \"msg\": \"field required\", \"type\": \"missing\"}]}",
            "{\"code\": \"ECONNREFUSED\", \"errno\": -111, \"syscall\": \"connect\"}",
            "{\"code\": \"ENOENT\", \"message\": \"ENOENT: no such file\", \"name\": \"Error\", \"path\": \"/kb.json\"}",
            "{\"fault\": {\"faultstring\": \"Invalid ApiKey\"}}",
        ] {
            assert!(error(&document(text)).is_some(), "{text}");
        }
        for text in [
            "EOF marks the end of a file.",
            "Permission denied means that the owner does not let you read the file.",
            "Permission denied\n\nUse chmod to change who may read the file.",
            "Permission denied by the bank.",
            "The order was cancelled: permission denied",
            "EACCES: permission denied. Change the owner of the directory.",
            "coupon: not found",
            "A-17: not found",
            "Access denied",
            "Killed",
            "Exit code 127 means that the command was not found.",
            "exit code 127\n\nThe command was not found.",
            "psycopg2.errors.UniqueViolation: raised when a key exists twice.",
            "ORA-12541: TNS:no listener\nCause: the listener does not run.",
            "ERROR 1045 (28000): Access denied means that the password is wrong.",
            "ERROR 1045 (28000): Access denied for user\n\nReset the root password.",
            "Traceback (most recent call last) is how Python begins the report of an error.",
            "FATAL: not all errors end a program.",
            "fatal: the word for what ends a program",
            "404 Not Found: \"A History of Missing Pages\"",
            "502 Bad Gateway: what it means",
            "<h1>500 Watt Heater</h1><p>It is quiet.</p>",
            "<title>404 Lines</title>",
            "<h1>502 Bad Gateway: how to fix it</h1>",
            "{\"exit_code\": 1, \"stdout\": \"a.txt\", \"stderr\": \"\"}",
            "{\"exit_code\": 1, \"stdout\": \"\", \"stderr\": \"\"}",
            "{\"exit_code\": 1, \"stderr\": \"2 warnings\", \"result\": {\"files\": 3}}",
            "{\"code\": \"EUR\", \"message\": \"12 EUR\"}",
            "{\"code\": \"EXPRESS\", \"price\": 9.9, \"message\": \"EXPRESS delivery takes 1 day\"}",
            "{\"code\": \"EASTER\", \"message\": \"Use EASTER at the checkout.\"}",
            "{\"code\": \"ENOENT\", \"message\": \"ENOENT: no such file\", \"remedy\": \"Create it.\"}",
            "{\"type\": \"error\", \"message\": \"too hot\", \"device\": \"pump\"}",
            "[{\"id\": \"kb-1\", \"text\": \"Permission denied\"}]",
            "{\"title\": \"EOF\", \"text\": \"EOF\"}",
        ] {
            assert_eq!(error(&document(text)), None, "{text}");
        }
    }
}
