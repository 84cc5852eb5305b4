import assert from "node:assert/strict";
import { test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { connectKoordinator, faults, withKoordinator } from "koordinator";

const options = { topics: { orders: 4 } };

/** Start a member of the group `svc`, and stop it at the end of the test. */
async function join(cluster, clientId, eachMessage = async () => {}) {
  const kafka = new Kafka({ brokers: cluster.brokers, clientId, logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: "svc",
    sessionTimeout: 6_000,
    heartbeatInterval: 200,
    maxWaitTimeInMs: 100,
  });
  await consumer.connect();
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  await consumer.run({ autoCommitThreshold: 1, eachMessage });
  cluster.defer(() => consumer.disconnect());
  return consumer;
}

test("a second member gets half of the partitions in one rebalance", async () => {
  await withKoordinator(options, async (cluster) => {
    const group = cluster.group("svc");
    await join(cluster, "svc-1");
    await group.waitStable({ members: 1, allOwned: true });
    const rebalance = await group.expectRebalance(async () => {
      await join(cluster, "svc-2");
    });
    assert.equal(rebalance.cause, "member_join");
    await group.waitStable({ members: 2, allOwned: true });
    const owned = Object.values(await group.assignment()).map((each) => each.orders.length);
    assert.deepEqual(owned, [2, 2]);
    await group.assertOwnedExactlyOnce();
    await group.assertConformant();
  });
});

test("a record is processed again if its commit was held while the group moved on", async () => {
  await withKoordinator(options, async (cluster) => {
    const group = cluster.group("svc");
    const seen = [];
    await cluster.produce("orders", { value: "paid", partition: 0 });
    const hold = await group.hold("OffsetCommit");
    await join(cluster, "svc-1", async ({ message }) => seen.push(message.value.toString()));
    const request = await hold.waitEntered();
    assert.equal(request.clientId, "svc-1");
    await group.evict("svc-1", { asIf: "session" });
    await hold.release();
    await group.assertRequest("OffsetCommit", { error: "UNKNOWN_MEMBER_ID", timeoutMs: 30_000 });
    await group.assertCommitted([{ topic: "orders", partition: 0, offset: 1 }], { timeoutMs: 30_000 });
    assert.deepEqual(seen, ["paid", "paid"]);
  });
});

test("a failed commit is made up for by the next one", async () => {
  await withKoordinator(options, async (cluster) => {
    const group = cluster.group("svc");
    const error = "COORDINATOR_LOAD_IN_PROGRESS";
    const rule = await group.addRule("OffsetCommit", faults.error(error), { times: 1 });
    await cluster.produce("orders", { value: Buffer.from("paid"), partition: 1 });
    await join(cluster, "svc-1");
    await group.assertRequest("OffsetCommit", { error, times: 1, timeoutMs: 30_000 });
    await cluster.produce("orders", { value: "sent", partition: 1 });
    await group.assertCommitted([{ topic: "orders", partition: 1, offset: 2 }], { timeoutMs: 30_000 });
    assert.equal((await rule.describe()).hits, 1);
    const records = await cluster.topic("orders").records();
    assert.deepEqual(
      records.map((each) => each.value.toString()),
      ["paid", "sent"],
    );
  });
});

test("a server with https is trusted by its authority, and not without it", async () => {
  await withKoordinator({ ...options, arguments: ["--control-tls"] }, async (cluster) => {
    await join(cluster, "svc-1");
    await cluster.group("svc").waitStable({ members: 1, allOwned: true });
    const { origin, protocol } = new URL(cluster._control.url);
    assert.equal(protocol, "https:");
    await assert.rejects(connectKoordinator(origin), { name: "KoordinatorError", message: /does not answer/ });
  });
});
