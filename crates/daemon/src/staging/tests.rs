//! What comes from other nodes is right or does not come, once, and from where it broke off.

use std::collections::BTreeMap;
use std::sync::Mutex;

use axum::body::Bytes;
use shoal_model::job::{Content, Files};
use shoal_model::{Envelope, Epoch, Job, Nonce, Rank};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::*;
use crate::depot::outline::{GROUP, Growing};
use crate::elsewhere::{Later, PLAIN, Parts, Question, Reply, Unreachable};

/// What is wrong with what a node sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    /// It ends after so many bytes.
    BreaksOff(usize),
    /// This byte is another one.
    Byte(usize),
    /// The outline is of something else.
    Outline,
    /// It goes on and on.
    TooLong,
}

/// Nodes that all have one file, and send it each in its way; and what they were asked.
struct Others {
    file: Vec<u8>,
    nodes: BTreeMap<NodeId, Lie>,
    asked: Mutex<Vec<(NodeId, u64)>>,
}

impl Elsewhere for Others {
    fn members(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    fn ask(&self, to: NodeId, question: Bytes) -> Later<'_, Result<Parts, Unreachable>> {
        Box::pin(async move {
            let Some(&lie) = self.nodes.get(&to) else {
                return Err(Unreachable { node: to, why: "it is not there".to_owned() });
            };
            let Ok(Question::Blob { from, .. }) = Question::read(&question) else {
                panic!("a question for a file")
            };
            self.asked.lock().unwrap().push((to, from));
            let mut growing = Growing::new();
            growing.add(&self.file, None).unwrap();
            let mut outline = growing.finish(None).unwrap().1.bytes();
            if lie == Lie::Outline {
                outline[3] ^= 1;
            }
            let mut bytes = (self.file.len() as u64).to_le_bytes().to_vec();
            bytes.extend(u32::try_from(outline.len()).unwrap().to_le_bytes());
            bytes.extend(outline);
            let mut file = self.file.clone();
            match lie {
                Lie::None | Lie::Outline => {}
                Lie::BreaksOff(at) => file.truncate(at),
                Lie::Byte(at) => file[at] ^= 1,
                Lie::TooLong => file.extend([7; 100]),
            }
            bytes.extend_from_slice(&file[(from as usize).min(file.len())..]);
            let (sender, parts) = mpsc::channel(8);
            let (whole, made) = mpsc::channel(8);
            tokio::spawn(async move {
                for part in bytes.chunks(50_000) {
                    if whole.send(Bytes::copy_from_slice(part)).await.is_err() {
                        return;
                    }
                }
            });
            tokio::spawn(Reply::parts(PLAIN, made).send(sender));
            Ok(parts.into())
        })
    }
}

struct Scene {
    runtime: Runtime,
    staging: Staging,
    others: Arc<Others>,
    content: Content,
    home: tempfile::TempDir,
}

fn scene(size: usize, nodes: &[(u64, Lie)]) -> Scene {
    let file: Vec<u8> = (0..size).map(|place| (place % 241) as u8).collect();
    let digest = Digest::of(&file);
    let nodes = nodes.iter().map(|(node, lie)| (NodeId(*node), *lie)).collect();
    let others = Arc::new(Others { file, nodes, asked: Mutex::default() });
    let home = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let depot = Arc::new(Depot::open(home.path()).unwrap());
    let secrets = Secrets::new(home.path(), &crate::identity::Identity::from_bytes(&[1; 32]));
    let staging = Staging::new(NodeId(1), home.path(), depot, secrets, runtime.handle().clone());
    staging.connect(Arc::clone(&others) as _);
    Scene { runtime, staging, others, content: Content { kind: Kind::File, size: size as u64, digest }, home }
}

impl Scene {
    fn bring(&self, sources: &[u64]) -> Result<(), String> {
        let sources: Vec<NodeId> = sources.iter().copied().map(NodeId).collect();
        self.runtime.block_on(self.staging.0.bring(&self.content, &sources))
    }

    fn asked(&self) -> Vec<(u64, u64)> {
        self.others.asked.lock().unwrap().iter().map(|(node, from)| (node.0, *from)).collect()
    }
}

const SIZE: usize = 3 * GROUP as usize + 77;

#[test]
fn file_goes_on_with_another_node_where_one_broke_off() {
    let half = GROUP as usize + 1_000;
    let scene = scene(SIZE, &[(2, Lie::BreaksOff(half)), (3, Lie::None)]);
    scene.bring(&[2, 3]).unwrap();
    assert_eq!(scene.asked(), [(2, 0), (3, half as u64)]);
    assert_eq!(scene.staging.fetched(), SIZE as u64);
    assert_eq!(scene.staging.depot().has(&scene.content.digest), Some(SIZE as u64));
}

#[test]
fn node_that_lies_about_a_file_is_passed_over() {
    let damaged = GROUP as usize + 5;
    for (lie, from) in [(Lie::Byte(damaged), GROUP), (Lie::Outline, 0), (Lie::TooLong, 0)] {
        let scene = scene(SIZE, &[(2, lie), (3, Lie::None)]);
        scene.bring(&[2, 3]).unwrap();
        assert_eq!(scene.asked(), [(2, 0), (3, from)], "what was right of it is not fetched again");
    }
    // One group has no outline: it is right or it is not.
    let scene = scene(1_000, &[(2, Lie::Byte(9)), (3, Lie::None)]);
    scene.bring(&[2]).unwrap();
    assert_eq!(scene.asked(), [(2, 0), (3, 0)]);
}

#[test]
fn file_that_nobody_has_right_does_not_come() {
    let scene = scene(2_000, &[(2, Lie::Byte(9))]);
    let why = scene.bring(&[2]).unwrap_err();
    assert!(why.contains("not the file"), "{why}");
    assert_eq!(scene.staging.depot().used(), (0, 0));
}

#[test]
fn one_file_for_many_tasks_comes_once_and_each_has_a_copy() {
    let scene = scene(SIZE, &[(2, Lie::None)]);
    let staged = Staged::new("in/a", "a").unwrap().with(scene.content);
    let files = Files { inputs: vec![staged], outputs: vec![] };
    let job = Job { files: Some(Box::new(files)), ..Job::command(["true"]) };
    let envelope = Shared::new(Envelope::new(job, Nonce([1; 16])).unwrap());
    let brief = Shared::new(Brief { envelope, nodes: vec![NodeId(1)].into(), index: None, riders: None });
    let tasks: Vec<Task> =
        (1..=20).map(|epoch| Task { job: brief.job(), epoch: Epoch(epoch), rank: Rank(0) }).collect();
    for &task in &tasks {
        scene.staging.stage(task, &brief, NodeId(2));
        scene.staging.stage(task, &brief, NodeId(2));
    }
    for &task in &tasks {
        let (sender, receiver) = std::sync::mpsc::channel();
        let then = Box::new(move |result| drop(sender.send(result)));
        scene.staging.when_ready(task, Duration::from_secs(60), then);
        receiver.recv().unwrap().unwrap();
        let copy = prepared_of(scene.home.path(), task).join("in/a");
        assert_eq!(std::fs::metadata(&copy).unwrap().len(), SIZE as u64);
        // What a task does to its copy is its own affair.
        std::fs::write(&copy, "changed").unwrap();
    }
    assert_eq!(scene.asked().len(), 1);
    assert_eq!(scene.staging.depot().outline(&scene.content.digest).unwrap().bytes().len(), 4 * 32);
}

#[test]
fn folder_goes_if_not_all_can_be_put_into_it() {
    let scene = scene(10, &[]);
    let task = Task { job: shoal_model::JobId([7; 16]), epoch: Epoch(1), rank: Rank(0) };
    let place = |size| {
        let staged = Staged::new("a", "a").unwrap().with(Content { size, ..scene.content });
        let why = scene.staging.0.place(task, &[staged]).unwrap_err();
        assert!(!prepared_of(scene.home.path(), task).exists());
        why
    };
    assert!(place(10).contains("no file"));
    assert!(place(u64::MAX).contains("no room"));
}

#[test]
fn task_whose_files_do_not_come_in_time_hears_why() {
    let scene = scene(10, &[]);
    let staged = Staged::new("a", "a").unwrap().with(scene.content);
    let files = Files { inputs: vec![staged], outputs: vec![] };
    let job = Job { files: Some(Box::new(files)), ..Job::command(["true"]) };
    let envelope = Shared::new(Envelope::new(job, Nonce([1; 16])).unwrap());
    let brief = Shared::new(Brief { envelope, nodes: vec![NodeId(1)].into(), index: None, riders: None });
    let task = Task { job: brief.job(), epoch: Epoch(1), rank: Rank(0) };
    scene.staging.stage(task, &brief, NodeId(9));
    let (sender, receiver) = std::sync::mpsc::channel();
    let then = Box::new(move |result| drop(sender.send(result)));
    scene.staging.when_ready(task, Duration::from_millis(20), then);
    let why: Result<(), String> = receiver.recv().unwrap();
    assert!(why.unwrap_err().contains("did not come within"));
}
