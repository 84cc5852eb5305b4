// Transactional clients of KafkaJS, driven by lines on standard input: see line_clients.py. The argument is the address.
import { createInterface } from "node:readline";
import kafkajs from "kafkajs";

const { Kafka, logLevel } = kafkajs;
const kafka = new Kafka({ brokers: process.argv[2].split(","), logLevel: logLevel.NOTHING });
const clients = new Map();

/** A producer with its open transaction, and a queue of consumed records if it copies. */
class Client {
  constructor(transactionalId) {
    this.producer = kafka.producer({ transactionalId, maxInFlightRequests: 1, idempotent: true });
  }

  async begin() {
    this.transaction = await this.producer.transaction();
  }
}

/** Start a consumer; it gives one record for each `take` and waits in between. */
async function consumer(group, topic) {
  const consuming = kafka.consumer({ groupId: group, heartbeatInterval: 500 });
  await consuming.connect();
  await consuming.subscribe({ topic, fromBeginning: true });
  const records = [];
  const waiting = [];
  await consuming.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message }) => {
      const record = { topic, partition, offset: BigInt(message.offset), value: message.value.toString() };
      const taker = waiting.shift();
      taker ? taker(record) : records.push(record);
    },
  });
  const take = () => (records.length ? Promise.resolve(records.shift()) : new Promise((done) => waiting.push(done)));
  return { consuming, take };
}

async function copy(client, count) {
  await client.begin();
  client.offsets = new Map();
  for (let copied = 0; copied < count; copied++) {
    const record = await client.source.take();
    await client.transaction.send({ topic: client.target, messages: [{ value: record.value }] });
    client.offsets.set(`${record.topic} ${record.partition}`, record);
  }
}

async function finish(client) {
  const topics = [...client.offsets.values()].map(({ topic, partition, offset }) => ({
    topic,
    partitions: [{ partition, offset: String(offset + 1n) }],
  }));
  await client.transaction.sendOffsets({ consumerGroupId: client.group, topics });
  await client.transaction.commit();
  return "true";
}

async function read(topic, count) {
  const { consuming, take } = await consumer(`read ${topic}`, topic);
  const values = [];
  while (values.length < count) values.push((await take()).value);
  await consuming.disconnect();
  return values.join(" ");
}

async function perform([command, name, ...words]) {
  const client = clients.get(name);
  switch (command) {
    case "producer":
    case "copier": {
      const opened = new Client(words[0]);
      await opened.producer.connect();
      clients.set(name, opened);
      if (command === "copier") {
        opened.group = words[1];
        opened.source = await consumer(words[1], words[2]);
        opened.target = words[3];
      }
      return "";
    }
    case "begin":
      return client.begin();
    case "send":
      return void (await client.transaction.send({ topic: words[0], messages: [{ value: words[1] }] }));
    case "commit":
      return client.transaction.commit();
    case "abort":
      return client.transaction.abort();
    case "copy":
      return copy(client, Number(words[0]));
    case "finish":
      return finish(client);
    case "read":
      return read(name, Number(words[0]));
    default:
      throw new Error(command);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(`ok ${(await perform(line.split(" "))) ?? ""}`);
  } catch (error) {
    console.log(`error ${error.name} ${error.type ?? ""} ${error.message}`.replaceAll("\n", " "));
  }
}
process.exit(0);
