import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValueJsonConverter;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TopologyMetadata;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.slf4j.helpers.NOPLogger;

/**
 * Asks Kafka's StickyTaskAssignor and InternalTopicManager; questions and answers are JSON lines as
 * tests/support/builders/streams_questions.py has them. The classes of the input differ between releases.
 */
public class AskedStreams {
    private static final String ASSIGNOR = "org.apache.kafka.coordinator.group.streams.assignor.";
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode asked = JSON.readTree(line);
            System.out.println(JSON.writeValueAsString(asked.has("members") ? assigned(asked) : configured(asked)));
            System.out.flush();
        }
    }

    private static Object assigned(JsonNode asked) throws Exception {
        Map<String, Object> members = new HashMap<>();
        for (JsonNode each : asked.get("members")) {
            members.put(each.get(0).asText(), member(each));
        }
        TreeMap<String, ConfiguredSubtopology> subtopologies = new TreeMap<>();
        asked.get("subtopologies").properties().forEach(entry -> {
            Map<String, ConfiguredInternalTopic> changelogs = new HashMap<>();
            if (entry.getValue().get(1).asBoolean()) {
                changelogs.put("c", new ConfiguredInternalTopic("c", 1, Optional.empty(), Map.of()));
            }
            subtopologies.put(entry.getKey(), new ConfiguredSubtopology(
                    entry.getValue().get(0).asInt(), Set.of("t"), Map.of(), Set.of(), changelogs));
        });
        Method assign = method(StickyTaskAssignor.class, "assign");
        Object result;
        try {
            result = assign.invoke(new StickyTaskAssignor(), group(members, asked.get("standby").asInt()),
                    new TopologyMetadata(CoordinatorMetadataImage.EMPTY, subtopologies));
        } catch (InvocationTargetException failed) {
            return List.of(failed.getCause().getMessage());
        }
        Map<?, ?> targets = (Map<?, ?>) result.getClass().getMethod("members").invoke(result);
        List<Object> answer = new ArrayList<>();
        for (String id : members.keySet()) {
            Object tasks = targets.get(id);
            answer.add(List.of(id, tasks.getClass().getMethod("activeTasks").invoke(tasks),
                    tasks.getClass().getMethod("standbyTasks").invoke(tasks)));
        }
        return answer;
    }

    private static Object group(Map<String, Object> members, int replicas) throws Exception {
        Map<String, String> configs = Map.of("num.standby.replicas", String.valueOf(replicas));
        Constructor<?> constructor = Class.forName(ASSIGNOR + "GroupSpecImpl").getConstructors()[0];
        Class<?> wanted = constructor.getParameterTypes()[1];
        return constructor.newInstance(
                members, wanted == Map.class ? configs : method(Class.forName(ASSIGNOR + "AssignmentConfigsImpl"), "fromMap").invoke(null, configs));
    }

    private static Object member(JsonNode each) throws Exception {
        String process = each.get(1).asText();
        Map<String, Set<Integer>> active = tasks(each.get(2));
        Map<String, Set<Integer>> standby = tasks(each.get(3));
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        for (JsonNode offset : each.get(4)) {
            offsets.computeIfAbsent(offset.get(0).asText(), name -> new HashMap<>())
                    .put(offset.get(1).asInt(), offset.get(2).asLong());
        }
        Optional<String> none = Optional.empty();
        try {
            return Class.forName(ASSIGNOR + "MemberMetadataAndStateImpl").getConstructors()[0].newInstance(
                    none, none, process, Map.of(), active, standby, Map.of(), offsets, Map.of());
        } catch (ClassNotFoundException before44) {
            return Class.forName(ASSIGNOR + "AssignmentMemberSpec").getConstructors()[0].newInstance(
                    none, none, active, standby, Map.of(), process, Map.of(), Map.of(), Map.of());
        }
    }

    private static Map<String, Set<Integer>> tasks(JsonNode bySubtopology) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        bySubtopology.properties().forEach(entry -> {
            Set<Integer> partitions = new HashSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
            tasks.put(entry.getKey(), partitions);
        });
        return tasks;
    }

    private static Object configured(JsonNode asked) {
        Map<String, Object> answer = new HashMap<>();
        ConfiguredTopology topology;
        try {
            topology = InternalTopicManager.configureTopics(NOPLogger.NOP_LOGGER, "g", "m", 0,
                    StreamsTopology.fromRecord(StreamsGroupTopologyValueJsonConverter.read(asked.get("topology"), (short) 0)),
                    image(asked.get("topics")), Time.SYSTEM);
        } catch (RuntimeException failed) {
            answer.put("error", failed.getClass().getSimpleName());
            answer.put("message", String.valueOf(failed.getMessage()));
            return answer;
        }
        topology.topicConfigurationException().ifPresent(problem -> {
            answer.put("status", problem.status().code());
            answer.put("detail", problem.getMessage());
        });
        topology.subtopologies().ifPresent(subtopologies -> {
            Map<String, Object> shown = new HashMap<>();
            subtopologies.forEach((id, each) -> shown.put(id, List.of(each.numberOfTasks(), each.sourceTopics(),
                    internal(each.repartitionSourceTopics()), each.repartitionSinkTopics(), internal(each.stateChangelogTopics()))));
            answer.put("subtopologies", shown);
        });
        List<Object> missing = new ArrayList<>();
        topology.internalTopicsToBeCreated().forEach((name, each) -> {
            Map<String, String> configs = new HashMap<>();
            each.configs().forEach(config -> configs.put(config.name(), config.value()));
            missing.add(List.of(name, each.numPartitions(), each.replicationFactor(), configs));
        });
        answer.put("missing", missing);
        return answer;
    }

    private static Object internal(Map<String, ConfiguredInternalTopic> topics) {
        Map<String, Object> shown = new HashMap<>();
        topics.forEach((name, each) -> shown.put(
                name, List.of(each.numberOfPartitions(), each.replicationFactor().orElse((short) 0), each.topicConfigs())));
        return shown;
    }

    private static CoordinatorMetadataImage image(JsonNode topics) {
        return (CoordinatorMetadataImage) Proxy.newProxyInstance(AskedStreams.class.getClassLoader(),
                new Class<?>[] {CoordinatorMetadataImage.class}, (proxy, method, arguments) ->
                        Optional.ofNullable(topics.get((String) arguments[0])).map(JsonNode::asInt).map(AskedStreams::topic));
    }

    private static CoordinatorMetadataImage.TopicMetadata topic(int partitions) {
        return (CoordinatorMetadataImage.TopicMetadata) Proxy.newProxyInstance(AskedStreams.class.getClassLoader(),
                new Class<?>[] {CoordinatorMetadataImage.TopicMetadata.class}, (proxy, method, arguments) -> partitions);
    }

    private static Method method(Class<?> owner, String name) {
        for (Method method : owner.getMethods()) {
            if (method.getName().equals(name) && !method.isBridge()) {
                method.setAccessible(true);
                return method;
            }
        }
        throw new IllegalArgumentException(owner + " has no method " + name);
    }
}
