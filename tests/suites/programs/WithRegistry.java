import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;

/**
 * Writes orders with Avro's serializer, or reads all orders back: their schema is in a registry, each record has its
 * id.
 *
 * <p>Arguments: {@code write} or {@code read}, the bootstrap servers, the address of the registry, and the topic.
 * {@code read} prints each order as JSON.
 */
public final class WithRegistry {
    private static final Schema ORDER =
            SchemaBuilder.record("Order").fields().requiredString("id").requiredInt("amount").endRecord();
    private static final int COUNT = 5;
    private static final Duration READ = Duration.ofSeconds(60);

    private WithRegistry() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[1]);
        settings.put("apicurio.registry.url", arguments[2]);
        settings.put("apicurio.registry.auto-register", true);
        // as other registries name the schema of a topic's values: TOPIC-value
        settings.put(
                "apicurio.registry.artifact-resolver-strategy",
                "io.apicurio.registry.serde.strategy.TopicIdStrategy");
        String topic = arguments[3];
        if (arguments[0].equals("write")) {
            write(settings, topic);
        } else {
            read(settings, topic);
        }
    }

    private static void write(Map<String, Object> settings, String topic) throws Exception {
        settings.put("key.serializer", StringSerializer.class);
        settings.put("value.serializer", AvroKafkaSerializer.class);
        try (KafkaProducer<String, GenericRecord> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < COUNT; number++) {
                GenericRecord order = new GenericData.Record(ORDER);
                order.put("id", "o" + number);
                order.put("amount", number);
                producer.send(new ProducerRecord<>(topic, order)).get();
            }
        }
    }

    private static void read(Map<String, Object> settings, String topic) {
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", AvroKafkaDeserializer.class);
        TopicPartition partition = new TopicPartition(topic, 0);
        long limit = System.nanoTime() + READ.toNanos();
        try (KafkaConsumer<String, GenericRecord> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end && System.nanoTime() < limit) {
                for (ConsumerRecord<String, GenericRecord> each : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(each.value());
                }
            }
        }
    }
}
