//! A folder with a node in it, which ends with the test and leaves nothing behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Long enough for a machine that does something else as well; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Node {
    pub folder: TempDir,
    child: Option<Child>,
    flags: Vec<String>,
}

/// An answer of the interface.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// The program, in a folder that is nobody's own.
pub fn shoal(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.env("SHOAL_CONFIG", home.with_extension("user"));
    command.env("SHOAL_HOME", home).env_remove("XDG_STATE_HOME").stdin(Stdio::null());
    command
}

pub fn wait_until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = holds() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Node {
    /// A node that answers.
    pub fn start(flags: &[&str]) -> Node {
        let folder = tempfile::tempdir().unwrap();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut node = Node { folder, child: None, flags };
        node.up();
        node
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Starts the program again, and waits until it answers.
    pub fn up(&mut self) {
        let mut command = shoal(&self.home());
        command
            .args(["node", "--listen", "127.0.0.1:0"])
            .args(&self.flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let pid = child.id();
        self.child = Some(child);
        wait_until("the node answers", || {
            let address = std::fs::read_to_string(self.home().join("address")).ok()?;
            if address.contains("sha256:") {
                return self.shoal(&["nodes"]).status.success().then_some(());
            }
            let answer = self.try_get("/v1")?;
            (serde_json::from_str::<serde_json::Value>(&answer.body).ok()?["pid"] == pid).then_some(())
        });
    }

    /// Ends the program at once, as a power cut would.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Tells the program to end, and waits for it.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        let mut child = self.child.take().expect("it runs");
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        child.wait().unwrap()
    }

    pub fn shoal(&self, words: &[&str]) -> Output {
        shoal(&self.home()).args(words).output().unwrap()
    }

    /// What a command prints that goes well.
    pub fn says(&self, words: &[&str]) -> String {
        let output = self.shoal(words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "shoal {words:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let mut all = words.to_vec();
        all.insert(0, "--json");
        serde_json::from_str(&self.says(&all)).unwrap()
    }

    /// Submits what a shell shall do, and returns the job's id.
    pub fn submit(&self, flags: &[&str], script: &str) -> String {
        let words = [&["submit"], flags, &["--", "sh", "-c", script]].concat();
        self.json(&words)["id"].as_str().unwrap().to_owned()
    }

    pub fn state(&self, job: &str) -> String {
        self.json(&["status", job])["state"].as_str().unwrap().to_owned()
    }

    pub fn await_state(&self, job: &str, state: &str) {
        wait_until(&format!("job {job} is {state}"), || (self.state(job) == state).then_some(()));
    }

    /// What the interface answers to a request with these headers; `None` if nobody is there.
    pub fn ask(&self, head: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Answer> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request =
            format!("{head} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { status, head: head.to_ascii_lowercase(), body: unchunked(head, body) })
    }

    /// A connection to the interface on which nothing was said.
    pub fn connect(&self) -> Option<TcpStream> {
        let address = std::fs::read_to_string(self.home().join("address")).ok()?;
        TcpStream::connect(address.split_whitespace().next()?).ok()
    }

    pub fn host(&self) -> String {
        let address = std::fs::read_to_string(self.home().join("address")).unwrap();
        address.split_whitespace().next().unwrap().to_owned()
    }

    pub fn bearer(&self) -> String {
        let token = std::fs::read_to_string(self.home().join("token")).unwrap_or_default();
        format!("Bearer {}", token.trim())
    }

    fn try_get(&self, path: &str) -> Option<Answer> {
        let host = std::fs::read_to_string(self.home().join("address")).ok()?;
        let bearer = self.bearer();
        self.ask(&format!("GET {path}"), &[("host", host.trim()), ("authorization", &bearer)], b"")
    }

    pub fn get(&self, path: &str) -> Answer {
        self.try_get(path).expect("the node answers")
    }

    pub fn post(&self, path: &str, kind: &str, body: &str) -> Answer {
        let (host, bearer) = (self.host(), self.bearer());
        let headers = [("host", &*host), ("authorization", &*bearer), ("content-type", kind)];
        self.ask(&format!("POST {path}"), &headers, body.as_bytes()).expect("the node answers")
    }
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut all) = (body, String::new());
    while let Some((length, after)) = rest.split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(length.trim(), 16) else { break };
        if length == 0 || after.len() < length {
            break;
        }
        all.push_str(&after[..length]);
        rest = after[length..].trim_start_matches("\r\n");
    }
    all
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // The supervisor would end by itself; what it runs might not.
        let mark = format!("SHOAL_SUPERVISOR={}", self.home().canonicalize().unwrap_or_default().display());
        let home = self.home().canonicalize().unwrap_or_default();
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            let mut words = words.split(|byte| *byte == 0);
            let supervises = words.any(|word| word == b"supervise")
                && words.any(|word| word == home.as_os_str().as_encoded_bytes());
            let marked = environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
            if supervises || marked {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

/// A node that enters the grid of another.
pub fn joined(first: &Node) -> Node {
    joined_with(first, &[])
}

/// The same, started with these flags.
pub fn joined_with(first: &Node, flags: &[&str]) -> Node {
    let ticket = first.says(&["ticket"]);
    // Who sits at one of them sits at both.
    let keys = |home: PathBuf| home.with_extension("user");
    std::fs::create_dir_all(keys(first.home())).unwrap();
    let node = Node::start(&[&["--join", ticket.trim()], flags].concat());
    std::os::unix::fs::symlink(keys(first.home()), keys(node.home())).unwrap();
    wait_until("the two know each other", || {
        let knows = |node: &Node| node.json(&["nodes"])["nodes"].as_array().map_or(0, Vec::len) >= 2;
        (knows(first) && knows(&node)).then_some(())
    });
    node
}
