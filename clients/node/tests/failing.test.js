import { test } from "node:test";
import { Kafka } from "kafkajs";
import { withKoordinator } from "koordinator";

test("a restart causes no rebalance", async (t) => {
  await withKoordinator({ topics: { orders: 4 }, name: t.name }, async (cluster) => {
    const kafka = new Kafka({ brokers: cluster.brokers, clientId: "svc-1" });
    const group = cluster.group("svc");
    const start = async () => {
      const consumer = kafka.consumer({ groupId: "svc", heartbeatInterval: 200, maxWaitTimeInMs: 100 });
      cluster.defer(() => consumer.disconnect());
      await consumer.subscribe({ topic: "orders" });
      await consumer.run({ eachMessage: async () => {} });
      await group.waitStable({ members: 1, allOwned: true });
      return consumer;
    };

    const consumer = await start();
    await group.assertNoRebalance(async () => {
      await consumer.disconnect(); // it leaves the group: KafkaJS has no static members
      await start();
    });
  });
});
