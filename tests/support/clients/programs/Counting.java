import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the records of topic "in" by key into topic "out"; ends with its standard input. Prints the states of the
 * application. Settings are its arguments: name=value.
 */
public class Counting {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : arguments) {
            settings.put(argument.split("=", 2)[0], argument.split("=", 2)[1]);
        }
        String text = Serdes.String().getClass().getName();
        settings.put("default.key.serde", text);
        settings.put("default.value.serde", text);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("in")
                .groupByKey()
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withCachingDisabled())
                .toStream()
                .mapValues(String::valueOf)
                .to("out", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        while (System.in.read() != -1) {}
        streams.close();
    }
}
