package example.koordinator;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Clusters without the extension. */
class KoordinatorClusterTest {

    @Test
    void aSecondHandleControlsTheSameCluster() {
        try (var koordinator = Koordinator.builder().topic("orders", 2).brokers(2).start();
                var second = Koordinator.connect(koordinator.controlUrl(), null)) {
            assertEquals(koordinator.bootstrapServers(), second.bootstrapServers());
            assertEquals(2, second.nodeStates().size());
            second.close();
            assertEquals(3, koordinator.addNode().id());
            assertEquals("orders", koordinator.topics().get(0).topic());
        }
    }

    @Test
    void aServerWithHttpsIsTrustedByItsAuthorityAndNotWithoutIt() {
        try (var koordinator = Koordinator.builder().arguments("--control-tls").start()) {
            assertEquals(List.of(), koordinator.topics());
            assertTrue(koordinator.controlUrl().startsWith("https://"), koordinator.controlUrl());
            var error = assertThrows(
                    KoordinatorException.class, () -> Koordinator.connect(koordinator.controlUrl(), null));
            assertTrue(error.getMessage().contains("koordinator does not answer"), error.getMessage());
        }
    }

    @Test
    void recordsHaveKeysValuesAndHeaders() {
        try (var koordinator = Koordinator.start()) {
            Topic topic =
                    koordinator.createTopic("orders", 1, "first", Map.entry("key", "second"), new byte[] {1, 2});
            assertEquals(1, koordinator.produce(topic.name(), Map.of("value", "x", "headers", Map.of("h", "y"))));
            List<StoredRecord> records = topic.records();
            assertEquals("key", new String(records.get(1).key(), StandardCharsets.UTF_8));
            assertArrayEquals(new byte[] {1, 2}, records.get(2).value());
            assertEquals("h", records.get(3).headers().get(0).key());
            assertEquals(1, topic.leader(0));
            koordinator.group("svc").setOffsets(List.of(new Offset(topic.name(), 0, 2)));
            assertEquals(2, koordinator.group("svc").offsets().get(0).offset());
        }
    }

    @Test
    void aLockstepServesItsClientsInRounds() {
        try (var koordinator = Koordinator.builder().topic("orders", 2).config("group.max.size", 2).start()) {
            Group group = koordinator.group("svc[1]*");
            try (Lockstep rounds = group.lockstep("JoinGroup", "a", "b")) {
                for (String name : List.of("a", "b")) {
                    group.createPuppet(name, o -> o.topics("orders")).join();
                }
                rounds.waitRound();
            }
            group.waitStable(o -> o.members(2).allOwned(true));
            var error = assertThrows(
                    AssertionError.class, () -> group.waitState("Dead", Duration.ofMillis(10)));
            String expected = "group \"svc[1]*\": waitState: not within 0.01 s: {\"state\":\"Dead\"}\n";
            assertTrue(error.getMessage().startsWith(expected), error.getMessage());
            assertTrue(error.getMessage().contains("now: Stable"), error.getMessage());
        }
    }

    @Test
    void everyActionIsAccepted() {
        List<Action> actions = List.of(
                Faults.error("UNKNOWN_MEMBER_ID"),
                Faults.error(25, o -> o.at("top")),
                Faults.delay(o -> o.ms(10)),
                Faults.delay(o -> o.uniformMs(1, 2).clock("wall")),
                Faults.delay(o -> o.lognormalMs(2.0, 0.5)),
                Faults.drop(),
                Faults.loseReply(),
                Faults.neverAnswer(o -> o.apply(true)),
                Faults.truncate(3),
                Faults.drip(2, Duration.ofMillis(5)),
                Faults.wrongCorrelationId(),
                Faults.throttle(100),
                Faults.evict(o -> o.asIf("session")),
                Faults.fence(),
                Faults.rebalance(o -> o.cause("test")));
        try (var koordinator = Koordinator.start()) {
            for (Action each : actions) {
                koordinator.group("svc").addRule("Heartbeat", each, o -> o.version(4).nth(2).optional(true));
            }
            Rule rule = koordinator.addRule("Fetch", Faults.drop());
            assertEquals(actions.size() + 1, koordinator.rules().size());
            assertThrows(AssertionError.class, koordinator::check);
            rule.remove();
            koordinator.check();
            try (Hold hold = koordinator.hold("Fetch")) {
                assertEquals(0, hold.describe().entered());
            }
            assertEquals(List.of(), koordinator.holds());
        }
    }

    @Test
    void aRefusedOperationNamesTheReason() {
        try (var koordinator = Koordinator.start()) {
            var error = assertThrows(KoordinatorException.class, () -> koordinator.group("svc").evict("svc-1"));
            assertEquals(409, error.status());
            assertEquals("Conflict", error.title());
            assertTrue(error.getMessage().startsWith("group \"svc\": "), error.getMessage());
            assertTrue(error.getMessage().endsWith(error.detail()));
        }
    }

    @Test
    void aTransactionStaysOpenUntilItIsAborted() {
        try (var koordinator = Koordinator.builder().topic("orders", 1).start()) {
            Producer producer = koordinator.createProducer("p", o -> o.transactionalId("tx"));
            producer.init();
            producer.waitFor();
            producer.produce("orders", List.of("a"), o -> o.partition(0));
            producer.waitFor();
            assertThrows(AssertionError.class, koordinator::assertNoOpenTransactions);
            koordinator.transaction("tx").abort();
            koordinator.assertNoOpenTransactions(Duration.ofSeconds(30));
        }
    }

    @Test
    void aProgramThatDoesNotStartNamesTheRemedy() {
        var error = assertThrows(
                KoordinatorException.class, () -> Koordinator.builder().command("no-such-program").start());
        assertTrue(error.getMessage().contains("pip install 'koordinator[control]'"), error.getMessage());
        error = assertThrows(KoordinatorException.class, () -> Koordinator.builder().topic("a b", 1).start());
        assertTrue(error.getMessage().contains("a b"), error.getMessage());
    }
}
