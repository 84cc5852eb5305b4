// Members and transactional producers of @platformatic/kafka, driven by lines on standard input: see line_clients.py.
// The argument is the address.
import { Consumer, Producer, stringSerializers } from "@platformatic/kafka";
import { serve, until } from "./lines.mjs";

const bootstrapBrokers = process.argv[2].split(",");
const members = new Map();
const producers = new Map();

async function join(name, group, protocol, instance, topic) {
  const consumer = new Consumer({
    bootstrapBrokers,
    clientId: name,
    groupId: group,
    autocreateTopics: false,
    metadataMaxAge: 1000,
    ...(protocol === "consumer" ? { groupProtocol: protocol } : { heartbeatInterval: 100 }),
    ...(instance === "-" ? {} : { groupInstanceId: instance }),
  });
  const member = { consumer };
  members.set(name, member);
  const options = { topics: [topic], mode: "committed", fallbackMode: "earliest", autocommit: false };
  member.stream = await consumer.consume(options);
  member.stream.on("error", () => {}).on("data", (message) => {
    member.first ??= message.value.toString();
  });
}

function owned(member, count) {
  return until(() => {
    const rows = (member.consumer.assignments ?? []).flatMap(({ topic, partitions }) =>
      partitions.map((partition) => `${topic}-${partition}`),
    );
    return rows.length === count ? rows.sort().join(" ") : undefined;
  });
}

async function read(topic, count) {
  const consumer = new Consumer({ bootstrapBrokers, clientId: "read", groupId: `read-${topic}` });
  const stream = await consumer.consume({ topics: [topic], mode: "earliest", autocommit: false, isolationLevel: 1 });
  const values = [];
  stream.on("error", () => {}).on("data", (message) => values.push(message.value.toString()));
  await until(() => values.length >= count || undefined);
  await consumer.close(true);
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
      return member.consumer.close(true);
    case "producer": {
      const opened = new Producer({
        bootstrapBrokers,
        clientId: name,
        transactionalId: words[0],
        idempotent: true,
        serializers: stringSerializers,
      });
      producers.set(name, { opened });
      return "";
    }
    case "begin":
      producer.transaction = await producer.opened.beginTransaction();
      return "";
    case "send":
      await producer.transaction.send({ messages: [{ topic: words[0], value: words[1] }] });
      return "";
    case "commit": {
      if (producer) return producer.transaction.commit();
      const place = { topic: words[0], partition: Number(words[1]), offset: BigInt(words[2]), leaderEpoch: -1 };
      return member.consumer.commit({ offsets: [place] });
    }
    case "abort":
      return producer.transaction.abort();
    case "read":
      return read(name, Number(words[0]));
    default:
      throw new Error(command);
  }
}

await serve(perform);
