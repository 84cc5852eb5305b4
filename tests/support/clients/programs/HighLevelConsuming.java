import java.util.Map;
import java.util.Properties;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.javaapi.consumer.ConsumerConnector;

/** The high-level consumer of Kafka 0.8, with one stream; the end of its input closes it. Its log tells the rest. */
public class HighLevelConsuming {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        for (String each : arguments) {
            String[] setting = each.split("=", 2);
            properties.put(setting[0], setting[1]);
        }
        ConsumerConnector consumer = Consumer.createJavaConsumerConnector(new ConsumerConfig(properties));
        consumer.createMessageStreams(Map.of("t", 1));
        while (System.in.read() >= 0) {
            // nothing is sent
        }
        consumer.shutdown();
    }
}
