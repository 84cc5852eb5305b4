//! A producer and a reader of rskafka, which has no groups, driven by lines on standard input: see line_clients.py. The
//! argument is the address.
use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{stdin, BufRead};

const BYTES_MAX: i32 = 1_000_000;
const WAIT_MS: i32 = 1_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let servers = std::env::args().nth(1).expect("an address");
    let client = ClientBuilder::new(servers.split(',').map(Into::into).collect()).build().await?;
    for line in stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match perform(&client, &words).await {
            Ok(value) => println!("ok {value}"),
            Err(error) => println!("error {}", error.to_string().replace('\n', " ")),
        }
    }
    Ok(())
}

async fn perform(client: &Client, words: &[&str]) -> Outcome<String> {
    let [command, topic, argument] = *words else { return Err(format!("unknown: {words:?}").into()) };
    let partition = client.partition_client(topic, 0, UnknownTopicHandling::Retry).await?;
    match command {
        "write" => {
            let record = Record {
                key: None,
                value: Some(argument.as_bytes().to_vec()),
                headers: BTreeMap::new(),
                timestamp: Default::default(),
            };
            partition.produce(vec![record], Compression::NoCompression).await?;
            Ok(String::new())
        }
        "read" => {
            let count: usize = argument.parse()?;
            let mut next = partition.get_offset(OffsetAt::Earliest).await?;
            let mut values = Vec::new();
            while values.len() < count {
                let (records, _) = partition.fetch_records(next, 1..BYTES_MAX, WAIT_MS).await?;
                for each in records {
                    next = each.offset + 1;
                    values.extend(each.record.value.map(|value| String::from_utf8_lossy(&value).into_owned()));
                }
            }
            Ok(values.join(" "))
        }
        _ => Err(format!("unknown: {command}").into()),
    }
}
