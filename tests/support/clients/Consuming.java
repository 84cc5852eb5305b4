import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A consumer of topic t until its standard input ends; settings are its arguments: name=value. */
public class Consuming {
    public static void main(String[] settings) throws Exception {
        Properties properties = new Properties();
        for (String setting : settings) {
            properties.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("key.deserializer", bytes);
        properties.put("value.deserializer", bytes);
        InputStream in = System.in;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            consumer.subscribe(List.of("t"));
            while (in.available() == 0) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }
}
