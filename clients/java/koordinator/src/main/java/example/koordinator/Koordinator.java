package example.koordinator;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * A running cluster.
 *
 * <pre>{@code
 * try (var koordinator = Koordinator.builder().topic("orders", 4).start()) {
 *     startMyConsumer(koordinator.bootstrapServers());
 *     koordinator.group("svc").waitStable(o -> o.members(1).allOwned(true));
 * }
 * }</pre>
 *
 * A refused operation is a {@link KoordinatorException}; a wait in vain or a failed check is an AssertionError.
 */
public final class Koordinator extends ClusterOperations implements AutoCloseable {

    private static final Map<String, String> TRACE_FILES =
            Map.of("trace.html", "html", "trace.json", "perfetto", "trace.txt", "text", "trace.jsonl", "json");

    private final Server server;
    private final String bootstrapServers;
    private Map<String, Object> content;

    private Koordinator(Control control, Server server) {
        super(control, "the cluster");
        this.server = server;
        // the control plane loads while clients can connect already
        bootstrapServers = call("GET", "", values(), info -> (String) ((Map<?, ?>) info).get("bootstrap_servers"));
    }

    /**
     * Returns a builder of a cluster, which {@link Builder#start()} starts.
     *
     * @return a new builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Starts a cluster without topics, and waits until clients can connect.
     *
     * @return the cluster
     */
    public static Koordinator start() {
        return builder().start();
    }

    /**
     * Connects to a server that runs already; {@link #close()} then leaves it running.
     *
     * @param url the server's control_url, such as {@code http://localhost:9080}
     * @param token the token of the control API, or null
     * @return the cluster
     */
    public static Koordinator connect(String url, String token) {
        return connect(url, token, null);
    }

    /**
     * Connects to a server with https that runs already; {@link #close()} then leaves it running.
     *
     * @param url the server's control_url, such as {@code https://localhost:9080}
     * @param token the token of the control API, or null
     * @param caFile the authority to trust, the server's control_ca_file; null for those that Java trusts by default
     * @return the cluster
     */
    public static Koordinator connect(String url, String token, Path caFile) {
        return new Koordinator(new Control(url, token, caFile), null);
    }

    /**
     * Returns the addresses for clients.
     *
     * @return the value of {@code bootstrap.servers}, such as {@code 127.0.0.1:40123}
     */
    public String bootstrapServers() {
        return bootstrapServers;
    }

    /**
     * Returns the address of the control API, which has a live page of the groups, too.
     *
     * @return the address, such as {@code http://127.0.0.1:40124}
     */
    public String controlUrl() {
        return control.root();
    }

    /**
     * Returns the handle of a consumer group, which need not exist yet.
     *
     * @param id the {@code group.id}
     * @return the handle
     */
    public Group group(String id) {
        return new Group(this, id);
    }

    /**
     * Creates a topic.
     *
     * @param name its name
     * @param partitions the number of partitions
     * @param records its records, in the forms of {@link #produce}
     * @return the handle
     */
    public Topic createTopic(String name, int partitions, Object... records) {
        Topic topic = topic(name);
        topic.create(options -> options.partitions(partitions).records(Arrays.asList(records)));
        return topic;
    }

    /**
     * Appends records to a topic.
     *
     * @param topic its name
     * @param records values as strings or byte arrays; {@code Map.entry(key, value)}; or maps with some of key, value,
     *     partition, timestamp and headers
     * @return the number of records
     */
    public int produce(String topic, Object... records) {
        return topic(topic).produce(Arrays.asList(records));
    }

    /**
     * Adds a rule as {@link Group#addRule(String, Action)} does, for requests of every group, and of none.
     *
     * @param api the name of the requests, such as Fetch
     * @param action the effect, from {@link Faults}
     * @return the rule
     */
    public Rule addRule(String api, Action action) {
        return addRule(api, action, options -> {});
    }

    /**
     * Adds a rule as {@link Group#addRule(String, Action)} does, for requests of every group, and of none.
     *
     * @param api the name of the requests, such as Fetch
     * @param action the effect, from {@link Faults}
     * @param options sets conditions, a trigger, and whether the rule is optional
     * @return the rule
     */
    public Rule addRule(String api, Action action, Consumer<RuleOptions> options) {
        return addRule(api, action, values(), RuleOptions.of(options));
    }

    /**
     * Parks requests as {@link Group#hold(String)} does, of every group.
     *
     * @param api the name of the requests, such as Fetch
     * @return the hold, which a try statement removes
     */
    public Hold hold(String api) {
        return hold(api, conditions -> {});
    }

    /**
     * Parks requests as {@link Group#hold(String)} does, of every group.
     *
     * @param api the name of the requests, such as Fetch
     * @param conditions sets further conditions
     * @return the hold, which a try statement removes
     */
    public Hold hold(String api, Consumer<Conditions> conditions) {
        return addHold(api, values(), Conditions.of(conditions));
    }

    /**
     * Adds a broker to the cluster and starts it.
     *
     * @return the broker
     */
    public Node addNode() {
        return node(call("POST", "/nodes", values(), Json::integer));
    }

    /** Fails if a rule that is not optional never acted. {@link KoordinatorExtension} calls it after each test. */
    public void check() {
        List<UnusedRule> unused = unusedRules();
        if (!unused.isEmpty()) {
            throw new AssertionError(unused.stream()
                    .map(each -> "a rule was never used (optional allows it): " + each.text() + ": " + each.near())
                    .collect(Collectors.joining("\n")));
        }
    }

    /**
     * Returns the last events of the groups.
     *
     * @return several lines of text
     */
    public String timeline() {
        return timeline(null);
    }

    /**
     * Writes the trace to {@code test-results/NAME}, or below {@code KOORDINATOR_TRACE_DIR}: a page, a file for
     * Perfetto, text, and JSON lines.
     *
     * @param name the name of the folder; characters that do not suit one are replaced
     * @return the path of the page
     */
    public Path writeTrace(String name) {
        String root = System.getenv().getOrDefault("KOORDINATOR_TRACE_DIR", "test-results");
        Path folder = Path.of(root, name.replaceAll("[^\\w.]+", "-"));
        try {
            Files.createDirectories(folder);
            for (var each : TRACE_FILES.entrySet()) {
                boolean isLines = each.getValue().equals("json");
                String text = isLines ? lines() : read("/trace", Map.of("format", each.getValue()));
                Files.writeString(folder.resolve(each.getKey()), text);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return folder.resolve("trace.html");
    }

    private String lines() {
        var text = new StringBuilder(read("/trace/header", Map.of())).append('\n');
        trace().forEach(each -> text.append(Json.text(each)).append('\n'));
        return text.toString();
    }

    private String read(String path, Map<String, Object> values) {
        return control.request(label, "GET", path, values, Duration.ZERO);
    }

    /** Starts the nodes that do not run, and returns to the content before the first call. */
    void restart() {
        if (content == null) {
            content = snapshot();
            return;
        }
        for (NodeState each : nodeStates()) {
            if (each.state().equals("paused")) {
                node(each.node()).resume();
            } else if (each.state().equals("down")) {
                node(each.node()).start();
            }
        }
        reset();
        restore(content);
    }

    /** Stops the cluster; one that {@link #connect} found stays. */
    @Override
    public void close() {
        if (server != null) {
            server.stop();
        }
    }

    /** The options of a cluster, and the way to start it. */
    public static final class Builder {

        private final List<String> arguments = new ArrayList<>();
        private List<String> command;

        private Builder() {}

        /**
         * Creates a topic at the start.
         *
         * @param name its name
         * @param partitions the number of partitions
         * @return this builder
         */
        public Builder topic(String name, int partitions) {
            return arguments("--topic", name + ":" + partitions);
        }

        /**
         * Sets a config of the brokers.
         *
         * @param name its name, such as {@code group.max.size}
         * @param value its value
         * @return this builder
         */
        public Builder config(String name, Object value) {
            return arguments("--config", name + "=" + value);
        }

        /**
         * Sets the number of brokers, which is 1 by default.
         *
         * @param count the number
         * @return this builder
         */
        public Builder brokers(int count) {
            return arguments("--brokers", String.valueOf(count));
        }

        /**
         * Sets the default configs of the brokers.
         *
         * @param name fast (the default) or kafka-defaults
         * @return this builder
         */
        public Builder profile(String name) {
            return arguments("--profile", name);
        }

        /**
         * Sets the release to emulate.
         *
         * @param version the release, such as 3.9
         * @return this builder
         */
        public Builder kafkaVersion(String version) {
            return arguments("--kafka-version", version);
        }

        /**
         * Adds arguments of {@code koordinator serve}.
         *
         * @param words the arguments
         * @return this builder
         */
        public Builder arguments(String... words) {
            arguments.addAll(List.of(words));
            return this;
        }

        /**
         * Sets the program, and its arguments before {@code serve}. The default is {@code KOORDINATOR_COMMAND}, or
         * {@code koordinator} on the PATH.
         *
         * @param words the program and its arguments
         * @return this builder
         */
        public Builder command(String... words) {
            command = List.of(words);
            return this;
        }

        /**
         * Starts the cluster, and waits until clients can connect. Its process ends with this one, even if that is
         * killed.
         *
         * @return the cluster
         */
        public Koordinator start() {
            String variable = System.getenv().getOrDefault("KOORDINATOR_COMMAND", "").strip();
            List<String> found = List.of((variable.isEmpty() ? "koordinator" : variable).split("\\s+"));
            var server = new Server(command == null ? found : command, arguments);
            try {
                String url = (String) server.announcement.get("control_url");
                String token = (String) server.announcement.get("control_token");
                String caFile = (String) server.announcement.get("control_ca_file");
                return new Koordinator(new Control(url, token, caFile == null ? null : Path.of(caFile)), server);
            } catch (KoordinatorException error) {
                server.stop();
                throw error;
            }
        }
    }
}
