import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;

/**
 * One consumer process with Java's client, as `member.py` runs the others: it reports the same JSON lines. Arguments:
 * the topic, and the consumer's settings as name=value.
 */
public class Member implements ConsumerRebalanceListener {
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer";

    final KafkaConsumer<byte[], byte[]> consumer;

    Member(Properties settings) {
        consumer = new KafkaConsumer<>(settings);
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String setting : List.of(arguments).subList(1, arguments.length)) {
            settings.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        settings.put("key.deserializer", BYTES);
        settings.put("value.deserializer", BYTES);
        say("started", "\"pid\":" + ProcessHandle.current().pid());
        Thread parent = new Thread(Member::endWithParent);
        parent.setDaemon(true);
        parent.start();
        Member member = new Member(settings);
        Thread consuming = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.consumer.wakeup();
            try {
                consuming.join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        }));
        try {
            member.consume(arguments[0]);
            say("closed", null);
        } catch (KafkaException error) {
            String text = String.valueOf(error.getMessage()).replaceAll("[\"\\\\\\s]+", " ");
            say("gave_up", "\"name\":\"" + error.getClass().getSimpleName() + "\",\"text\":\"" + text + "\"");
            Runtime.getRuntime().halt(3);
        }
    }

    /** Consume until a wakeup; commit each batch before the next poll, and again before partitions are given up. */
    void consume(String topic) {
        try (consumer) {
            consumer.subscribe(List.of(topic), this);
            while (true) {
                StringBuilder ranges = new StringBuilder();
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    ranges.append(ranges.isEmpty() ? "" : ",");
                    ranges.append("[%d,%2$d,%2$d]".formatted(record.partition(), record.offset()));
                }
                if (!ranges.isEmpty()) {
                    say("consumed", "\"ranges\":[" + ranges + "]");
                    commit();
                }
            }
        } catch (WakeupException asked) {
            // the consumer is closed, which calls onPartitionsRevoked
        }
    }

    void commit() {
        try {
            consumer.commitSync();
        } catch (CommitFailedException | RebalanceInProgressException error) {
            say("refused", "\"error\":\"" + error.getClass().getSimpleName() + "\"");
        }
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        say("revoked", listed(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("revoked", listed(partitions));
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("assigned", listed(partitions));
    }

    static String listed(Collection<TopicPartition> partitions) {
        String numbers = partitions.stream().map(each -> "" + each.partition()).collect(Collectors.joining(","));
        return "\"partitions\":[" + numbers + "]";
    }

    static synchronized void say(String event, String details) {
        double at = System.currentTimeMillis() / 1000.0;
        System.out.printf("{\"at\":%.3f,\"event\":\"%s\"%s}%n", at, event, details == null ? "" : "," + details);
        System.out.flush();
    }

    static void endWithParent() {
        try {
            System.in.read();
        } catch (java.io.IOException closed) {
            // ends all the same
        }
        Runtime.getRuntime().halt(1);
    }
}
