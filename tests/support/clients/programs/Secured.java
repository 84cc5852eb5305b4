import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Reads three records of topic t in a group, commits, and prints their values; settings are its arguments: name=value. */
public class Secured {
    public static void main(String[] settings) {
        Properties properties = new Properties();
        for (String setting : settings) {
            properties.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        String text = "org.apache.kafka.common.serialization.StringDeserializer";
        properties.put("key.deserializer", text);
        properties.put("value.deserializer", text);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            consumer.subscribe(List.of("t"));
            while (values.size() < 3) {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> values.add(record.value()));
            }
            consumer.commitSync();
        }
        Collections.sort(values);
        System.out.println(String.join(" ", values));
    }
}
