//! A process that writes and indexes is killed at random moments. What its indexes hold once they have caught up again must be what documents
//! say: nothing lost, nothing twice.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jackdaw_database::Order;
use jackdaw_testkit::Random;
use support::Shop;

/// Where the process that is killed works; set for it alone.
const DIRECTORY: &str = "JACKDAW_KILLED_DIRECTORY";
const SEED: &str = "JACKDAW_KILLED_SEED";
const ROUNDS: u64 = 6;

const BY_NAME: &str = "from u in docs.Users from t in u.Tags select new { u.Name, Tag = t }";
const BY_FRIEND: &str = "from u in docs.Users select new { Friend = LoadDocument(u.Friend, \"Users\").Name }";

fn user(random: &mut Random) -> String {
    let tags: Vec<String> = (0..random.below(4)).map(|tag| format!("\"t{tag}\"")).collect();
    format!(
        r#"{{"Name":"n{}","Friend":"users/{}","Tags":[{}],"@metadata":{{"@collection":"Users"}}}}"#,
        random.below(20),
        random.below(60),
        tags.join(",")
    )
}

/// Not a test of its own: what the process does that is killed.
#[test]
fn the_process_that_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let mut random = Random::new(std::env::var(SEED).unwrap().parse().unwrap());
    let shop = Shop::at(directory.as_ref());
    shop.map("ByName", BY_NAME);
    shop.map("ByFriend", BY_FRIEND);
    shop.put("users/0", &user(&mut random));
    println!("ready");
    loop {
        let id = format!("users/{}", random.below(60));
        if random.below(4) > 0 {
            shop.put(&id, &user(&mut random));
        } else {
            shop.try_delete(&id);
        }
    }
}

#[test]
fn kills_lose_nothing_and_repeat_nothing() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let seed = 0x00C0_FFEE;
    let mut random = Random::new(seed);
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process_that_is_killed", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(SEED, (seed + round).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(lines.any(|line| line.unwrap().contains("ready")), "it came up");
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let shop = Shop::open(directory.clone());
        check(&shop, round);
        assert!(shop.database.read().unwrap().last_etag().unwrap() > round as i64, "each round wrote");
    }
}

/// The indexes hold what the documents say.
fn check(shop: &Shop, round: u64) {
    let (by_name, by_friend) = (shop.all("ByName"), shop.all("ByFriend"));
    let mut documents = BTreeMap::new();
    let snapshot = shop.database.read().unwrap();
    let walk = snapshot.documents_of_collection("Users", 0, Order::Ascending, |document| {
        let json: serde_json::Value =
            serde_json::from_str(&document.document.to_json(jackdaw_document::Style::Compact)).unwrap();
        documents.insert(document.id.to_owned(), json);
        Ok(ControlFlow::Continue(()))
    });
    walk.unwrap();
    let (mut names, mut friends) = (Vec::new(), Vec::new());
    for (id, document) in &documents {
        let tags = document["Tags"].as_array().map_or(0, Vec::len);
        names.extend(std::iter::repeat_n(id.clone(), tags));
        if documents.contains_key(document["Friend"].as_str().unwrap()) {
            friends.push(id.clone());
        }
    }
    assert_eq!(by_name, names, "round {round}");
    assert_eq!(by_friend, friends, "round {round}");
    for name in 0..20 {
        let name = format!("n{name}");
        let expected = friends.iter().filter(|id| {
            let friend = documents[*id]["Friend"].as_str().unwrap();
            documents[friend]["Name"] == *name
        });
        assert_eq!(
            shop.find("ByFriend", "Friend", &*name),
            expected.cloned().collect::<Vec<_>>(),
            "round {round}"
        );
    }
}
