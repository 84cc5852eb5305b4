import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { withKoordinator } from "koordinator";

const image = process.env.KOORDINATOR_IMAGE ?? "koordinator";

/** Return the reason to skip, or false. */
function withoutEngine() {
  try {
    execFileSync("docker", ["info"], { stdio: "ignore", timeout: 20_000 });
    return false;
  } catch {
    return "no Docker engine responds";
  }
}

const skip = withoutEngine();

test("a consumer connects to the mapped ports of a container", { skip }, async () => {
  await withKoordinator({ image, topics: { orders: 4 }, brokers: 2 }, async (cluster) => {
    assert.equal(cluster.brokers.length, 2);
    const kafka = new Kafka({ brokers: cluster.brokers, clientId: "svc-1", logLevel: logLevel.NOTHING });
    const consumer = kafka.consumer({ groupId: "svc", heartbeatInterval: 200, maxWaitTimeInMs: 100 });
    cluster.defer(() => consumer.disconnect());
    await consumer.subscribe({ topic: "orders", fromBeginning: true });
    await consumer.run({ eachMessage: async () => {} });
    const group = cluster.group("svc");

    await group.waitStable({ members: 1, allOwned: true });
    const generation = await group.generation();
    await group.expireSession("svc-1");
    await group.waitStable({ members: 1, allOwned: true, afterGeneration: generation });
  });
});
