package example.koordinator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The life of a cluster in the tests of a class. */
@KoordinatorTest(topics = "orders:4", arguments = {"--brokers", "2"})
class KoordinatorExtensionTest {

    private static String shared;

    @BeforeAll
    static void fill(Koordinator koordinator) {
        shared = koordinator.bootstrapServers();
        koordinator.produce("orders", "for all tests");
    }

    /** Returns the topics of tests; the topic of committed offsets stays. */
    private static List<String> names(List<TopicInfo> topics) {
        return topics.stream().map(TopicInfo::topic).filter(each -> !each.startsWith("__")).toList();
    }

    private static void assertFresh(Koordinator koordinator) {
        assertEquals(List.of(), koordinator.groupIds());
        assertEquals(List.of(), koordinator.rules());
        assertEquals(List.of("orders"), names(koordinator.topics()));
        assertEquals(List.of("up", "up"), koordinator.nodeStates().stream().map(NodeState::state).toList());
    }

    @RepeatedTest(3)
    void testsShareAClusterThatIsReset(Koordinator koordinator) {
        assertEquals(shared, koordinator.bootstrapServers());
        assertFresh(koordinator);
        assertEquals(1, koordinator.topic("orders").records().size());
        koordinator.createTopic("payments", 1, "a");
        koordinator.produce("orders", "b");
        Group group = koordinator.group("svc");
        group.addRule("Heartbeat", Faults.drop(), o -> o.optional(true));
        group.createPuppet("peer", o -> o.topics("orders")).join();
        koordinator.node(1).pause();
        koordinator.node(2).stop();
    }

    @Nested
    class Inside {

        @Test
        void nestedTestsShareItToo(Koordinator koordinator) {
            assertEquals(shared, koordinator.bootstrapServers());
            assertFresh(koordinator);
        }
    }

    @Nested
    @KoordinatorTest(scope = KoordinatorTest.Scope.METHOD)
    class Alone {

        @Test
        void anEnclosingClusterIsFoundFirst(Koordinator koordinator) {
            assertEquals(shared, koordinator.bootstrapServers());
        }
    }
}

/** A cluster for each test. */
@KoordinatorTest(scope = KoordinatorTest.Scope.METHOD)
class KoordinatorPerMethodTest {

    private static String last = "";

    private String first;

    @BeforeEach
    void prepare(Koordinator koordinator) {
        first = koordinator.bootstrapServers();
    }

    @RepeatedTest(2)
    void eachTestHasItsOwn(Koordinator koordinator) {
        assertEquals(first, koordinator.bootstrapServers());
        assertNotEquals(last, koordinator.bootstrapServers());
        assertEquals(List.of(), koordinator.topics());
        last = koordinator.bootstrapServers();
    }
}

/** A registered extension in a static field: one cluster for the class. */
class KoordinatorRegisteredTest {

    @RegisterExtension
    static final KoordinatorExtension EXTENSION =
            new KoordinatorExtension(Koordinator.builder().topic("payments", 2).kafkaVersion("3.9")::start);

    private static String shared;

    @RepeatedTest(2)
    void testsShareOne(Koordinator koordinator) {
        shared = shared == null ? koordinator.bootstrapServers() : shared;
        assertEquals(shared, koordinator.bootstrapServers());
        assertEquals(2, koordinator.topics().get(0).partitions().size());
    }
}

/** Only one test of this class has a cluster. */
class KoordinatorMethodTest {

    @Test
    @KoordinatorTest(topics = {"a:1", "b:1"})
    void aMethodIsAnnotated(Koordinator koordinator) {
        assertEquals(2, koordinator.topics().size());
    }
}
