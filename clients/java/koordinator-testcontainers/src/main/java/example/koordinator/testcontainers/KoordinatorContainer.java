package example.koordinator.testcontainers;

import com.github.dockerjava.api.command.InspectContainerResponse;
import example.koordinator.Koordinator;
import example.koordinator.NodeState;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * A container of the image {@code koordinator}. Clients connect to the mapped ports, which the brokers advertise.
 *
 * <pre>{@code
 * try (var container = new KoordinatorContainer().withTopic("orders", 4)) {
 *     container.start();
 *     startMyConsumer(container.getBootstrapServers());
 *     container.koordinator().group("svc").waitStable(o -> o.members(1).allOwned(true));
 * }
 * }</pre>
 */
public class KoordinatorContainer extends GenericContainer<KoordinatorContainer> {

    private static final int KAFKA_PORT = 9092;
    private static final int CONTROL_PORT = 9080;

    private final String token = UUID.randomUUID().toString();
    private final List<String> arguments = new ArrayList<>(List.of("serve"));
    private Koordinator koordinator;

    /** Creates a container of the image {@code koordinator:latest}. */
    public KoordinatorContainer() {
        this(DockerImageName.parse("koordinator"));
    }

    /**
     * Creates a container.
     *
     * @param image the image, such as {@code registry.example/koordinator:0.2.0}
     */
    public KoordinatorContainer(DockerImageName image) {
        super(image);
        withExposedPorts(CONTROL_PORT, KAFKA_PORT);
        withEnv("KOORDINATOR_CONTROL_TOKEN", token);
        waitingFor(Wait.forHttp("/readyz").forPort(CONTROL_PORT));
    }

    /**
     * Creates a topic at the start.
     *
     * @param name its name
     * @param partitions the number of partitions
     * @return this container
     */
    public KoordinatorContainer withTopic(String name, int partitions) {
        return withArguments("--topic", name + ":" + partitions);
    }

    /**
     * Sets the number of brokers, which is 1 by default.
     *
     * @param count the number
     * @return this container
     */
    public KoordinatorContainer withBrokers(int count) {
        for (int port = KAFKA_PORT; port < KAFKA_PORT + count; port++) {
            addExposedPort(port);
        }
        return withArguments("--brokers", String.valueOf(count));
    }

    /**
     * Adds arguments of {@code koordinator serve}.
     *
     * @param words the arguments
     * @return this container
     */
    public KoordinatorContainer withArguments(String... words) {
        arguments.addAll(List.of(words));
        return withCommand(arguments.toArray(String[]::new));
    }

    /**
     * Returns the cluster of a started container.
     *
     * @return the cluster
     */
    public Koordinator koordinator() {
        return Objects.requireNonNull(koordinator, "the container has not started");
    }

    /**
     * Returns the addresses for clients, which are the mapped ports.
     *
     * @return the value of {@code bootstrap.servers}
     */
    public String getBootstrapServers() {
        return koordinator().bootstrapServers();
    }

    @Override
    protected void containerIsStarted(InspectContainerResponse info) {
        String url = "http://" + getHost() + ":" + getMappedPort(CONTROL_PORT);
        Koordinator control = Koordinator.connect(url, token);
        int port = KAFKA_PORT;
        for (NodeState each : control.nodeStates()) {
            control.node(each.node()).advertise(getHost(), getMappedPort(port++));
        }
        // again, since the advertised addresses are those of clients
        koordinator = Koordinator.connect(url, token);
    }
}
