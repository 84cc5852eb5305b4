package example.koordinator.testcontainers;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import example.koordinator.Koordinator;
import java.net.URI;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.wait.strategy.HttpWaitStrategy;
import org.testcontainers.utility.DockerImageName;

/** The configuration of a container, without an engine: a process stands for the container. */
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
}
