package example.koordinator.testcontainers;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import example.koordinator.Group;
import example.koordinator.Koordinator;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.Test;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.wait.strategy.HttpWaitStrategy;
import org.testcontainers.utility.DockerImageName;

/** The configuration of a container, for which a process stands, and a container where there is an engine. */
class KoordinatorContainerTest {

    /** A container whose ports are those of a process. */
    private static final class Mapped extends KoordinatorContainer {

        private final Koordinator server;

        Mapped(Koordinator server) {
            this.server = server;
        }

        @Override
        public String getHost() {
            return "localhost";
        }

        @Override
        public Integer getMappedPort(int port) {
            int control = URI.create(server.controlUrl()).getPort();
            List<Integer> kafka = List.of(server.bootstrapServers().split(",")).stream()
                    .map(each -> Integer.valueOf(each.split(":")[1]))
                    .toList();
            return port == 9080 ? control : kafka.get(port - 9092);
        }

        boolean hasHttpWait() {
            return waitStrategy instanceof HttpWaitStrategy;
        }
    }

    @Test
    @SuppressWarnings("resource") // nothing is started
    void theOptionsAreThoseOfTheServer() {
        var container = new KoordinatorContainer(DockerImageName.parse("registry.example/koordinator:0.2.0"))
                .withTopic("orders", 4)
                .withBrokers(3)
                .withArguments("--kafka-version", "3.9");
        String[] command = {"serve", "--topic", "orders:4", "--brokers", "3", "--kafka-version", "3.9"};
        assertArrayEquals(command, container.getCommandParts());
        assertEquals(List.of(9080, 9092, 9093, 9094), container.getExposedPorts());
        assertEquals(36, container.getEnvMap().get("KOORDINATOR_CONTROL_TOKEN").length());
        assertThrows(NullPointerException.class, container::getBootstrapServers);
    }

    @Test
    @SuppressWarnings("resource") // the process is closed
    void theMappedPortsAreAdvertised() {
        try (var server = Koordinator.builder().brokers(2).topic("orders", 4).start()) {
            var container = new Mapped(server);
            container.containerIsStarted(null);
            String expected = server.bootstrapServers().replace("127.0.0.1", "localhost");
            assertEquals(expected, container.getBootstrapServers());
            assertEquals("localhost", container.koordinator().node(2).address().split(":")[0]);
            assertEquals(4, container.koordinator().topics().get(0).partitions().size());
            assertEquals(true, container.hasHttpWait());
        }
    }

    @Test
    void aConsumerConnectsToTheMappedPorts() throws InterruptedException {
        assumeTrue(DockerClientFactory.instance().isDockerAvailable(), "no Docker engine responds");
        String image = Optional.ofNullable(System.getenv("KOORDINATOR_IMAGE")).orElse("koordinator");
        try (var container = new KoordinatorContainer(DockerImageName.parse(image))) {
            container.withTopic("orders", 4).withBrokers(2).start();
            assertEquals(2, container.getBootstrapServers().split(",").length);
            Thread consumer = consume(container.getBootstrapServers());
            Group group = container.koordinator().group("svc");
            group.waitStable(o -> o.members(1).allOwned(true));
            int generation = group.generation();
            group.expireSession("svc-1");
            group.waitStable(o -> o.members(1).allOwned(true).afterGeneration(generation));
            consumer.interrupt();
            consumer.join();
        }
    }

    private static Thread consume(String bootstrapServers) {
        Map<String, Object> config = Map.of(
                "bootstrap.servers", bootstrapServers,
                "group.id", "svc",
                "client.id", "svc-1",
                "heartbeat.interval.ms", 200);
        var thread = new Thread(() -> {
            try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of("orders"));
                while (true) {
                    consumer.poll(Duration.ofMillis(200));
                }
            } catch (org.apache.kafka.common.errors.InterruptException end) {
                // the test is over
            }
        });
        thread.start();
        return thread;
    }
}
