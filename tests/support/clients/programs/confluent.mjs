// Members and transactional producers of confluent-kafka-javascript, driven by lines on standard input: see
// line_clients.py. The argument is the address.
import confluent from "@confluentinc/kafka-javascript";
import { serve, until } from "./lines.mjs";

const { Kafka, logLevel } = confluent.KafkaJS;
const kafka = new Kafka({ kafkaJS: { brokers: process.argv[2].split(","), logLevel: logLevel.NOTHING } });
const members = new Map();
const producers = new Map();

async function consume(topic, settings, onValue) {
  const consumer = kafka.consumer({
    "auto.offset.reset": "earliest",
    "enable.auto.commit": false,
    "topic.metadata.refresh.interval.ms": 1000,
    ...settings,
  });
  await consumer.connect();
  await consumer.subscribe({ topic });
  await consumer.run({ eachMessage: async ({ message }) => onValue(message.value.toString()) });
  return consumer;
}

async function join(name, group, protocol, instance, topic) {
  const member = {};
  members.set(name, member);
  const settings = {
    "group.id": group,
    "group.protocol": protocol,
    ...(protocol === "classic" ? { "heartbeat.interval.ms": 100 } : {}),
    ...(instance === "-" ? {} : { "group.instance.id": instance }),
  };
  member.consumer = await consume(topic, settings, (value) => {
    member.first ??= value;
  });
}

function owned(member, count) {
  return until(() => {
    const rows = member.consumer.assignment().map(({ topic, partition }) => `${topic}-${partition}`);
    return rows.length === count ? rows.sort().join(" ") : undefined;
  });
}

async function read(topic, count) {
  const values = [];
  const settings = { "group.id": `read-${topic}`, "isolation.level": "read_committed" };
  const consumer = await consume(topic, settings, (value) => values.push(value));
  await until(() => values.length >= count || undefined);
  await consumer.disconnect();
  return values.slice(0, count).join(" ");
}

async function perform([command, name, ...words]) {
  const member = members.get(name);
  const producer = producers.get(name);
  switch (command) {
    case "join":
      return join(name, ...words);
    case "owned":
      return owned(member, Number(words[0]));
    case "first":
      return until(() => member.first);
    case "leave":
      return member.consumer.disconnect();
    case "producer": {
      const opened = kafka.producer({ "transactional.id": words[0] });
      await opened.connect();
      producers.set(name, { opened });
      return "";
    }
    case "begin":
      producer.transaction = await producer.opened.transaction();
      return "";
    case "send":
      await producer.transaction.send({ topic: words[0], messages: [{ value: words[1] }] });
      return "";
    case "commit":
      if (producer) return producer.transaction.commit();
      return member.consumer.commitOffsets([{ topic: words[0], partition: Number(words[1]), offset: words[2] }]);
    case "abort":
      return producer.transaction.abort();
    case "read":
      return read(name, Number(words[0]));
    default:
      throw new Error(command);
  }
}

await serve(perform);
