import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.event.ListenerContainerIdleEvent;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.KafkaMessageListenerContainer;
import org.springframework.kafka.listener.MessageListener;

/** Members and transactional producers of Spring Kafka, driven by lines: see line_clients.py. */
public class Spring {
    static final long LIMIT_MS = 30_000;

    /** A listener container; `tasks` run on its thread when no record has come for a while. */
    static class Member {
        final KafkaMessageListenerContainer<String, String> container;
        final Queue<FutureTask<?>> tasks = new ConcurrentLinkedQueue<>();
        volatile Consumer<?, ?> consumer;
        volatile String first;

        Member(Map<String, Object> settings, String topic) {
            ContainerProperties properties = new ContainerProperties(topic);
            properties.setAckMode(ContainerProperties.AckMode.MANUAL);
            properties.setPollTimeout(50);
            properties.setIdleEventInterval(50L);
            properties.setMessageListener((MessageListener<String, String>) this::read);
            container = new KafkaMessageListenerContainer<>(new DefaultKafkaConsumerFactory<>(settings), properties);
            container.setApplicationEventPublisher(event -> {
                if (event instanceof ListenerContainerIdleEvent idle) {
                    consumer = idle.getConsumer();
                    for (FutureTask<?> task = tasks.poll(); task != null; task = tasks.poll()) {
                        task.run();
                    }
                }
            });
            container.start();
        }

        void read(ConsumerRecord<String, String> record) {
            if (first == null) {
                first = record.value();
            }
        }

        void perform(Runnable call) throws Exception {
            FutureTask<Void> task = new FutureTask<>(call, null);
            tasks.add(task);
            task.get();
        }

        String owned(int count) throws Exception {
            return until(() -> {
                Collection<TopicPartition> now = container.getAssignedPartitions();
                return now == null || now.size() != count ? null
                        : now.stream().map(TopicPartition::toString).sorted().collect(Collectors.joining(" "));
            });
        }
    }

    final String servers;
    final Map<String, Member> members = new HashMap<>();
    final Map<String, Producer<String, String>> producers = new HashMap<>();

    Spring(String servers) {
        this.servers = servers;
    }

    public static void main(String[] arguments) throws Exception {
        Spring spring = new Spring(arguments[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String result;
            try {
                result = "ok " + spring.perform(line.split(" "));
            } catch (Exception error) {
                result = "error " + error.toString().replace('\n', ' ');
            }
            System.out.println(result);
        }
        System.exit(0);
    }

    static String until(Callable<String> get) throws Exception {
        for (long end = System.currentTimeMillis() + LIMIT_MS; System.currentTimeMillis() < end; Thread.sleep(10)) {
            String value = get.call();
            if (value != null) {
                return value;
            }
        }
        throw new TimeoutException("not within " + LIMIT_MS + " ms");
    }

    String perform(String[] words) throws Exception {
        String name = words[1];
        Member member = members.get(name);
        Producer<String, String> producer = producers.get(name);
        switch (words[0]) {
            case "join" -> {
                Map<String, Object> settings = consuming(words[2]);
                settings.put("group.protocol", words[3]);
                if (words[3].equals("classic")) {
                    settings.put("heartbeat.interval.ms", "100");
                }
                if (!words[4].equals("-")) {
                    settings.put("group.instance.id", words[4]);
                }
                members.put(name, new Member(settings, words[5]));
            }
            case "owned" -> {
                return member.owned(Integer.parseInt(words[2]));
            }
            case "first" -> {
                return until(() -> member.first);
            }
            case "leave" -> member.container.stop();
            case "producer" -> {
                Map<String, Object> settings = Map.of("bootstrap.servers", servers);
                DefaultKafkaProducerFactory<String, String> factory =
                        new DefaultKafkaProducerFactory<>(settings, new StringSerializer(), new StringSerializer());
                factory.setTransactionIdPrefix(words[2]);
                producers.put(name, factory.createProducer());
            }
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[2], words[3])).get();
            case "commit" -> {
                if (producer != null) {
                    producer.commitTransaction();
                } else {
                    TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[3]));
                    OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(words[4]));
                    member.perform(() -> member.consumer.commitSync(Map.of(partition, offset)));
                }
            }
            case "abort" -> producer.abortTransaction();
            case "read" -> {
                return read(words[1], Integer.parseInt(words[2]));
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    String read(String topic, int count) {
        Map<String, Object> settings = consuming("read-" + topic);
        settings.put("isolation.level", "read_committed");
        List<String> values = new ArrayList<>();
        try (Consumer<String, String> consumer = new DefaultKafkaConsumerFactory<String, String>(settings).createConsumer()) {
            consumer.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + LIMIT_MS;
            while (values.size() < count && System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(50)).forEach(record -> values.add(record.value()));
            }
        }
        return String.join(" ", values);
    }

    Map<String, Object> consuming(String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        return settings;
    }
}
