//! A node that programs on other machines reach: in TLS, known by its certificate.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;

use crate::home::{Node, shoal};

/// The certificate that a node shows.
fn fingerprint(node: &Node) -> String {
    node.json(&["connect"])["certificate"].as_str().unwrap().to_owned()
}

fn connects(folder: &Path, node: &Node, certificate: &str, token: &Path) -> Output {
    let mut command = shoal(folder);
    command.args(["connect", &node.host(), "--certificate", certificate, "--token-file"]).arg(token);
    command.output().unwrap()
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success(), "it went well");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn node_that_others_reach_speaks_tls_alone_and_is_known_by_its_certificate() {
    let mut node = Node::start(&["--http", "0.0.0.0:0"]);
    assert_eq!(fs::metadata(node.home().join("http.key")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(node.home().join("token")).unwrap().mode() & 0o777, 0o600);
    // Commands on its own machine notice nothing of it, and nobody speaks to it in the clear.
    assert_eq!(node.says(&["run", "--", "echo", "mine"]), "mine\n");
    let (host, bearer) = (node.host(), node.bearer());
    assert!(node.ask("GET /v1", &[("host", &host), ("authorization", &bearer)], b"").is_none());

    let elsewhere = tempfile::tempdir().unwrap();
    let (folder, token) = (elsewhere.path().join("far"), node.home().join("token"));
    let certificate = fingerprint(&node);
    let output = connects(&folder, &node, &certificate, &token);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let far = |words: &[&str]| shoal(&folder).args(words).output().unwrap();
    // Somebody else than who sits at the node.
    assert!(far(&["user", "new", "somebody-far"]).status.success());
    let output = far(&["run", "--", "echo", "from far"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "from far\n");
    let large = elsewhere.path().join("large");
    fs::write(&large, vec![7; 3 << 20]).unwrap();
    let given = format!("{}=large", large.display());
    let output = far(&["run", "--in", &given, "--", "sh", "-c", "wc -c < large"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3145728");
    let by_file = connects(&folder, &node, node.home().join("http.crt").to_str().unwrap(), &token);
    assert!(by_file.status.success(), "{}", String::from_utf8_lossy(&by_file.stderr));

    // Another certificate, another token, and a folder that is a node's own.
    let other = elsewhere.path().join("other");
    let told =
        complaint(&connects(&other, &node, &certificate.replacen(&certificate[7..9], "00", 1), &token));
    assert!(
        told.contains("does not show the certificate") && told.contains("ask the node's owner"),
        "{told}"
    );
    let wrong = elsewhere.path().join("token");
    fs::write(&wrong, "0123456789abcdef0123").unwrap();
    let told = complaint(&connects(&other, &node, &certificate, &wrong));
    assert!(told.contains("the token is missing or wrong"), "{told}");
    assert!(!other.join("address").exists(), "nothing is left that does not work");
    let told = complaint(&connects(&other, &node, "sha256:12", &token));
    assert!(told.contains("64 hexadecimal digits"), "{told}");
    let told = complaint(&connects(&node.home(), &node, &certificate, &token));
    assert!(told.contains("a node's own folder"), "{told}");

    // A node with a new certificate is not believed to be the old one.
    node.stop();
    fs::remove_file(node.home().join("http.crt")).unwrap();
    node.up();
    assert_ne!(fingerprint(&node), certificate);
    let old = format!("{} {certificate}\n", node.host());
    fs::write(folder.join("address"), old).unwrap();
    let told = complaint(&far(&["status"]));
    assert!(told.contains("does not show the certificate"), "{told}");
}

#[test]
fn certificate_that_is_none_keeps_a_node_from_starting_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let start = |settings: &str| {
        fs::write(home.join("node.toml"), format!("[http]\nlisten = '0.0.0.0:0'\n{settings}")).unwrap();
        complaint(&shoal(&home).args(["node", "--listen", "127.0.0.1:0"]).output().unwrap())
    };
    let told = start("certificate = 'nowhere.pem'\nkey = 'nowhere.key'\n");
    assert!(told.contains("nowhere.pem"), "{told}");
    let told = start("certificate = 'nowhere.pem'\n");
    assert!(told.contains("`http.key`"), "{told}");
    let told = start("croes = 3\n");
    assert!(told.contains("croes"), "{told}");
}
