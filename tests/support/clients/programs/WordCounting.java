import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of the values of topic "in" into topic "out", "word=count"; ends with its standard input. Prints the
 * states of the application, and "restored PARTITION COUNT" when it has read a changelog for an active task. Answers each
 * line with "active 0_0 ... standby 1_2 ...". Settings are its arguments: name=value.
 */
public class WordCounting {
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
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word)
                .count(Materialized.<String, Long>as(Stores.persistentKeyValueStore("counts")).withCachingDisabled())
                .toStream()
                .map((word, count) -> KeyValue.pair(word, word + "=" + count))
                .to("out", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setGlobalStateRestoreListener(new Restored());
        streams.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        while (commands.readLine() != null) {
            Set<String> active = new TreeSet<>();
            Set<String> standby = new TreeSet<>();
            for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                thread.activeTasks().stream().map(TaskMetadata::taskId).forEach(id -> active.add(id.toString()));
                thread.standbyTasks().stream().map(TaskMetadata::taskId).forEach(id -> standby.add(id.toString()));
            }
            System.out.println("active " + String.join(" ", active) + " standby " + String.join(" ", standby));
        }
        streams.close();
    }

    private static class Restored implements StateRestoreListener {
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
        }

        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
        }

        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            System.out.println("restored " + partition.partition() + " " + total);
        }
    }
}
