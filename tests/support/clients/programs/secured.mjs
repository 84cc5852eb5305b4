// Reads three records of topic t in a group with KafkaJS, commits, and prints their values. The argument has the
// access as JSON: see test_security_of_programs.py.
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
import { until } from "./lines.mjs";

const { Kafka, logLevel } = kafkajs;
const access = JSON.parse(process.argv[2]);

function sasl() {
  if (!access.Mechanism) return undefined;
  if (access.Mechanism === "OAUTHBEARER") {
    return { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: access.Token }) };
  }
  return { mechanism: access.Mechanism.toLowerCase(), username: access.User, password: access.Password };
}

function ssl() {
  if (!access.CA) return undefined;
  const own = access.Key ? { key: readFileSync(access.Key), cert: readFileSync(access.Key) } : {};
  return { ca: [readFileSync(access.CA)], ...own };
}

const kafka = new Kafka({ brokers: access.Servers.split(","), sasl: sasl(), ssl: ssl(), logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: "g" });
const values = [];
await consumer.connect();
await consumer.subscribe({ topic: "t", fromBeginning: true });
await consumer.run({ eachMessage: async ({ message }) => values.push(message.value.toString()) });
await until(() => values.length >= 3 || undefined);
await consumer.commitOffsets([{ topic: "t", partition: 0, offset: "3" }]);
await consumer.disconnect();
console.log(values.sort().join(" "));
process.exit(0);
