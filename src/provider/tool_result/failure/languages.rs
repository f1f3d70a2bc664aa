//! How programs end that nobody catches, and what clients of several languages say.

use super::{DISCUSSES, OF_CLIENTS, OF_SERVERS};
use regex::Regex;
use std::sync::LazyLock;

/// How programs end that nobody catches, and how clients of other languages say that a request or a statement failed: alone,
/// or after what was tried and failed. Nothing but a trace or the body of a response follows.
pub(super) static OF_LANGUAGES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let tried = r"(?i-u:[\w ,'-]{0,40}(?:fail|error|could ?n|cannot|can't|unable)[\w ,'-]{0,40}: ){0,3}";
    let named = r"(?-u:[\w ,'-]{1,40}: ){0,3}";
    let of_servers = [&OF_SERVERS[..], &OF_CLIENTS].concat().join("|");
    Regex::new(&format!(
        r"^\s*(?:{crashes}|{tried}(?:{clients}|[45]\d\d (?i:{of_servers})?: (?:\x22[{{<\[]|\[no body\]))|{named}(?:{go}))",
        crashes = CRASHES.join("|"),
        clients = OF_CLIENT_ERRORS.join("|"),
        go = OF_GO.join("|"),
    ))
    .ok()
});
/// How programs end that nobody catches: of Python, Java, Go, Ruby and PHP.
const CRASHES: [&str; 6] = [
    r"Traceback \(most recent call last\):\s",
    r"Exception in thread \x22[^\x22\n]*\x22 (?:[a-z][\w$]*\.)+[A-Z]",
    r"(?s:panic: .*?\n\s*goroutine \d+ \[)",
    r"\S+:\d+:in [`'][^'\n]+': [^\n]*\((?:\w+::)*[A-Z]\w*\)",
    r"(?:PHP )?(?:Fatal|Parse) error:\s+(?:Uncaught|syntax error|Allowed memory|Maximum execution)\b",
    r"<br />\s*<b>(?:Fatal|Parse) error</b>:\s[^\n]*\sin (?:<b>)?\S+(?::|\.php)",
];
const OF_CLIENT_ERRORS: [&str; 16] = [
    // Java and Spring.
    r"(?:java\.net|java\.net\.http|java\.util\.concurrent|javax\.net\.ssl|org\.springframework\.web\.client)\.[A-Z]\w*(?:Exception|Error)\s*$",
    r"I/O error on [A-Z]+ request for \x22",
    r"[45]\d\d [A-Z][A-Za-z ]+ (?:from|on) (?:GET|POST|PUT|PATCH|DELETE)(?: request for)? \S",
    // Ruby.
    r"#<[\w:]*(?:Errno::\w+|Error|Exception|ConnectionFailed)\b[^\n]*>\s*$",
    r"(?:\w+::)+(?:ConnectionFailed|TimeoutError|SSLError|ReadTimeout|OpenTimeout|StatementInvalid|E[A-Z]{4,}|ClientError|ServerError): \S",
    r"Net::(?:Read|Open|Write)Timeout\b",
    r"(?:Failed to open TCP connection to \S+ \(|Connection refused - connect\(2\) for )",
    r"the server responded with status [45]\d\d\b(?: for \w+ \S+)?\s*(?:$|\n)",
    r"undefined (?:local variable or )?method [`'][^'\n]+' for (?:nil|an instance of|#<)",
    // PHP, and curl within it.
    r"(?:\w+(?:\x5c\w+)+: )?(?:cURL error \d+: |Failed to connect to \S+ port \d+ after \d+ ms: |Could not resolve host: \S+\s*$)",
    r"(?:Client|Server) error: `[A-Z]+ [^`\n]+` resulted in a `[45]\d\d",
    r"SQLSTATE\[(?:08|22|23|28|40|42|53|57|HY)\w+\](?:: | \[)",
    r"(?:(?:(?:PHP )?Warning:|<br />\s*<b>Warning</b>:)\s+)?\w+\([^)\n]+\): [Ff]ailed to open stream: ",
    // .NET, JavaScript and Rust.
    r"(?:Response status code does not indicate success: [45]\d\d|Object reference not set to an instance of an object\.|Unhandled exception\. (?:\w+\.)+\w+Exception: )",
    r"(?:Cannot read properties of (?:undefined|null) \(reading '|timeout of \d+ms exceeded\s*$|error sending request for url \(|HTTP status (?:server|client) error \(|[^\n]*\(os error \d+\)\s*$)",
    // Go, beside what it says of an address.
    r"(?:rpc error: code = [A-Z]\w+ desc = |runtime error: (?:index|slice|invalid|integer|makeslice)\b|json: cannot unmarshal \w+ into Go |unexpected status(?: code)?:? [45]\d\d\b)",
];
const OF_GO: [&str; 3] = [
    r"(?:context (?:deadline exceeded|canceled)(?: \(Client\.Timeout[^)\n]*\))?\s*$|invalid character '[^'\n]+' looking for beginning of value|read tcp \S+: \S)",
    r"dial (?:tcp|udp|unix)\d?(?:: lookup \S+(?: on \S+)?| \S+): \S",
    r"(?:Get|Post|Put|Patch|Delete|Head) \x22https?://[^\x22\s]+\x22: (?:(?:dial|read|write|proxyconnect) (?:tcp|udp|unix)|(?:unexpected )?EOF\s*$|context (?:deadline exceeded|canceled)|net/http: |http2?: |tls: |x509: |remote error: |unsupported protocol|stopped after \d+ redirects)",
];
/// What stands in the lines below an error: a trace, or the body of a response.
pub(super) static BELOW: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^(?:\s|at |from |#|File \x22|goroutine |created by |exit status |\[|Stack trace:|thrown in |Caused by|\.\.\. \d+ more|[{}<"]|[\w./*()-]+\(|(?:\w+\.)*\w+(?:Error|Exception)\b|\(truncated)"#).ok()
});

/// Whether more follows an error than its trace or the body of a response: a sentence, or lines about something else.
fn goes_on(text: &str) -> bool {
    let is_below = |line: &str| BELOW.as_ref().is_none_or(|below| below.is_match(line));
    let mut lines = text.trim().lines().filter(|line| !line.trim().is_empty());
    lines.next().is_some_and(says_more) || lines.any(|line| !is_below(line))
}

/// Whether another sentence follows the first of a line.
pub(super) fn says_more(line: &str) -> bool {
    static SENTENCES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[.!?;)]\s+[A-Z][a-z]+\b[^:\n]*\s").ok());
    SENTENCES.as_ref().is_none_or(|sentences| sentences.is_match(line))
}

/// Whether a text is what such a program or client says, and goes on with nothing but its trace.
pub(super) fn is_error(text: &str) -> bool {
    let is = |known: &Option<Regex>| known.as_ref().is_some_and(|known| known.is_match(text));
    is(&OF_LANGUAGES) && !is(&DISCUSSES) && !goes_on(text)
}

/// Whether a reply is nothing but what a program prints that nobody caught an error of, or ends with PHP's page of one.
pub(crate) fn is_crash(text: &str) -> bool {
    static CRASHED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(&format!(r"^\s*(?:{})", CRASHES.join("|"))).ok());
    static PAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"<br />\s*<b>(?:Fatal|Parse) error</b>:\s(?s:.*) on line <b>\d+</b>\s*<br />\s*$").ok()
    });
    let is = |known: &Option<Regex>| known.as_ref().is_some_and(|known| known.is_match(text));
    is(&CRASHED) && !is(&DISCUSSES) && !goes_on(text) || is(&PAGE)
}

#[cfg(test)]
mod tests {
    use crate::provider::tool_result::{document, error};

    #[test]
    fn clients_of_models_in_go_ruby_php_and_java_say_that_they_failed_and_so_do_maps_with_an_error() {
        for text in [
            r#"POST "http://127.0.0.1:1/v1/embeddings": 500 Internal Server Error {"message":"boom"}"#,
            r#"search failed: POST "https://x/v1": 401 Unauthorized {"message":"Incorrect key. You can find it at https://x."}"#,
            "error, status code: 500, status: 500 Internal Server Error, message: boom",
            "search: context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "open docs/x.md: no such file or directory",
            "panic: runtime error: index out of range [3] with length 3",
            "OpenAI::Errors::InternalServerError: {:url=>\"http://x/\", :status=>500, :body=>{}}",
            "{:url=>\"http://x/\", :status=>500, :body=>{:error=>\"boom\"}}",
            "{url: \"http://x/\", status: 500, body: {}}",
            "GuzzleHttp\\Exception\\ServerException: Server error: boom",
            "OpenAI\\Exceptions\\ErrorException: boom",
            "org.springframework.web.client.HttpServerErrorException$InternalServerError: 500: \"boom\"",
            "500 Internal Server Error: \"boom\"",
            "Warning: Undefined array key \"query\" in /app/agent.php on line 12",
            "Err(Os { code: 2, kind: NotFound, message: \"No such file or directory\" })",
            "{:error, :not_found}",
            "{\"error\"=>\"index not loaded\"}",
            "{:error=>\"index not loaded\"}",
            "{error: \"index not loaded\", retryable: true}",
            "{error=index not loaded, retryable=true}",
            "map[code:500 error:index not loaded]",
            "Array\n(\n    [error] => index not loaded\n)\n",
            "array(1) {\n  [\"error\"]=>\n  string(16) \"index not loaded\"\n}",
            r#"{"err": "index not loaded"}"#,
        ] {
            assert!(error(&document(text)).is_some(), "{text}");
        }
        for text in [
            "sql: no rows in result set",
            "OpenAI\\Exceptions\\ErrorException: thrown if the service says no.",
            "POST \"https://x/v1\" with a key, and the answer is in JSON.",
            "404 Not Found: \"A History of Missing Pages\"",
            "{\"error\"=>\"no error\", \"text\"=>\"24 months\"}",
            "{error=no error, text=24 months}",
            "map[error:no error text:24 months]",
            "Array\n(\n    [error] => no error\n    [text] => 24 months\n)\n",
            "{error: \"E04\", remedy: \"Clean the pump.\"}",
            "{url: \"http://x/\", status: 500, title: \"All about 500\"}",
            "POST \"https://x/v1/orders\": 409 Conflict\nUse it when the order exists.",
            "GET \"https://x/v1/orders\": 400 Bad Request when the id is empty.",
            "error, status code: 500, see the handbook.",
            r#"{"err": "nil"}"#,
            "{error=null, text=24 months}",
            "{\"error\"=>nil, \"text\"=>\"24 months\"}",
            "map[error:<nil> text:24 months]",
            "map[error:false text:24 months]",
            "Array\n(\n    [error] => \n    [text] => 24 months\n)\n",
            "Err on the side of caution.",
            "Warning: the lid is hot.",
            r#"{"value": 3, "err": "±2"}"#,
            r#"{"err": 0.2}"#,
        ] {
            assert_eq!(error(&document(text)), None, "{text}");
        }
    }
}
