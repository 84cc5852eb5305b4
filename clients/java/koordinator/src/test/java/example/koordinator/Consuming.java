package example.koordinator;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer of the topic orders in the group svc, which polls in its own thread until it is closed or fails. */
final class Consuming implements AutoCloseable {

    private static final Duration POLL = Duration.ofMillis(200);

    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;
    private volatile boolean isClosing;

    Consuming(Koordinator koordinator, String clientId) {
        this(koordinator, clientId, Map.of());
    }

    Consuming(Koordinator koordinator, String clientId, Map<String, Object> more) {
        var config = new HashMap<String, Object>(Map.of(
                "bootstrap.servers", koordinator.bootstrapServers(),
                "group.id", "svc",
                "client.id", clientId,
                "auto.offset.reset", "earliest",
                "auto.commit.interval.ms", 200,
                "heartbeat.interval.ms", 200,
                "session.timeout.ms", 6000));
        config.putAll(more);
        consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of("orders"));
        thread = new Thread(this::run, clientId);
        thread.start();
    }

    private void run() {
        try (consumer) {
            while (!isClosing) {
                consumer.poll(POLL);
            }
        } catch (WakeupException error) {
            // closed
        } catch (RuntimeException error) {
            System.err.println(Thread.currentThread().getName() + ": " + error);
        }
    }

    @Override
    public void close() {
        isClosing = true;
        consumer.wakeup();
        try {
            thread.join();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
