import assert from "node:assert/strict";
import { test } from "node:test";
import { Consumer } from "@platformatic/kafka";
import { startKoordinator, withKoordinator } from "koordinator";

const options = { topics: { orders: 4 } };

/** Start a member of the group `svc`; its stream must be read. */
async function join(cluster, clientId, more = {}) {
  const consumer = new Consumer({
    bootstrapBrokers: cluster.brokers,
    groupId: "svc",
    clientId,
    heartbeatInterval: 200,
    autocreateTopics: false,
    ...more,
  });
  const stream = await consumer.consume({ topics: ["orders"], mode: "earliest", autocommit: false });
  stream.on("data", () => {}).on("error", () => {});
  cluster.defer(() => consumer.close(true));
  return consumer;
}

test("a static member that is killed returns without a rebalance", async () => {
  await withKoordinator(options, async (cluster) => {
    const group = cluster.group("svc");
    await join(cluster, "svc-1", { groupInstanceId: "worker-1" });
    await group.waitStable({ members: 1, allOwned: true });
    await group.assertNoRebalance(async () => {
      await join(cluster, "svc-1", { groupInstanceId: "worker-1" });
      await group.assertRequest("JoinGroup", { instanceId: "worker-1", atLeast: 2, timeoutMs: 30_000 });
    });
    // the first one still runs: its next heartbeat is refused
    await group.assertFenced("worker-1", { timeoutMs: 30_000 });
  });
});

test("two members of a consumer group own each partition once", async () => {
  await withKoordinator(options, async (cluster) => {
    const group = cluster.group("svc");
    await Promise.all(["svc-1", "svc-2"].map((clientId) => join(cluster, clientId, { groupProtocol: "consumer" })));
    await group.waitStable({ members: 2, allOwned: true });
    const { type, members: described } = await group.describe();
    assert.equal(type, "consumer");
    assert.deepEqual(
      described.map((each) => each.target.orders.length),
      [2, 2],
    );
  });
});

test("puppets play the other members", async () => {
  const cluster = await startKoordinator(options);
  try {
    const group = cluster.group("svc");
    const peer = await group.createPuppet("peer", { topics: ["orders"], protocols: ["roundrobin"] });
    await peer.join();
    await join(cluster, "svc-1");
    await group.waitStable({ members: 2, allOwned: true });
    await peer.stop();
    const fired = await group.advance("1m", { expire: ["peer"] });
    assert.deepEqual(
      fired.map((each) => each.kind),
      ["session"],
    );
    await group.waitStable({ members: 1, allOwned: true });
  } finally {
    await cluster.stop();
  }
});
