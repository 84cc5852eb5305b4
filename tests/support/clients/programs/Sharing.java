import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;

/** Members of share groups and their admin, driven by lines on standard input: see line_clients.py. */
public class Sharing {
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    static final long LIMIT_MS = 30_000;

    /** A member and the records that it has been given, by their values. */
    static class Member {
        final KafkaShareConsumer<byte[], byte[]> consumer;
        final Map<String, ConsumerRecord<byte[], byte[]>> held = new TreeMap<>();

        Member(Properties settings, String topic) {
            consumer = new KafkaShareConsumer<>(settings);
            consumer.subscribe(List.of(topic));
        }

        /** Poll once; return the values of the records with their delivery counts. */
        String poll() {
            List<String> polled = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                String value = new String(record.value());
                held.put(value, record);
                polled.add(value + "x" + record.deliveryCount().get());
            }
            return String.join(" ", polled);
        }

        /** Poll until there are records. */
        String take() throws Exception {
            for (long until = System.currentTimeMillis() + LIMIT_MS; System.currentTimeMillis() < until; ) {
                String polled = poll();
                if (!polled.isEmpty()) {
                    return polled;
                }
            }
            throw new TimeoutException("no record");
        }

        /** Commit, and wait for the broker; return the outcome of each partition. */
        String commit() {
            return consumer.commitSync().values().stream()
                .map(error -> error.map(each -> Errors.forException(each).name()).orElse("NONE"))
                .collect(Collectors.joining(" "));
        }
    }

    final String servers;
    final Admin admin;
    final Map<String, Member> members = new HashMap<>();

    Sharing(String servers) {
        this.servers = servers;
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        admin = Admin.create(settings);
    }

    public static void main(String[] arguments) throws Exception {
        Sharing sharing = new Sharing(arguments[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String result;
            try {
                result = "ok " + sharing.perform(line.split(" "));
            } catch (ExecutionException error) {
                result = "error " + error.getCause().toString().replace('\n', ' ');
            } catch (Exception error) {
                result = "error " + error.toString().replace('\n', ' ');
            }
            System.out.println(result);
        }
        System.exit(0);
    }

    String perform(String[] words) throws Exception {
        Member member = members.get(words[1]);
        switch (words[0]) {
            case "share" -> members.put(words[1], new Member(settings(words[2], words[3], words[4]), words[5]));
            case "poll" -> {
                return member.poll();
            }
            case "take" -> {
                return member.take();
            }
            case "accept", "release", "reject", "renew" -> {
                for (int at = 2; at < words.length; at++) {
                    AcknowledgeType type = AcknowledgeType.valueOf(words[0].toUpperCase());
                    member.consumer.acknowledge(member.held.get(words[at]), type);
                }
            }
            case "commit" -> {
                return member.commit();
            }
            case "leave" -> member.consumer.close();
            default -> {
                return administer(words);
            }
        }
        return "";
    }

    /** Perform a command of the admin. */
    String administer(String[] words) throws Exception {
        String group = words[1];
        switch (words[0]) {
            case "list" -> {
                return admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().stream()
                    .map(each -> each.groupId() + "=" + each.type().get() + "/" + each.groupState().get())
                    .sorted().collect(Collectors.joining(" "));
            }
            case "describe" -> {
                ShareGroupDescription described = admin.describeShareGroups(List.of(group)).all().get().get(group);
                String owned = described.members().stream()
                    .map(each -> each.assignment().topicPartitions().toString()).collect(Collectors.joining(" "));
                return described.groupState() + " " + described.members().size() + " " + owned;
            }
            case "offsets" -> {
                Map<String, ListShareGroupOffsetsSpec> all = Map.of(group, new ListShareGroupOffsetsSpec());
                return admin.listShareGroupOffsets(all).partitionsToOffsetInfo(group).get().entrySet().stream()
                    .map(each -> each.getKey() + "=" + shown(each.getValue()))
                    .sorted().collect(Collectors.joining(" "));
            }
            case "alter" -> {
                TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[3]));
                admin.alterShareGroupOffsets(group, Map.of(partition, Long.parseLong(words[4]))).all().get();
            }
            case "forget" -> admin.deleteShareGroupOffsets(group, Set.of(words[2])).all().get();
            case "delete" -> admin.deleteShareGroups(List.of(group)).all().get();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    static String shown(SharePartitionOffsetInfo info) {
        return info.startOffset() + "/" + info.lag().orElse(-1L);
    }

    Properties settings(String group, String mode, String records) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", mode);
        if (!records.equals("-")) {
            settings.put("share.acquire.mode", "record_limit");
            settings.put("max.poll.records", records);
        }
        settings.put("metadata.max.age.ms", "1000");
        settings.put("key.deserializer", BYTES);
        settings.put("value.deserializer", BYTES);
        return settings;
    }
}
