package example.koordinator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The client of Apache Kafka on a cluster that the tests share. */
@KoordinatorTest(topics = "orders:4")
class ConsumersTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final List<Consuming> consumers = new ArrayList<>();

    private Consuming join(Koordinator koordinator, String clientId, Map<String, Object> more) {
        var consumer = new Consuming(koordinator, clientId, more);
        consumers.add(consumer);
        return consumer;
    }

    private Consuming join(Koordinator koordinator, String clientId) {
        return join(koordinator, clientId, Map.of());
    }

    @AfterEach
    void close() {
        consumers.forEach(Consuming::close);
    }

    @Test
    void aConsumerGetsEveryPartition(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        Consuming consumer = join(koordinator, "svc-1");
        group.waitStable(o -> o.members(1).allOwned(true));
        group.assertOwnedExactlyOnce(o -> o.topics("orders"));
        Member member = group.describe().members().get(0);
        assertEquals("svc-1", member.clientId());
        assertEquals(6000, member.sessionTimeoutMs());
        assertEquals(Set.of(0, 1, 2, 3), new HashSet<>(member.assignment().get("orders")));
        consumer.close();
        group.waitState("Empty");
        group.assertLeft("svc-1");
        group.assertConformant();
    }

    @Test
    void aSecondMemberJoinsInOneRebalance(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        join(koordinator, "svc-1");
        group.waitStable(o -> o.members(1).allOwned(true));
        Rebalance rebalance = group.expectRebalance("member_join", () -> join(koordinator, "svc-2"));
        assertNotNull(rebalance.generation());
        group.waitStable(o -> o.members(2).allOwned(true));
        assertEquals(2, group.assignment().size());
        assertEquals(rebalance.generation(), group.generation());
    }

    @Test
    void aStaticMemberReturnsWithoutARebalance(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        Map<String, Object> isStatic = Map.of("group.instance.id", "worker-1");
        Consuming consumer = join(koordinator, "svc-1", isStatic);
        group.waitStable(o -> o.members(1).allOwned(true));
        String before = group.describe().members().get(0).memberId();
        group.assertNoRebalance(() -> {
            consumer.close();
            join(koordinator, "svc-1", isStatic);
            group.assertRequest("JoinGroup", o -> o.instanceId("worker-1").atLeast(2).timeout(LIMIT));
            group.waitStable(o -> o.members(1).allOwned(true));
        });
        group.assertDidNotLeave("svc-1");
        assertEquals(1, group.generation());
        assertEquals(false, group.describe().members().get(0).memberId().equals(before));
    }

    @Test
    void aConsumerReturnsAfterItsSessionExpired(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        join(koordinator, "svc-1");
        group.waitStable(o -> o.members(1).allOwned(true));
        int generation = group.generation();
        List<Fired> fired = group.advance(Duration.ofMinutes(1), o -> o.expire("svc-1"));
        assertEquals("session", fired.get(0).kind());
        group.waitStable(o -> o.members(1).allOwned(true).afterGeneration(generation));
        group.assertRequest("Heartbeat", o -> o.error("UNKNOWN_MEMBER_ID").timeout(LIMIT));
    }

    @Test
    void aRuleFailsACommitOnce(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        Rule rule = group.addRule("OffsetCommit", Faults.error("COORDINATOR_LOAD_IN_PROGRESS"), o -> o.times(1));
        koordinator.produce("orders", Map.of("value", "paid", "partition", 1));
        join(koordinator, "svc-1");
        group.assertCommitted(List.of(new Offset("orders", 1, 1)), LIMIT);
        assertEquals(1, rule.describe().hits());
        assertEquals("OffsetCommit", rule.describe().requests().get(0).api());
    }

    @Test
    void aHeldCommitIsRefusedAfterTheMemberIsGone(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        try (Hold hold = group.hold("OffsetCommit", o -> o.clientId("svc-*"))) {
            koordinator.produce("orders", Map.of("value", "paid", "partition", 0));
            join(koordinator, "svc-1");
            assertEquals("svc-1", hold.waitEntered().clientId());
            group.evict("svc-1", o -> o.asIf("session"));
        }
        group.assertRequest("OffsetCommit", o -> o.error("UNKNOWN_MEMBER_ID").timeout(LIMIT));
        group.assertCommitted(List.of(new Offset("orders", 0, 1)), LIMIT);
    }

    @Test
    void puppetsPlayTheOtherMembers(Koordinator koordinator) {
        Group group = koordinator.group("svc");
        Puppet peer = group.createPuppet("peer", o -> o.topics("orders").sessionTimeout(Duration.ofSeconds(10)));
        peer.join();
        group.waitStable(o -> o.members(1).allOwned(true));
        peer.waitState("stable");
        peer.stop();
        assertEquals(1, group.advance(Duration.ofMinutes(1), o -> o.expire("peer")).size());
        group.waitState("Empty");
        assertThrows(KoordinatorException.class, () -> koordinator.group("other").evict("nobody"));
    }
}
