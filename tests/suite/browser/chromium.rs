//! A Chromium without a window, driven through a pipe in its DevTools protocol. Everything waits for a condition, a minute
//! at most.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long one answer of the browser may take.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct Chromium {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// Everything that it told without being asked.
    told: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    pub fn start() -> Self {
        let browser = std::env::var("RAGCHECK_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        // The browser reads commands from descriptor 3 and answers on 4.
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh", &browser]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("a shell");
        let input = process.stdin.take().expect("a pipe");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|length| length > 0) {
                bytes.pop();
                let message = serde_json::from_slice(&bytes).unwrap_or_default();
                bytes.clear();
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, told) = (None, Vec::new());
        let mut browser = Self { process, input, messages, last: 0, session, told, _profile: profile };
        let targets = browser.call("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().expect("targets").clone();
        let page = targets.iter().find(|target| target["type"] == "page").expect("a page");
        let attached = browser.call("Target.attachToTarget", json!({"targetId": page["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        // A window that nobody looks at has no focus otherwise.
        browser.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        browser
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.on_this_page(method, parameters).unwrap_or_else(|| panic!("{method}: the page was left meanwhile"))
    }

    /// What a method answers; nothing when the page is left before it does.
    fn on_this_page(&mut self, method: &str, parameters: Value) -> Option<Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message).expect("JSON");
        bytes.push(0);
        self.input.write_all(&bytes).and_then(|()| self.input.flush()).expect("the browser reads");
        loop {
            let answer = self.messages.recv_timeout(PATIENCE);
            let mut answer = answer.unwrap_or_else(|why| panic!("{method}: no answer of the browser: {why}"));
            if answer["id"] == self.last {
                if answer["error"]["message"] == "Inspected target navigated or closed" {
                    return None;
                }
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return Some(answer["result"].take());
            }
            self.told.push(answer);
        }
    }

    /// Opens an address in a window of that size, in light or dark colours, and waits until its script ran.
    pub fn open(&mut self, address: &str, (width, height): (u32, u32), dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": scheme}));
        // Another fragment alone would not load the page again.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": address}));
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'");
    }

    /// What an expression comes to, a promise's value too.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    pub fn text(&mut self, expression: &str) -> String {
        let found = self.value(expression);
        found.as_str().unwrap_or_else(|| panic!("{expression}: {found}")).to_owned()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, condition: &str) {
        // A page that is left takes its promises with it: each look is one of its own.
        let asked = json!({"expression": condition, "returnByValue": true});
        for _ in 0..PATIENCE.as_millis() / 20 {
            let seen = self.on_this_page("Runtime.evaluate", asked.clone());
            if seen.is_some_and(|seen| seen["result"]["value"] == true) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("never true: {condition}");
    }

    /// Presses a key: a letter, or `Tab`, `Enter`.
    pub fn press(&mut self, key: &str) {
        let (text, code) = match key {
            "Enter" => ("\r", 13),
            "Tab" => ("", 9),
            letter => (letter, 0),
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
        if !text.is_empty() {
            event["text"] = json!(text);
        }
        let up = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        for event in [event, up] {
            // The key that goes down may lead to the next page before it is answered.
            self.on_this_page("Input.dispatchKeyEvent", event);
        }
    }

    /// Types into what has the focus.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Errors and warnings of the console, and exceptions.
    pub fn complaints(&self) -> Vec<&Value> {
        let told = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        let of = |message: &&Value| message["method"].as_str().is_some_and(|method| told.contains(&method));
        self.told.iter().filter(of).collect()
    }

    /// Addresses that were asked for and are no file.
    pub fn requests(&self) -> Vec<&str> {
        let asked = self.told.iter().filter(|message| message["method"] == "Network.requestWillBeSent");
        let addresses = asked.filter_map(|message| message["params"]["request"]["url"].as_str());
        addresses.filter(|address| !address.starts_with("file://") && *address != "about:blank").collect()
    }

    /// Lays the page out as on A4 paper, within its margins.
    pub fn print_layout(&mut self) {
        self.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
        let size = json!({"width": 710, "height": 1030, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// The number of sheets that the page prints on.
    pub fn sheets(&mut self) -> usize {
        let printed = self.call("Page.printToPDF", json!({}));
        let printed = printed["data"].as_str().and_then(|text| STANDARD.decode(text).ok()).expect("a PDF");
        let printed = String::from_utf8_lossy(&printed);
        printed.split("/Type /Page").skip(1).filter(|rest| !rest.starts_with('s')).count()
    }

    /// Elements that reach beyond the window, but for those in a part that scrolls by itself.
    pub fn off_screen(&mut self) -> Value {
        self.value(
            "[...document.querySelectorAll('body *')].filter((one) => one.getClientRects().length \
             && one.getBoundingClientRect().right > innerWidth + 1 \
             && !one.closest('.scrolls, .scroll, pre, .unseen, .skip, header nav, svg')) \
             .slice(0, 5).map((one) => one.outerHTML.slice(0, 200))",
        )
    }

    /// What axe-core, whose script is `axe`, finds serious or critical.
    pub fn serious(&mut self, axe: &str) -> Value {
        self.value(&format!("{axe};0"));
        self.value(
            "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations \
             .filter((one) => one.impact === 'serious' || one.impact === 'critical') \
             .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]))",
        )
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
