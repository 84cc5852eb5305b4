import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Transactional clients, driven by lines on standard input: see line_clients.py. The argument is the address. */
public class Transacting {
    /** The time without a record after which copying stops. */
    static final long QUIET_MS = 3_000;
    static final String TEXT = "org.apache.kafka.common.serialization.String";

    final String servers;
    final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();
    final Map<String, String> targets = new HashMap<>();
    /** The copiers whose partitions were revoked since their transaction began: others may copy its records, too. */
    final Set<String> revoked = new HashSet<>();

    Transacting(String servers) {
        this.servers = servers;
    }

    public static void main(String[] arguments) throws Exception {
        Transacting clients = new Transacting(arguments[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String result;
            try {
                result = "ok " + clients.perform(line.split(" "));
            } catch (Exception error) {
                result = "error " + error.toString().replace('\n', ' ');
            }
            System.out.println(result);
        }
        System.exit(0);
    }

    String perform(String[] words) throws Exception {
        String name = words[1];
        KafkaProducer<String, String> producer = producers.get(name);
        switch (words[0]) {
            case "producer" -> open(name, words[2]);
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[2], words[3])).get();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "copier" -> {
                open(name, words[2]);
                KafkaConsumer<String, String> consumer = consumer(words[3], "1");
                consumer.subscribe(List.of(words[4]), remembersRevocations(name));
                consumers.put(name, consumer);
                targets.put(name, words[5]);
            }
            case "copy" -> copy(name, Integer.parseInt(words[2]));
            case "finish" -> {
                return String.valueOf(finish(name));
            }
            case "read" -> {
                return read(words[1], Integer.parseInt(words[2]));
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    void open(String name, String transactionalId) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("transactional.id", transactionalId);
        settings.put("key.serializer", TEXT + "Serializer");
        settings.put("value.serializer", TEXT + "Serializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        producers.put(name, producer);
    }

    KafkaConsumer<String, String> consumer(String group, String mostRecords) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", mostRecords);
        settings.put("heartbeat.interval.ms", "200");
        settings.put("key.deserializer", TEXT + "Deserializer");
        settings.put("value.deserializer", TEXT + "Deserializer");
        return new KafkaConsumer<>(settings);
    }

    ConsumerRebalanceListener remembersRevocations(String name) {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                revoked.add(name);
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}
        };
    }

    void copy(String name, int count) {
        KafkaProducer<String, String> producer = producers.get(name);
        producer.beginTransaction();
        revoked.remove(name);
        long until = System.currentTimeMillis() + QUIET_MS;
        for (int copied = 0; copied < count && System.currentTimeMillis() < until; ) {
            for (ConsumerRecord<String, String> record : consumers.get(name).poll(Duration.ofMillis(100))) {
                producer.send(new ProducerRecord<>(targets.get(name), record.value()));
                copied++;
                until = System.currentTimeMillis() + QUIET_MS;
            }
        }
        producer.flush();
    }

    boolean finish(String name) {
        KafkaProducer<String, String> producer = producers.get(name);
        KafkaConsumer<String, String> consumer = consumers.get(name);
        if (!revoked.contains(name)) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition partition : consumer.assignment()) {
                offsets.put(partition, new OffsetAndMetadata(consumer.position(partition)));
            }
            try {
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                return true;
            } catch (CommitFailedException lost) {
                // the same as a revocation, told by the broker
            }
        }
        producer.abortTransaction();
        rewind(consumer);
        return false;
    }

    void rewind(KafkaConsumer<String, String> consumer) {
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            if (committed == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, committed);
            }
        }
    }

    String read(String topic, int count) {
        StringBuilder values = new StringBuilder();
        try (KafkaConsumer<String, String> reader = consumer("read " + topic, "500")) {
            reader.subscribe(List.of(topic));
            for (int read = 0; read < count; ) {
                for (ConsumerRecord<String, String> record : reader.poll(Duration.ofMillis(100))) {
                    values.append(record.value()).append(' ');
                    read++;
                }
            }
        }
        return values.toString();
    }
}
