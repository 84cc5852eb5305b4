import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

/** Members of groups, driven by lines on standard input: see line_clients.py. The argument is the address. */
public class Joining {
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    static final long LIMIT_MS = 30_000;

    /** A member and the thread that polls it; `tasks` run between two polls. */
    static class Member extends Thread implements ConsumerRebalanceListener {
        final KafkaConsumer<byte[], byte[]> consumer;
        final Queue<FutureTask<?>> tasks = new ConcurrentLinkedQueue<>();
        volatile CountDownLatch revocation = new CountDownLatch(0);
        volatile boolean closed;
        volatile Throwable failure;
        volatile String first;

        Member(Properties settings, String topic) {
            consumer = new KafkaConsumer<>(settings);
            boolean resolvedByServer = "consumer".equals(settings.get("group.protocol"));
            if (!topic.startsWith("^")) {
                consumer.subscribe(List.of(topic), this);
            } else if (resolvedByServer) {
                consumer.subscribe(new SubscriptionPattern(topic), this);
            } else {
                consumer.subscribe(Pattern.compile(topic), this);
            }
            start();
        }

        @Override
        public void run() {
            try (consumer) {
                while (!closed) {
                    for (var record : consumer.poll(Duration.ofMillis(50))) {
                        first = first == null ? new String(record.value()) : first;
                    }
                    for (FutureTask<?> task = tasks.poll(); task != null; task = tasks.poll()) {
                        task.run();
                    }
                }
            } catch (Throwable error) {
                failure = error;
            }
        }

        <T> T perform(Callable<T> call) throws Exception {
            FutureTask<T> task = new FutureTask<>(call);
            tasks.add(task);
            return task.get();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            try {
                revocation.await();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

        /** Wait until the member owns a number of partitions; return them. */
        String owned(int count) throws Exception {
            long until = System.currentTimeMillis() + LIMIT_MS;
            while (true) {
                if (failure != null) {
                    throw new IllegalStateException(failure);
                }
                Set<TopicPartition> now = perform(consumer::assignment);
                if (now.size() == count) {
                    return now.stream().map(TopicPartition::toString).sorted().collect(Collectors.joining(" "));
                }
                if (System.currentTimeMillis() > until) {
                    throw new TimeoutException("owns " + now + ", not " + count + " partitions");
                }
            }
        }

        /** Wait for the first record; return its value. */
        String firstRead() throws Exception {
            for (long until = System.currentTimeMillis() + LIMIT_MS; first == null; sleep(10)) {
                if (failure != null) {
                    throw new IllegalStateException(failure);
                }
                if (System.currentTimeMillis() > until) {
                    throw new TimeoutException("no record");
                }
            }
            return first;
        }
    }

    final String servers;
    final Map<String, Member> members = new HashMap<>();

    Joining(String servers) {
        this.servers = servers;
    }

    public static void main(String[] arguments) throws Exception {
        Joining joining = new Joining(arguments[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String result;
            try {
                result = "ok " + joining.perform(line.split(" "));
            } catch (Exception error) {
                result = "error " + error.toString().replace('\n', ' ');
            }
            System.out.println(result);
        }
        System.exit(0);
    }

    String perform(String[] words) throws Exception {
        String name = words[1];
        Member member = members.get(name);
        switch (words[0]) {
            case "join" -> members.put(name, new Member(settings(words[2], words[3], words[4]), words[5]));
            case "owned" -> {
                return member.owned(Integer.parseInt(words[2]));
            }
            case "first" -> {
                return member.firstRead();
            }
            case "block" -> member.revocation = new CountDownLatch(1);
            case "free" -> member.revocation.countDown();
            case "commit" -> {
                TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[3]));
                OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(words[4]));
                member.perform(() -> {
                    member.consumer.commitSync(Map.of(partition, offset));
                    return null;
                });
            }
            case "leave" -> {
                member.closed = true;
                member.join();
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    Properties settings(String group, String protocol, String instance) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        settings.put("group.protocol", protocol);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("key.deserializer", BYTES);
        settings.put("value.deserializer", BYTES);
        if (protocol.equals("classic")) {
            settings.put("heartbeat.interval.ms", "100");
        }
        if (!instance.equals("-")) {
            settings.put("group.instance.id", instance);
        }
        return settings;
    }
}
