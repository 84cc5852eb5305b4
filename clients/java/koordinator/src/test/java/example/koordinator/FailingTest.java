package example.koordinator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Tests that fail on purpose, and show how failed tests look. */
@EnabledIfEnvironmentVariable(named = "KOORDINATOR_FAILING", matches = ".+")
@KoordinatorTest(topics = "orders:4", scope = KoordinatorTest.Scope.METHOD)
class FailingTest {

    @Test
    void aMemberIsMissing(Koordinator koordinator) {
        try (var consumer = new Consuming(koordinator, "svc-1")) {
            koordinator.group("svc").waitStable(o -> o.members(1).timeout(Duration.ofSeconds(30)));
            koordinator.group("svc").waitStable(o -> o.members(2).timeout(Duration.ofSeconds(2)));
        }
    }

    @Test
    void anAssertionOfTheTestFails(Koordinator koordinator) {
        koordinator.group("svc").createPuppet("peer", o -> o.topics("orders")).join();
        assertEquals("Empty", koordinator.group("svc").state());
    }

    @Test
    void aRuleIsNeverUsed(Koordinator koordinator) {
        koordinator.group("svc").addRule("OffsetCommit", Faults.loseReply());
    }
}
