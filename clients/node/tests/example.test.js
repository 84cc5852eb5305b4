import { test } from "node:test";
import { Kafka } from "kafkajs";
import { withKoordinator } from "koordinator";

test("a consumer returns after its session expired", async (t) => {
  await withKoordinator({ topics: { orders: 4 }, name: t.name }, async (cluster) => {
    const kafka = new Kafka({ brokers: cluster.brokers, clientId: "svc-1" });
    const consumer = kafka.consumer({ groupId: "svc", heartbeatInterval: 200, maxWaitTimeInMs: 100 });
    cluster.defer(() => consumer.disconnect());
    await consumer.subscribe({ topic: "orders" });
    await consumer.run({ eachMessage: async () => {} });
    const group = cluster.group("svc");

    await group.waitStable({ members: 1, allOwned: true });
    const generation = await group.generation();
    await group.expireSession("svc-1"); // advances the group's clock; no real time passes
    await group.waitStable({ members: 1, allOwned: true, afterGeneration: generation });

    await group.assertConformant();
  });
});
