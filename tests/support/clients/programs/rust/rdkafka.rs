//! Members and transactional producers of rust-rdkafka, driven by lines on standard input: see line_clients.py. The
//! argument is the address.
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::HashMap;
use std::error::Error;
use std::io::{stdin, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn, JoinHandle};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A consumer, the thread that polls it, and the first value that it has read.
struct Member {
    consumer: Arc<BaseConsumer>,
    first: Arc<Mutex<Option<String>>>,
    closed: Arc<AtomicBool>,
    polling: JoinHandle<()>,
}

struct Clients {
    servers: String,
    members: HashMap<String, Member>,
    producers: HashMap<String, BaseProducer>,
}

fn main() {
    let servers = std::env::args().nth(1).expect("an address");
    let mut clients = Clients { servers, members: HashMap::new(), producers: HashMap::new() };
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        match clients.perform(&words) {
            Ok(value) => println!("ok {value}"),
            Err(error) => println!("error {}", error.to_string().replace('\n', " ")),
        }
    }
}

/// Return the value of a function once it has one.
fn until<T>(mut get: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = get()? {
            return Ok(value);
        }
        if Instant::now() > end {
            return Err(format!("not within {LIMIT:?}").into());
        }
        sleep(Duration::from_millis(10));
    }
}

impl Clients {
    fn perform(&mut self, words: &[&str]) -> Outcome<String> {
        match *words {
            ["join", name, group, protocol, instance, topic] => {
                let member = self.join(group, protocol, instance, topic)?;
                self.members.insert(name.into(), member);
            }
            ["owned", name, count] => return self.members[name].owned(count.parse()?),
            ["first", name] => {
                let first = &self.members[name].first;
                return until(|| Ok(first.lock().expect("a value").clone()));
            }
            ["leave", name] => {
                let member = self.members.remove(name).expect("a member");
                member.closed.store(true, Ordering::Relaxed);
                member.polling.join().expect("a thread that has ended");
            }
            ["producer", name, id] => {
                let producer: BaseProducer = self.settings().set("transactional.id", id).create()?;
                producer.init_transactions(LIMIT)?;
                self.producers.insert(name.into(), producer);
            }
            ["begin", name] => self.producers[name].begin_transaction()?,
            ["send", name, topic, value] => {
                let producer = &self.producers[name];
                producer.send(BaseRecord::<(), str>::to(topic).payload(value)).map_err(|(error, _)| error)?;
                producer.flush(LIMIT)?;
            }
            ["commit", name] => self.producers[name].commit_transaction(LIMIT)?,
            ["abort", name] => self.producers[name].abort_transaction(LIMIT)?,
            ["commit", name, topic, partition, offset] => {
                let mut offsets = TopicPartitionList::new();
                offsets.add_partition_offset(topic, partition.parse()?, Offset::Offset(offset.parse()?))?;
                self.members[name].consumer.commit(&offsets, CommitMode::Sync)?;
            }
            ["read", topic, count] => return self.read(topic, count.parse()?),
            _ => return Err(format!("unknown: {words:?}").into()),
        }
        Ok(String::new())
    }

    fn settings(&self) -> ClientConfig {
        let mut settings = ClientConfig::new();
        settings.set("bootstrap.servers", &self.servers);
        settings
    }

    fn consuming(&self, group: &str) -> ClientConfig {
        let mut settings = self.settings();
        settings
            .set("group.id", group)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("topic.metadata.refresh.interval.ms", "1000");
        settings
    }

    fn join(&self, group: &str, protocol: &str, instance: &str, topic: &str) -> Outcome<Member> {
        let mut settings = self.consuming(group);
        settings.set("group.protocol", protocol);
        if protocol == "classic" {
            settings.set("heartbeat.interval.ms", "100");
        }
        if instance != "-" {
            settings.set("group.instance.id", instance);
        }
        let consumer: Arc<BaseConsumer> = Arc::new(settings.create()?);
        consumer.subscribe(&[topic])?;
        let first = Arc::new(Mutex::new(None));
        let closed = Arc::new(AtomicBool::new(false));
        let polling = {
            let (consumer, first, closed) = (consumer.clone(), first.clone(), closed.clone());
            spawn(move || {
                while !closed.load(Ordering::Relaxed) {
                    if let Some(Ok(message)) = consumer.poll(Duration::from_millis(50)) {
                        let value = message.payload().map(|value| String::from_utf8_lossy(value).into_owned());
                        let mut first = first.lock().expect("a value");
                        *first = first.take().or(value);
                    }
                }
            })
        };
        Ok(Member { consumer, first, closed, polling })
    }

    fn read(&self, topic: &str, count: usize) -> Outcome<String> {
        let group = format!("read-{topic}");
        let consumer: BaseConsumer = self.consuming(&group).set("isolation.level", "read_committed").create()?;
        consumer.subscribe(&[topic])?;
        let mut values = Vec::new();
        until(|| {
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(50)) {
                values.extend(message.payload().map(|value| String::from_utf8_lossy(value).into_owned()));
            }
            Ok((values.len() == count).then_some(()))
        })?;
        Ok(values.join(" "))
    }
}

impl Member {
    fn owned(&self, count: usize) -> Outcome<String> {
        until(|| {
            let assigned = self.consumer.assignment()?;
            let mut names: Vec<String> =
                assigned.elements().iter().map(|each| format!("{}-{}", each.topic(), each.partition())).collect();
            names.sort();
            Ok((names.len() == count).then(|| names.join(" ")))
        })
    }
}
